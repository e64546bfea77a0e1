"""Write the files of stage 1: short paragraphs with questions of several kinds.

    python recipes/reader/mixture.py SOURCES FOLDER

SOURCES is the folder that data.py filled; FOLDER gets 1-train.jsonl and 1-validation.jsonl. All of
SQuAD 1.1's training set is used, but for the articles of the validation file. Questions without an
answer are real questions asked of another paragraph, found by BM25 in the same article or
elsewhere, and those of QuAC. The other sets are sampled. A row that shares twelve words in a row,
or its question, with a text that readers are measured on is left out. All that is drawn is a
function of SEED.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from question_rows import Row, boolq, coqa, instructions, natural, quac, squad

from experiments.quality.bm25 import Bm25
from experiments.quality.question_sets import split_hotpot
from longbird.applications.training.tasks.ask.questions import mentions

SEED = 20
COUNTS = {
    "same article": 18_000, "elsewhere": 12_000, "quac": 4_000, "quac, none": 6_000,
    "quoref": 5_000, "ropes": 3_000, "drop": 3_000, "natural": 8_000, "natural, none": 1_500,
    "coqa": 3_000, "boolq": 8_000, "boolq, none": 1_500, "hotpot": 3_000,
}  # fmt: skip
VALIDATION = {"articles": 12, "answered": 450, "none": 200}
OVERLAP = 12
"""Words in a row that a training text may not share with a test text."""
TITLED = 0.3
"""The share of SQuAD's paragraphs that are read with the title of their article."""
UNMARKED = 0.07
"""The share of questions without a question mark, as people type them."""


def text_of(row: Row) -> str:
    """Return the paragraphs of a row without their titles."""
    return " ".join("".join(parts) for _, parts in row["context"])


# ---- questions without an answer


def unanswerable(
    rows: Sequence[Row], draw: random.Random, same: int, elsewhere: int
) -> Iterator[Row]:
    """Yield questions with paragraphs that look as if they answered them, and do not.

    Args:
        rows: Questions with an answer, and their paragraphs.
        draw: Decides which questions are taken.
        same: The number of questions asked of a paragraph of their own article.
        elsewhere: The number of questions asked of a paragraph of another article.
    """
    paragraphs = {text_of(each): each for each in rows}
    texts, owners = list(paragraphs), [each.get("article") for each in paragraphs.values()]
    articles = {name: {i for i, own in enumerate(owners) if own == name} for name in set(owners)}
    bm25 = Bm25(texts)
    chosen = draw.sample(range(len(rows)), min(len(rows), (same + elsewhere) * 5 // 4))
    wanted = {"same": same, "other": elsewhere}
    for first in range(0, len(chosen), 256):
        some = [rows[number] for number in chosen[first : first + 256]]
        for each, scores in zip(some, bm25.scores([x["question"] for x in some]), strict=True):
            side = "same" if draw.random() * sum(wanted.values()) < wanted["same"] else "other"
            if not wanted[side]:
                continue
            own = articles[each.get("article")]
            if side == "same":
                ranked = sorted(own, key=lambda i: -scores[i])[:5]
            else:
                best = np.argpartition(-scores, 60)[:60].tolist()
                ranked = sorted(best, key=lambda i: -scores[i])
                if each.get("article") is not None:
                    ranked = [i for i in ranked if i not in own]
            fit = [i for i in ranked[:6] if not _answers(texts[i], each)]
            if fit:
                wanted[side] -= 1
                other = paragraphs[texts[draw.choice(fit[:3])]]
                yield {
                    **each,
                    "_id": f"{each['_id']}-none",
                    "answer": "",
                    "supporting_facts": [],
                    "context": other["context"],
                    "article": other.get("article"),
                }


def _answers(text: str, row: Row) -> bool:
    """Does a text have the answer, or is it the text that the question is about?"""
    if text == text_of(row):
        return True
    return row["answer"] not in ("yes", "no") and bool(mentions(text, row["answer"]))


# ---- what tests are made of


def words(text: str) -> list[str]:
    """Return the words of a text in lowercase."""
    return re.findall(r"\w+", text.lower())


def shingles(text: str) -> Iterator[int]:
    """Yield a number for every OVERLAP words in a row."""
    found = words(text)
    for start in range(len(found) - OVERLAP + 1):
        yield hash(tuple(found[start : start + OVERLAP]))


class Reserved:
    """Texts and questions that readers are measured on.

    Args:
        sources: The folder with files in SQuAD's format.
        hotpot: Questions of HotpotQA that are held out.
    """

    def __init__(self, sources: Path, hotpot: Iterable[Row]) -> None:
        texts, questions = list[str](), list[str]()
        for file in [*sources.glob("squad*-dev.json"), *sources.glob("shifts-*.json")]:
            content = json.loads(file.read_text("utf-8"))
            for article in content["data"] if isinstance(content, dict) else content:
                for paragraph in article["paragraphs"]:
                    texts.append(paragraph["context"])
                    questions += [asked["question"] for asked in paragraph["qas"]]
        for each in hotpot:
            texts += ["".join(parts) for _, parts in each["context"]]
            questions.append(each["question"])
        self.texts = {one for text in set(texts) for one in shingles(text)}
        self.questions = {" ".join(words(question)) for question in questions}
        self.known = dict[str, bool]()

    def overlaps(self, row: Row) -> bool:
        """Does a row have some of them?"""
        text = text_of(row)
        if text not in self.known:
            self.known[text] = any(one in self.texts for one in shingles(text))
        question = " ".join(words(row["question"]))
        return self.known[text] or (len(question.split()) > 4 and question in self.questions)


# ---- the mixture


def shorter(row: Row, draw: random.Random) -> Row:
    """Return a question of HotpotQA with the paragraphs that support it, and perhaps another."""
    needed = {title for title, _ in row["supporting_facts"]}
    others = [title for title, _ in row["context"] if title not in needed]
    kept = needed | set(draw.sample(others, min(len(others), draw.randint(0, 1))))
    context = [each for each in row["context"] if each[0] in kept]
    draw.shuffle(context)
    return {**row, "context": context}


def other_sets(sources: Path, draw: random.Random) -> dict[str, list[Row]]:
    """Return samples of all sets but SQuAD."""
    dialogues = list(quac(sources / "quac.jsonl"))
    yes_no = list(boolq(sources / "boolq.jsonl"))
    questions = list(natural(sources / "natural.json"))
    hotpot = [shorter(each, draw) for each in split_hotpot()["train"]]
    hotpot.sort(key=lambda each: each["answer"] not in ("yes", "no"))  # all of these are taken
    draw.shuffle(yes_no)
    half = COUNTS["boolq"] // 2
    agreed = [each for each in yes_no if each["answer"] == "yes"]
    denied = [each for each in yes_no if each["answer"] == "no"]
    found = {
        "quac": [each for each in dialogues if each["answer"]],
        "quac, none": [each for each in dialogues if not each["answer"]],
        **{
            name: list(instructions(sources / f"{name}.json", name))
            for name in ("quoref", "ropes", "drop")
        },
        "natural": questions,
        "natural, none": list(unanswerable(questions, draw, 0, COUNTS["natural, none"])),
        "coqa": list(coqa(sources / "coqa.json")),
        "boolq": agreed[:half] + denied[:half],
        "boolq, none": list(unanswerable(yes_no, draw, 0, COUNTS["boolq, none"])),
        "hotpot": hotpot[: COUNTS["hotpot"]],
    }
    return {name: draw.sample(rows, min(len(rows), COUNTS[name])) for name, rows in found.items()}


def titled(row: Row, draw: random.Random) -> Row:
    """Return a row of SQuAD, some with the title of its article before the paragraph."""
    if draw.random() >= TITLED:
        return row
    title = row["article"].replace("_", " ")
    facts = [[title, index] for _, index in row["supporting_facts"]]
    return {**row, "supporting_facts": facts, "context": [[title, row["context"][0][1]]]}


def typed(row: Row, draw: random.Random) -> Row:
    """Return a row whose question has a question mark, but for a few."""
    question = row["question"].rstrip("? ")
    return {**row, "question": question + ("" if draw.random() < UNMARKED else "?")}


def write(file: Path, rows: Sequence[Row]) -> None:
    """Write rows, one in a line, and print what they are."""
    kept = ("_id", "question", "answer", "supporting_facts", "context")
    with file.open("w", encoding="utf-8") as out:
        for each in rows:
            out.write(json.dumps({name: each[name] for name in kept}, ensure_ascii=False) + "\n")
    kinds = Counter(
        {"": "none", "yes": "yes", "no": "no"}.get(each["answer"], "span") for each in rows
    )
    count = sum(len(words(text_of(each))) for each in rows)
    print(f"{file}: {len(rows):,} questions ({dict(kinds)}), {count / 1e6:.1f} M words")


def main(sources: Path, folder: Path) -> None:
    """Write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(SEED)
    hotpot = split_hotpot()
    reserved = Reserved(sources, hotpot["validation"] + hotpot["test"])
    rows = list(squad(sources / "squad-train.json"))
    held_out = set(draw.sample(sorted({each["article"] for each in rows}), VALIDATION["articles"]))
    sides: dict[bool, list[Row]] = {True: [], False: []}
    for each in rows:
        sides[each["article"] in held_out].append(each)

    same, elsewhere = COUNTS["same article"], COUNTS["elsewhere"]
    none = list(unanswerable(sides[False], draw, same, elsewhere))
    sets = {
        "squad": [titled(each, draw) for each in sides[False]],
        "squad, none": [titled(each, draw) for each in none],
        **other_sets(sources, draw),
    }
    train: list[Row] = []
    for name, some in sets.items():
        fit = [typed(each, draw) for each in some if not reserved.overlaps(each)]
        print(f"{name}: {len(fit):,}, and {len(some) - len(fit):,} left out that overlap tests")
        train += fit
    draw.shuffle(train)
    write(folder / "1-train.jsonl", train)

    answered = draw.sample(sides[True], VALIDATION["answered"])
    none = list(unanswerable(sides[True], draw, VALIDATION["none"], 0))
    validation = [typed(each, draw) for each in [*answered, *none]]
    write(folder / "1-validation.jsonl", validation)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
