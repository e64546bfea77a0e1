"""Makes the files that the reader is trained and measured with, out of HotpotQA and SQuAD 2.0.

    python recipes/reader/prepare.py FOLDER

`longbird.bench.quality.question_sets` says which questions are on which side. All that is drawn is
a function of SEED.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from longbird.bench.quality.question_sets import (
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
            kept = ("_id", "question", "answer", "supporting_facts", "context")
            out.write(json.dumps({name: row[name] for name in kept}, ensure_ascii=False) + "\n")
    words = sum(len(part.split()) for row in rows for _, parts in row["context"] for part in parts)
    print(
        f"{file.name}: {len(rows):,} questions, about {words * TOKENS_PER_WORD / 1e6:.1f} M tokens"
    )


def main(folder: Path) -> None:
    """Writes all files."""
    folder.mkdir(parents=True, exist_ok=True)
    hotpot, squad = split_hotpot(), split_squad()
    draw = random.Random(SEED)
    paragraphs = {side: list(of_squad(articles)) for side, articles in squad.items()}

    write(folder / "squad-train.jsonl", paragraphs["train"])
    write(folder / "squad-validation.jsonl", paragraphs["validation"])
    write(folder / "hotpot-short.jsonl", shorter(hotpot["train"], draw, 2))
    write(folder / "hotpot-train.jsonl", hotpot["train"])
    some = draw.sample(hotpot["train"], 800)
    write(folder / "hotpot-none.jsonl", without_answer(some, draw))
    write(folder / "hotpot-validation.jsonl", hotpot["validation"])
    write(folder / "hotpot-test.jsonl", hotpot["test"])
    long = draw.sample(paragraphs["train"], 3000)
    write(folder / "articles-train.jsonl", in_articles(long, squad["train"], draw, (500, 2800)))
    for side in ("validation", "test"):
        whole = in_articles(paragraphs[side], squad[side], draw, (10**6, 10**6))
        write(folder / f"articles-{side}.jsonl", whole)
        (folder / f"squad-{side}.json").write_text(json.dumps({"data": squad[side]}), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
