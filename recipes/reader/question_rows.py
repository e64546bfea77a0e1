"""Read each question set into rows of one format, that of HotpotQA.

A row has a question, its answers ("yes", "no", a text, or none), and a context: a list of
[title, sentences]. `supporting_facts` names the sentences that hold the answer. The sentences of a
paragraph, joined, are its original text, so that answers stand where they stood.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments.quality.documents import read_rows
from longbird.applications.documents.sentences import sentences
from longbird.applications.reading.word_overlap import shared
from longbird.applications.training.tasks.ask.questions import mentions

Row = dict[str, Any]

MOST_SUPPORT = 3
"""An answer that stands in more sentences than this is one of several people or things that are
named everywhere: which sentence supports it is not known, and the question is left out."""
MOST_WORDS = 230
"""Maximum number of words of a paragraph; sentences far from the answer are left out."""
FOLLOWS_UP = re.compile(
    r"\b(he|she|it|they|him|her|his|its|their|them|this|that|these|those|there|else|other|another|"
    r"interesting|after|next|then|did you)\b|^(why|how|when|where|who|what|which|and)\W*$",
    re.IGNORECASE,
)
"""Words of a question that cannot be understood without the questions before it."""
COMPUTED = re.compile(
    r"\b(combined?|difference|total|than|between|more|fewer|less|not|weren't|wasn't|both|after)\b",
    re.IGNORECASE,
)
"""Words of a question whose answer has to be computed."""


def row(
    number: str, question: str, text: str, answer: str, title: str = "", at: int | None = None
) -> Row | None:
    """Return a question about one paragraph as a row, or None if it is not clear enough.

    Args:
        number: Identifier of the row.
        question: The question.
        text: The paragraph.
        answer: Words of the paragraph, "yes", "no", or "" if the paragraph has no answer.
        title: The title of the document, which is read before the paragraph.
        at: The character of the paragraph where the answer, or the evidence for it, begins.
    """
    places = sentences(text)
    if not places or not question.strip():
        return None
    starts = [0, *(start for start, _ in places[1:]), len(text)]
    parts = [text[low:high] for low, high in itertools.pairwise(starts)]
    support: list[int] = []
    if at is not None:
        support = [i for i, low in enumerate(starts[:-1]) if low <= at < starts[i + 1]]
    elif answer in ("yes", "no"):  # the sentence that has most words of the question
        support = [int(shared(question, parts).argmax())]
    elif answer:
        found = mentions(text, answer)
        support = sorted({max(i for i, low in enumerate(starts[:-1]) if low <= start)
                          for start, _ in found})  # fmt: skip
        if not 0 < len(support) <= MOST_SUPPORT:
            return None
    low, high = shortened(parts, support)
    return {
        "_id": number,
        "question": question.strip(),
        "answer": answer,
        "supporting_facts": [[title, each - low] for each in support if low <= each < high],
        "context": [[title, parts[low:high]]],
    }


def shortened(parts: Sequence[str], support: Sequence[int]) -> tuple[int, int]:
    """Return the first sentence to keep and the one behind the last."""
    words = [len(part.split()) for part in parts]
    low, high = (min(support), max(support) + 1) if support else (0, 1)
    while sum(words[low:high]) < MOST_WORDS and (low > 0 or high < len(parts)):
        if high < len(parts):
            high += 1
        if low > 0:
            low -= 1
    return low, high


# ---- the sets


def squad(file: Path) -> Iterator[Row]:
    """Read SQuAD 1.1; a row also has its `article` and the number of its `paragraph`."""
    for article in json.loads(file.read_text("utf-8"))["data"]:
        for number, paragraph in enumerate(article["paragraphs"]):
            for asked in paragraph["qas"]:
                gold, text = asked["answers"][0], paragraph["context"]
                answer, at = gold["text"].strip(), gold["answer_start"]
                at += len(gold["text"]) - len(gold["text"].lstrip())
                assert text[at : at + len(answer)] == answer, asked["id"]
                if answer.lower() in ("yes", "no"):
                    continue
                found = row(asked["id"], asked["question"], text, answer, "", at)
                if found is not None:
                    yield {**found, "article": article["title"], "paragraph": number}


def quac(file: Path) -> Iterator[Row]:
    """Read QuAC: questions that can be understood alone, and those without an answer."""
    for line, dialogue in enumerate(read_rows(file)):
        text = dialogue["passage"].removesuffix("CANNOTANSWER").strip()
        asked = re.findall(r"question(\d+): (.*?)\n answer : \?", dialogue["question"], re.DOTALL)
        pieces = re.split(r"(?:^|\n)possible answers for question(\d+):\n", dialogue["answer"])
        answers = dict(zip(pieces[1::2], pieces[2::2], strict=True))
        for number, question in asked:
            answer = answers.get(number, "").strip().rstrip(",;:.")
            if not answer or FOLLOWS_UP.search(question) or len(question.split()) < 4:
                continue
            none = answer == "CANNOTANSWER"
            short = len(answer.split()) <= 14 and text.count(answer) == 1
            if none or short:
                found = row(f"quac-{line}-{number}", question, text, "" if none else answer)
                if found is not None:
                    yield found


def instructions(file: Path, name: str) -> Iterator[Row]:
    """Read Quoref, ROPES or DROP as Natural Instructions has them.

    Of DROP, whose answers are mostly computed, numbers that stand once in the text are taken.
    """
    for number, each in enumerate(json.loads(file.read_text("utf-8"))["examples"]):
        text, _, question = each["input"].partition("\nQuestion:")
        question, _, kind = question.partition("\nAnswer type:")
        text = text.removeprefix("Background Paragraph:").removeprefix("Passage:").strip()
        text = text.replace("\nStory:", "\n\n")
        answer = each["target"][0].strip().removesuffix(".")
        if answer.lower() in ("yes", "no") or not re.search(r"\w", answer):
            continue
        if kind and (COMPUTED.search(question) or not stands_once(answer, text)):
            continue
        found = row(f"{name}-{number}", question, text, answer)
        if found is not None:
            yield found


def stands_once(number: str, text: str) -> bool:
    """Is a number of two digits or more in a text, in one place?"""
    return bool(re.fullmatch(r"\d{2,}", number)) and len(mentions(text, number)) == 1


def natural(file: Path) -> Iterator[Row]:
    """Read Natural Questions; the names that were put in the place of answers are put back."""
    seen = set[str]()
    for number, each in enumerate(json.loads(file.read_text("utf-8"))["examples"]):
        question, _, text = each["input"].strip().partition("\nContext:")
        question = question.removeprefix("Question:").strip()
        scores = each["target_scores"]
        put, real = max(scores, key=scores.get), min(scores, key=scores.get)
        if question in seen or put in question:
            continue
        seen.add(question)
        text = readable(text.replace(put, real))
        if len(text.split()) >= 25:
            found = row(f"natural-{number}", readable(question), text, readable(real))
            if found is not None:
                yield found


def readable(text: str) -> str:
    r"""Return a text without marks of HTML, and without spaces around punctuation.

    Examples:
        >>> readable("It ( the `` film '' ) is n't <Dd> Ann 's .")
        'It (the "film") isn\'t Ann\'s.'
    """
    text = re.sub(r"</?\w+>", " ", text)
    text = re.sub(r"``\s*|\s*''", '"', text)
    text = re.sub(r"\s+([.,;:!?%)\]])", r"\1", text)
    text = re.sub(r"([(\[$])\s+", r"\1", text)
    text = re.sub(r"\s+('(?:s|m|d|re|ve|ll)\b|'(?=\s))", r"\1", text)
    text = re.sub(r"\s+n't\b", "n't", text)
    text = re.sub(r"(?<=[a-z]) - (?=[a-z])", "-", text)
    return " ".join(text.split())


def coqa(file: Path) -> Iterator[Row]:
    """Read CoQA: questions that can be understood alone."""
    for story in json.loads(file.read_text("utf-8"))["data"]:
        for asked, given in zip(story["questions"], story["answers"], strict=True):
            question, text = asked["input_text"], story["story"]
            if FOLLOWS_UP.search(question) or len(question.split()) < 4:
                continue
            answer = given["input_text"].strip().removesuffix(".")
            number, at = f"coqa-{story['id']}-{asked['turn_id']}", given["span_start"]
            if answer.lower() == "unknown":
                found = row(number, question, text, "")
            elif answer.lower() in ("yes", "no"):
                found = row(number, question, text, answer.lower(), at=max(at, 0))
            else:
                inside = mentions(text, answer, max(at, 0), max(given["span_end"], 0))
                if not inside:
                    continue
                low, high = inside[0]
                found = row(number, question, text, text[low:high], at=low)
            if found is not None:
                yield found


def boolq(file: Path) -> Iterator[Row]:
    """Read BoolQ: yes or no."""
    for number, each in enumerate(read_rows(file)):
        if "label" in each:
            passage = each["passage"].replace("``", '"').replace("''", '"')
            title, _, text = passage.partition(" -- ")
            answer = "yes" if each["label"] else "no"
            found = row(f"boolq-{number}", each["question"], text, answer, title)
            if found is not None:
                yield found
