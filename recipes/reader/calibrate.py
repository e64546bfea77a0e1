"""Fits how sure the reader that ships is, and measures it on what was held out.

    python recipes/reader/calibrate.py DATA

DATA is the folder that prepare.py made. The thresholds and the confidence are fitted to
validation.jsonl, and go into the configuration in
src/longbird/applications/reading/shipped; all figures that are printed, and reliability.png
beside it, are of test.jsonl.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scoring import kind

from experiments.quality.documents import read_rows
from longbird.applications.reading.default_reader import SHIPPED, default_reader
from longbird.applications.reading.reader import Reader
from longbird.applications.training.engine.evaluation import evaluate_rows, read_for
from longbird.applications.training.engine.trained_model import load_trained
from longbird.applications.training.metrics import squad
from longbird.applications.training.tasks.ask.calibration import RIGHT
from longbird.applications.training.tasks.ask.questions import Question
from longbird.applications.training.tasks.ask.task import Ask

EDGES = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


def calibrate(file: Path) -> None:
    """Fits thresholds and confidence, and writes them into the configuration that ships."""
    trained = load_trained(default_reader())
    assert isinstance(trained.task, Ask)
    trained.task.no_answer, trained.task.twice = 0.0, None
    rows = read_for(trained, file, print)
    evaluate_rows(trained.model, trained.task, rows, trained.tokenizer, calibrate=True)
    config = json.loads((SHIPPED / "config.json").read_text("utf-8"))
    config["task_specific_params"] = trained.model.config.task_specific_params
    (SHIPPED / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def measure(file: Path) -> None:
    """Asks as a user would, and prints how good and how sure the answers are."""
    trained = load_trained(default_reader())
    task, settings = trained.task, trained.settings
    examples = task.examples(task.rows([file], settings), settings, print)
    questions: list[Question] = [each["asked"] for each in examples]
    reader = Reader(trained.model, trained.tokenizer)
    assert reader.confidence is not None
    least = reader.confidence.least
    reader.confidence = replace(reader.confidence, least=0.0)  # all answers, with how sure each is
    answers = list(reader.ask_all((each.text, each.question) for each in questions))
    golds = [each.answers for each in questions]
    kinds = np.array([kind(row) for row in read_rows(file)])
    table = {
        "sure": np.array([answer.confidence for answer in answers]),
        "has": np.array([bool(gold) for gold in golds]),
        "f1": np.array(
            [
                squad.score(answer.text or "", gold, False)[1] if gold else 0.0
                for answer, gold in zip(answers, golds, strict=True)
            ]
        ),
    }
    print("| documents | questions | answered | right of all given | F1 | no answer | not sure |")
    print("|---|---|---|---|---|---|---|")
    for name in (*dict.fromkeys(kinds.tolist()), "all"):
        of = (kinds == name) | (name == "all")
        print(f"| {name} | {line({x: column[of] for x, column in table.items()}, least)} |")
    draw(table["sure"], table["f1"] >= RIGHT, least)


def line(table: dict[str, np.ndarray], least: float) -> str:
    """A line of the table; F1 is over all questions, and silence is right without an answer."""
    given, has = table["sure"] >= least, table["has"]
    right = (table["f1"] >= RIGHT)[given].mean() if given.any() else float("nan")
    f1 = np.where(has, given * table["f1"], ~given)
    return (
        f"{has.sum()} | {given[has].mean():.0%} | {right:.0%} | {100 * f1.mean():.1f} | "
        f"{(~has).sum()} | {(~given)[~has].mean():.0%}"
    )


def draw(sure: np.ndarray, right: np.ndarray, least: float) -> None:
    """How often answers of a confidence are right, whether or not they would be given."""
    bins = np.clip(np.digitize(sure, EDGES) - 1, 0, len(EDGES) - 2)
    figure = Figure(figsize=(4, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7")
    axes.axvline(least, color="0.7", linestyle=":")
    print("\n| confidence | answers | mean | right |\n|---|---|---|---|")
    means, shares, counts = [], [], []
    for number in np.unique(bins):
        inside = bins == number
        means.append(sure[inside].mean())
        shares.append(right[inside].mean())
        counts.append(int(inside.sum()))
        edges = f"{EDGES[number]:.1f} to {EDGES[number + 1]:.1f}"
        print(f"| {edges} | {counts[-1]} | {means[-1]:.2f} | {shares[-1]:.2f} |")
    axes.plot(means, shares, marker="o")
    for mean, share, count in zip(means, shares, counts, strict=True):
        axes.annotate(str(count), (mean, share), textcoords="offset points", xytext=(6, -10))
    axes.set(xlabel="confidence", ylabel="share of right answers", xlim=(0, 1), ylim=(0, 1))
    figure.savefig(SHIPPED / "reliability.png", dpi=90)
    error = np.average(np.abs(np.array(means) - np.array(shares)), weights=counts)
    print(f"\nExpected calibration error {error:.3f}; answers are given from {least:.2f} on.")


if __name__ == "__main__":
    data = Path(sys.argv[1])
    calibrate(data / "validation.jsonl")
    measure(data / "test.jsonl")
