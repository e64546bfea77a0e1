"""What shipping a reader as a difference in bytes costs.

    python recipes/reader/shrunk.py RUN QUESTIONS

The reader of any run answers the questions of a file (validation.jsonl of prepare.py) as it is,
and with weights that went through the bytes that ship.py would write.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from difference import write_difference
from scoring import f1_by_kind, in_percent
from torch import Tensor

from experiments.quality.documents import read_rows
from longbird.applications.reading.default_reader import (
    DIFFERENCE,
    apply_difference,
    starting_weights,
)
from longbird.applications.training.engine.trained_model import Trained, load_trained
from longbird.applications.training.tasks.ask.task import Ask
from longbird.files.sources import minilm


def shrink(trained: Trained) -> None:
    """Takes the weights to bytes and back."""
    weights = trained.model.state_dict()
    start = starting_weights(minilm.path(), trained.model.config.max_position_embeddings)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / DIFFERENCE
        write_difference(weights, start, file)
        print(f"{file.stat().st_size / 1e6:.1f} MB instead of {_megabytes(weights):.1f}")
        trained.model.load_state_dict(apply_difference(start, file))


def _megabytes(weights: Mapping[str, Tensor]) -> float:
    return sum(value.numel() * 4 for value in weights.values()) / 1e6


def main(run: Path, questions: Path) -> None:
    """Prints F1 of both, and of how many questions it changes."""
    rows = read_rows(questions)
    trained = load_trained(run)
    assert isinstance(trained.task, Ask)
    trained.task.twice = True
    before = f1_by_kind(trained, rows)
    print(f"as it is: {in_percent(before)}")
    shrink(trained)
    after = f1_by_kind(trained, rows)
    print(f"shrunk: {in_percent(after)}")
    pairs = [np.concatenate(list(found.values())) for found in (before, after)]
    changed = int((pairs[0] != pairs[1]).sum())
    print(
        f"{100 * (pairs[1] - pairs[0]).mean():+.2f} points; {changed} of {len(pairs[0])} changed"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
