"""How good the best answers of a reader are, whether or not it would give them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.quality.documents import write_rows
from longbird.applications.training.engine.evaluation import read_for
from longbird.applications.training.engine.prediction import predict
from longbird.applications.training.engine.trained_model import Trained
from longbird.applications.training.metrics import squad
from longbird.applications.training.tasks.ask.calibration import best_text
from longbird.applications.training.tasks.ask.task import Ask


def f1_by_kind(trained: Trained, rows: Sequence[Any]) -> dict[str, np.ndarray]:
    """F1 of each question that has an answer, by the kind of its document."""
    task = trained.task
    assert isinstance(task, Ask)
    answered = [row for row in rows if row["answer"]]
    with tempfile.TemporaryDirectory() as scratch:
        file = write_rows(Path(scratch) / "answered.jsonl", answered)
        table = read_for(trained, file, print)
        said = list(predict(trained.model, task, table, trained.tokenizer, 8192))
    found: dict[str, list[float]] = {}
    for row, each in zip(answered, said, strict=True):
        right = [row["answer"], *row.get("answers", ())]
        found.setdefault(kind(row), []).append(squad.score(best_text(each), right, False)[1])
    return {name: np.array(values) for name, values in found.items()}


def kind(row: Any) -> str:
    """Of a question: the paragraph given, ten paragraphs, or a whole article."""
    if len(row["context"]) == 1:
        return "paragraph"
    return "article" if row["context"][0][0].endswith(" (1)") else "HotpotQA"


def in_percent(found: dict[str, np.ndarray]) -> str:
    """Means, in words."""
    return ", ".join(f"{name} {100 * x.mean():.1f} ({len(x)})" for name, x in found.items())
