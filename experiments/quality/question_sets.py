"""Splits of HotpotQA and SQuAD 2.0 into training, validation and held-out questions.

Only the development sets can be installed by name, so both are split here: SQuAD by article, and
HotpotQA so that no paragraph is on two sides. All random draws depend on SEED alone.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from typing import Any

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from experiments.sources import questions
from longbird.applications.documents.sentences import sentences

SEED = 0
VALIDATION = ("Pharmacy", "Packet_switching", "Harvard_University", "Amazon_rainforest")
TEST = ("Warsaw", "Oxygen", "Scottish_Parliament", "Fresno,_California", "Black_Death", "Force")
HELD_OUT = {"validation": 300, "test": 1000}
"""Questions of HotpotQA."""
EVERY_WORD = (10**6, 10**6)
"""More than an article has."""


# ---- the splits


def split_hotpot() -> dict[str, list[dict[str, Any]]]:
    """Split HotpotQA; questions that share a paragraph, also indirectly, stay together."""
    rows = json.loads(questions.hotpotqa().read_text("utf-8"))
    titles: dict[str, int] = {}
    pairs = [
        (number, titles.setdefault(title, len(titles)))
        for number, row in enumerate(rows)
        for title, _ in row["context"]
    ]
    ends = [[a for a, _ in pairs], [len(rows) + b for _, b in pairs]]
    size = len(rows) + len(titles)
    _, component = connected_components(coo_array(([1] * len(pairs), ends), (size, size)))
    members: dict[int, list[dict[str, Any]]] = {}
    for number, row in enumerate(rows):
        members.setdefault(int(component[number]), []).append(row)
    largest = max(members, key=lambda each: len(members[each]))
    split = {"train": members.pop(largest)}  # a third of all questions hang together
    groups = list(members.values())
    random.Random(SEED).shuffle(groups)
    for side, wanted in HELD_OUT.items():
        split[side] = []
        while len(split[side]) < wanted:
            split[side] += groups.pop()
    for group in groups:
        split["train"] += group
    return split


def split_squad() -> dict[str, list[dict[str, Any]]]:
    """Split SQuAD by article; the held-out articles were chosen by name for different subjects."""
    content = json.loads(questions.squad().read_text("utf-8"))
    articles = content["data"] if isinstance(content, dict) else content
    split: dict[str, list[dict[str, Any]]] = {"train": [], "validation": [], "test": []}
    for article in articles:
        side = "validation" if article["title"] in VALIDATION else "train"
        split["test" if article["title"] in TEST else side].append(article)
    return split


# ---- SQuAD in HotpotQA's format: paragraphs of sentences


def of_squad(articles: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield each question with its paragraph; the sentence of the answer supports it.

    `answer` is the shortest of all right `answers`, and "" if there is none.
    """
    for article in articles:
        for number, paragraph in enumerate(article["paragraphs"]):
            text = paragraph["context"]
            places = sentences(text)
            title = article["title"].replace("_", " ")
            parts = [text[start:end] + " " for start, end in places]
            for asked in paragraph["qas"]:
                support, answer = [], ""
                if not asked["is_impossible"]:
                    gold = min(asked["answers"], key=lambda each: len(each["text"]))
                    answer = gold["text"]
                    support = [
                        [title, index]
                        for index, (start, end) in enumerate(places)
                        if start <= gold["answer_start"] < end
                    ]
                yield {
                    "_id": asked["id"],
                    "question": asked["question"],
                    "answer": answer,
                    "answers": [each["text"] for each in asked["answers"]],
                    "supporting_facts": support,
                    "context": [[title, parts]],
                    "paragraph": number,
                }


def in_articles(
    rows: Iterable[dict[str, Any]],
    articles: Iterable[dict[str, Any]],
    draw: random.Random,
    words: tuple[int, int],
) -> Iterator[dict[str, Any]]:
    """Return the same questions about longer parts of their articles, in their order."""
    every = {
        article["title"].replace("_", " "): [
            [
                paragraph["context"][start:end] + " "
                for start, end in sentences(paragraph["context"])
            ]
            for paragraph in article["paragraphs"]
        ]
        for article in articles
    }
    for row in rows:
        title, at = row["context"][0][0], row["paragraph"]
        paragraphs, budget = every[title], draw.randint(*words)
        low = high = at
        count = sum(len(part.split()) for part in paragraphs[at])
        while (low > 0 or high + 1 < len(paragraphs)) and count < budget:
            down = low > 0 and (high + 1 == len(paragraphs) or draw.random() < 0.5)
            low, high = (low - 1, high) if down else (low, high + 1)
            count += sum(len(part.split()) for part in paragraphs[low if down else high])
        context = [[f"{title} ({n + 1})", paragraphs[n]] for n in range(low, high + 1)]
        facts = [[f"{title} ({at + 1})", index] for _, index in row["supporting_facts"]]
        yield {**row, "context": context, "supporting_facts": facts}
