"""Measure a reader by the official scores of SQuAD 1.1 and 2.0, SQuADShifts and HotpotQA.

    python recipes/reader/evaluate.py SOURCES MODEL [--sets squad hotpot] [--questions 200]

SOURCES is the folder that data.py filled, and MODEL a folder of a model, a run or a checkpoint, or
"default". Nothing here was trained on. In all sets but SQuAD 2.0 every question has an answer, and
the reader's best candidate counts, whether or not it is sure; in SQuAD 2.0 the reader may abstain,
by its own threshold. Intervals are of 95%, by resampling documents.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import longbird as lb
from experiments.quality.question_sets import split_hotpot
from longbird.applications.training.metrics import hotpot, squad

SAMPLES = 2000
MOST_OF_ARTICLES = 300
"""Questions about whole articles, unless another number is given: each takes a second or more."""


@dataclass(frozen=True)
class Case:
    """A question with its document.

    Attributes:
        document: What the question belongs to; intervals resample these.
        text: What is read.
        question: The question.
        answers: All answers that are right; none if the document has none.
    """

    document: str
    text: str
    question: str
    answers: Sequence[str]


# ---- sets


def of_paragraphs(file: Path) -> Iterator[Case]:
    """Yield the questions of a file in SQuAD's format, each with its paragraph."""
    for text, _, asked in _asked(file):
        yield Case(text, text, asked["question"], [each["text"] for each in asked["answers"]])


def of_articles(file: Path) -> Iterator[Case]:
    """Yield the same questions, each with the whole article."""
    for paragraph, article, asked in _asked(file):
        answers = [each["text"] for each in asked["answers"]]
        yield Case(paragraph, article, asked["question"], answers)


def _asked(file: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the paragraph, the article and the fields of each question."""
    content = json.loads(file.read_text("utf-8"))
    for article in content["data"] if isinstance(content, dict) else content:
        whole = "\n\n".join(each["context"].strip() for each in article["paragraphs"])
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                yield paragraph["context"], whole, asked


def of_hotpot() -> Iterator[Case]:
    """Yield the held-out questions of HotpotQA, each with its ten paragraphs."""
    for row in split_hotpot()["test"]:
        text = "\n\n".join(f"{title}\n{''.join(parts)}" for title, parts in row["context"])
        yield Case(row["_id"], text, row["question"], [row["answer"]])


def cases_of(name: str, sources: Path) -> list[Case]:
    """Return the questions of a set."""
    if name == "hotpot":
        return list(of_hotpot())
    if name == "articles":
        return list(of_articles(sources / "squad-dev.json"))
    return list(of_paragraphs(sources / FILES[name]))


FILES = {
    "squad": "squad-dev.json",
    "squad2": "squad2-dev.json",
    "wikipedia": "shifts-wikipedia.json",
    "newspaper": "shifts-newspaper.json",
    "reddit": "shifts-reddit.json",
    "amazon": "shifts-amazon.json",
}
SETS = (*FILES, "articles", "hotpot")


# ---- scores


def score(name: str, given: str, answers: Sequence[str]) -> tuple[float, float]:
    """Return exact match and F1 of an answer, by the official script of a set."""
    if name == "hotpot":
        found = [hotpot.score(given, right, (), ()) for right in answers]
        return max((each["exact_match"], each["f1"]) for each in found)
    return squad.score(given, answers, second=name == "squad2")


def interval(values: np.ndarray, documents: Sequence[str]) -> tuple[float, float]:
    """Return the 95% bootstrap interval of a mean; questions of one document stay together."""
    _, owner = np.unique(documents, return_inverse=True)
    sums, counts = np.bincount(owner, values), np.bincount(owner)
    drawn = np.random.default_rng(0).integers(len(counts), size=(SAMPLES, len(counts)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def measure(name: str, cases: Sequence[Case], given: Sequence[str]) -> dict[str, Any]:
    """Return the scores of a set in percent, each with its interval."""
    scores = 100 * np.array(
        [score(name, text, case.answers) for text, case in zip(given, cases, strict=True)]
    )
    columns = {"exact match": scores[:, 0], "F1": scores[:, 1]}
    answered = np.array([bool(case.answers) for case in cases])
    parts = {"": np.ones(len(cases), bool)}
    if not answered.all():
        parts |= {" of answerable": answered, " of unanswerable": ~answered}
    found: dict[str, Any] = {}
    for part, chosen in parts.items():
        if not chosen.any():
            continue
        found["questions" + part] = int(chosen.sum())
        documents = [case.document for case, taken in zip(cases, chosen, strict=True) if taken]
        for column, values in columns.items():
            low, high = interval(values[chosen], documents)
            mean = float(values[chosen].mean())
            found[column + part] = [round(x, 2) for x in (mean, low, high)]
    return found


# ---- the reader


def reader_of(model: str, quantize: str | None, abstains: bool) -> Callable[..., Any]:
    """Return a reader, as a function of pairs of texts and questions that yields its answers."""
    folder = Path(model)
    # A checkpoint is the folder of a model, although a run that is not finished surrounds it.
    reader = lb.Reader.from_pretrained(folder if folder.exists() else model, quantize)
    if not abstains:
        reader.confidence = reader.no_answer = None
    return reader.ask_all


def main(arguments: argparse.Namespace) -> None:
    """Measure, and print a table."""
    report: dict[str, Any] = {"model": arguments.model, "quantize": arguments.quantize}
    print("| set | questions | exact match | F1 | seconds |\n|---|---|---|---|---|")
    for name in arguments.sets:
        cases = cases_of(name, arguments.sources)
        wanted = arguments.questions or (MOST_OF_ARTICLES if name == "articles" else len(cases))
        if wanted < len(cases):
            cases = random.Random(0).sample(cases, wanted)
        ask = reader_of(arguments.model, arguments.quantize, abstains=name == "squad2")
        started = time.perf_counter()
        answers = ask((case.text, case.question) for case in cases)
        found = measure(name, cases, [answer.text or "" for answer in answers])
        found["seconds"] = round(time.perf_counter() - started, 1)
        report[name] = found
        for part in ("", " of answerable", " of unanswerable"):
            if f"F1{part}" in found:
                both = " | ".join(shown(*found[f"{each}{part}"]) for each in ("exact match", "F1"))
                count = found[f"questions{part}"]
                print(f"| {name}{part} | {count} | {both} | {found['seconds']} |", flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def shown(mean: float, low: float, high: float) -> str:
    """Return a mean with its interval as text."""
    return f"{mean:.1f} ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    given.add_argument("sources", type=Path, help="folder that data.py filled")
    given.add_argument("model", help="folder of a model, run or checkpoint, or default")
    given.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    given.add_argument("--questions", type=int, help="number drawn of each set; all by default")
    given.add_argument("--quantize", choices=["int8"])
    given.add_argument("--json", type=Path, help="file to write the scores to")
    main(given.parse_args())
