"""Models of tracks of labels: how they learn, and what they say along a sequence, bin by bin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.dna.bases import letters
from experiments.dna.classifying import Budget
from experiments.framework.experiment import Attempt, Contestant, Outcome

if TYPE_CHECKING:
    from longbird.applications.dna.runs import TrainedDna

MARGIN = 8
"""A window gives up so much of it on each side: an eighth, and a bin at least."""


def along(trained: TrainedDna, sequence: np.ndarray, begin: int, end: int) -> np.ndarray:
    """The scores of the bins of a stretch, [bins, channels]; the last may have fewer bases.

    Args:
        trained: A model with scores for bins, such as of `longbird dna finetune coding`.
        sequence: That the stretch is part of, and that is read beyond its ends, as a line.
        begin: The first base of the stretch, which begins a bin.
        end: Behind its last base.
    """
    import torch

    task, size = trained.task, getattr(trained.task, "bin", 1)
    bins = task.window // size
    margin = min(max(1, bins // MARGIN), (bins - 1) // 2) * size
    core = bins * size - 2 * margin
    found: list[np.ndarray] = []
    for first in range(begin, end, core):
        last = min(first + core, end)
        left = max(first - margin, first % size)
        right = min(last + margin, len(sequence))
        with torch.no_grad():
            [scores] = task.scored(trained.model, [letters(sequence[left:right])])
        skip = (first - left) // size
        found.append(scores[skip : skip + -(-(last - first) // size)])
    return np.concatenate(found)


def contestants(
    attempt: Callable[[Callable[[Attempt], Path], int, Attempt], Outcome],
    settings: Mapping[str, Any],
    models: Iterable[tuple[str, str, Callable[[Attempt], Path], int]],
) -> list[Contestant]:
    """Models that learn tracks of labels in windows of one length or another.

    Args:
        attempt: Trains and measures, given what makes a model, and the tokens of a window.
        settings: All else that decides what it finds.
        models: Of each its name, what it is, what makes it, and the tokens of a window.
    """
    return [
        Contestant(name, about, partial(attempt, which, window), {**settings, "window": window})
        for name, about, which, window in models
    ]


def finetuned(
    task: str,
    files: Sequence[Path],
    model: Path,
    attempt: Attempt,
    budget: Budget,
    **options: Any,
) -> tuple[TrainedDna, dict[str, float]]:
    """A model that learned tracks of labels as `longbird dna finetune` does, and what it cost.

    Args:
        task: "coding" or "profile".
        files: Genomes, each before its labels.
        model: The folder that it starts from.
        attempt: Whose seed and folder it has.
        budget: What it may spend; the model is that of the last step.
        **options: More fields of `DnaSettings`.

    Raises:
        KeyboardInterrupt: It was stopped; the same attempt goes on.
    """
    from experiments.dna.models import costs
    from longbird.applications.dna import runs

    done = runs.finetune(
        task,
        files[0],
        files[1:],
        attempt.folder / "run",
        say=attempt.say,
        model=str(model),
        steps=budget.steps,
        tokens_per_batch=budget.batch,
        learning_rate=budget.learning_rate,
        validation_on=("none",),
        seed=attempt.seed,
        **options,
    )
    if not done.finished:
        raise KeyboardInterrupt
    return runs.load(done.path), costs(done.path)
