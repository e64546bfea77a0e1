"""How good a model is on files: metrics with intervals, and the examples it is worst at."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from longbird.tasks.documents import stored
from longbird.tasks.files import rows as file_rows
from longbird.tasks.folder import write_text
from longbird.tasks.predict import predict
from longbird.tasks.task import Task
from longbird.tasks.trained import Trained, load_trained

SAMPLES = 1000
MOST_WORST = 50


@dataclass(frozen=True)
class Evaluation:
    """What a model reaches on documents.

    Attributes:
        metrics: By name, of all documents; `intervals` has the 95% confidence intervals.
        worst: The documents that it is most wrong about, the worst first.
    """

    metrics: dict[str, Any]
    worst: list[dict[str, Any]]

    def write_worst(self, file: Path) -> None:
        """A JSON object in each line."""
        write_text(
            file, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in self.worst)
        )


def evaluate_rows(
    model: Any,
    task: Task,
    rows: Dataset,
    tokenizer: Any,
    tokens_per_batch: int = 16384,
    advance: Callable[[int], None] = lambda _: None,
    calibrate: bool = False,
) -> Evaluation:
    """Runs a model over documents, as `longbird.tasks.documents.stored` makes them.

    With `calibrate`, the task then chooses its thresholds by them, for other documents.
    """
    said = predict(model.eval(), task, rows, tokenizer, tokens_per_batch, advance)
    whole: Any = rows.remove_columns(["input_ids"])
    examples, said = task.joined(whole, said)
    metrics = task.measure(examples, said)
    metrics["intervals"] = intervals(task, examples, said)
    wrongness = [task.wrongness(*pair) for pair in zip(examples, said, strict=True)]
    if calibrate:
        task.calibrate(examples, said, model.config)
    worst = sorted(range(len(said)), key=lambda row: -wrongness[row])[:MOST_WORST]
    return Evaluation(
        metrics,
        [
            {
                "place": examples[row]["place"],
                "expected": task.expected(examples[row]),
                "given": task.answer(said[row]),
                "text": examples[row]["text"][:500],
            }
            for row in worst
        ],
    )


def intervals(
    task: Task, examples: Sequence[Any], said: Sequence[Any]
) -> dict[str, tuple[float, float]]:
    """95% confidence intervals by the bootstrap: documents drawn again, with replacement."""
    share = np.full(len(said), 1 / len(said))
    counts = np.random.default_rng(0).multinomial(len(said), share, SAMPLES)
    return {
        name: (float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975)))
        for name, values in task.resampled(examples, said, counts).items()
    }


def evaluate(
    model: str | Path,
    files: str | Path | Iterable[str | Path],
    *,
    say: Callable[[str], None] = print,
    **options: Any,
) -> Evaluation:
    """How good a model is on files.

    Args:
        model: The folder of a run, or of a model.
        files: As for `finetune`.
        say: Is told what is going on.
        **options: Fields of `longbird.tasks.settings.Settings` that say how to read the files;
            those of the run by default.
    """
    trained = load_trained(model)
    rows = read_for(trained, files, say, **options)
    return evaluate_rows(trained.model, trained.task, rows, trained.tokenizer)


def read_for(
    trained: Trained,
    files: str | Path | Iterable[str | Path],
    say: Callable[[str], None],
    **options: Any,
) -> Dataset:
    """Files as the features of a model."""
    several = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    settings = trained.settings.overridden(options)
    examples = trained.task.examples(file_rows(several, settings.encoding), settings, say)
    with tempfile.TemporaryDirectory() as scratch:
        rows = stored(
            trained.task, examples, trained.tokenizer, trained.length, Path(scratch, "rows.arrow")
        )
        if len(rows) == 0:
            raise ValueError(f"{', '.join(map(str, several))} has no rows")
        # On Linux a file that is mapped stays readable after its folder has gone.
        return rows
