"""Makes the files that the reader is trained and measured with, out of HotpotQA and SQuAD 2.0.

    python recipes/reader/prepare.py FOLDER

`experiments.quality.question_sets` says which questions are on which side. All that is drawn is
a function of SEED.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from clozes import Corpus, clozes, in_company

from experiments.quality.question_sets import (
    EVERY_WORD,
    SEED,
    in_articles,
    of_squad,
    split_hotpot,
    split_squad,
)

TOKENS_PER_WORD = 1.35


# ---- HotpotQA with fewer distractors


def shorter(
    rows: Iterable[dict[str, Any]], draw: random.Random, most: int
) -> Iterator[dict[str, Any]]:
    """The paragraphs that support the answer, and up to `most` others."""
    for row in rows:
        needed = {title for title, _ in row["supporting_facts"]}
        others = [title for title, _ in row["context"] if title not in needed]
        kept = needed | set(draw.sample(others, min(len(others), draw.randint(0, most))))
        context = [each for each in row["context"] if each[0] in kept]
        draw.shuffle(context)
        yield {**row, "context": context}


def without_answer(
    rows: Iterable[dict[str, Any]], draw: random.Random
) -> Iterator[dict[str, Any]]:
    """Questions whose supporting paragraphs were taken away: the rest does not answer them."""
    for row in rows:
        needed = {title for title, _ in row["supporting_facts"]}
        context = [each for each in row["context"] if each[0] not in needed]
        draw.shuffle(context)
        if context:
            yield {**row, "answer": "", "supporting_facts": [], "context": context}


# ---- the files


def write(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Writes the questions, one a line, in HotpotQA's format."""
    rows = list(rows)
    with file.open("w", encoding="utf-8") as out:
        for row in rows:
            kept = ("_id", "question", "answer", "answers", "supporting_facts", "context")
            some = {name: row[name] for name in kept if name in row}
            out.write(json.dumps(some, ensure_ascii=False) + "\n")
    words = sum(len(part.split()) for row in rows for _, parts in row["context"] for part in parts)
    print(
        f"{file.name}: {len(rows):,} questions, about {words * TOKENS_PER_WORD / 1e6:.1f} M tokens"
    )


def main(folder: Path) -> None:
    """Writes all files, stage by stage."""
    folder.mkdir(parents=True, exist_ok=True)
    hotpot, squad = split_hotpot(), split_squad()
    paragraphs = {side: list(of_squad(articles)) for side, articles in squad.items()}
    answered = [row for row in paragraphs["train"] if row["answer"]]
    silent = [row for row in paragraphs["train"] if not row["answer"]]

    sentences = dict[str, list[str]]()
    for row in hotpot["train"] + paragraphs["train"]:
        for title, parts in row["context"]:
            name = title if "paragraph" not in row else f"{title} ({row['paragraph'] + 1})"
            sentences.setdefault(name, [f"{part.strip()} " for part in parts if part.strip()])
    corpus, draw = Corpus(sentences), random.Random(SEED + 5)
    made = [{"_id": f"c{number}", **row} for number, row in enumerate(clozes(corpus, draw))]
    draw.shuffle(made)
    alone, among = made[:-1000], made[-1000:]
    write(folder / "1-clozes.jsonl", alone)

    write(folder / "1-validation.jsonl", paragraphs["validation"][:300])

    draw = random.Random(SEED + 7)
    again = [{**row, "_id": f"{row['_id']}-2"} for row in draw.sample(answered, 2400)]
    write(folder / "2-paragraphs.jsonl", answered + again + draw.sample(silent, 1500))
    write(folder / "2-hotpot.jsonl", shorter(hotpot["train"], draw, 1))
    some = draw.sample(answered, 800) + draw.sample(silent, 150)
    write(folder / "2-articles.jsonl", in_articles(some, squad["train"], draw, (250, 900)))

    draw = random.Random(SEED + 8)
    write(folder / "3-paragraphs.jsonl", draw.sample(answered, 1800) + draw.sample(silent, 700))
    every = list(hotpot["train"])
    draw.shuffle(every)
    none = list(without_answer(every[2500:2750], draw))
    write(folder / "3-hotpot.jsonl", every[:2500] + none)
    some = draw.sample(answered, 800) + draw.sample(silent, 120)
    write(folder / "3-articles.jsonl", in_articles(some, squad["train"], draw, (500, 2800)))
    write(folder / "3-clozes.jsonl", in_company(among, corpus, draw, (300, 1500)))

    for side in ("validation", "test"):
        write(folder / f"{side}.jsonl", mixed(paragraphs[side], squad[side], hotpot[side]))


def mixed(
    paragraphs: list[dict[str, Any]],
    articles: list[dict[str, Any]],
    hotpot: list[dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Questions of all kinds, as users have them: one in four has no answer in its document."""
    draw = random.Random(SEED + 9)
    answered = [row for row in paragraphs if row["answer"]]
    silent = [row for row in paragraphs if not row["answer"]]
    yield from draw.sample(answered, 150)
    yield from draw.sample(silent, 50)
    some = draw.sample(hotpot, 200)
    yield from some[:150]
    yield from without_answer(some[150:], draw)
    whole = draw.sample(answered, 150) + draw.sample(silent, 25)
    yield from in_articles(whole, articles, draw, EVERY_WORD)
    # Questions about another article: this one says nothing of it.
    for row in draw.sample(answered, 25):
        other = draw.choice([x for x in articles if not _is_about(x, row)])
        strange = {**row, "answer": "", "answers": [], "supporting_facts": [], "paragraph": 0}
        strange["context"] = [[other["title"].replace("_", " "), []]]
        yield from in_articles([strange], articles, draw, EVERY_WORD)


def _is_about(article: dict[str, Any], row: dict[str, Any]) -> bool:
    return article["title"].replace("_", " ") == row["context"][0][0]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
