"""Models of labels along a genome: their training, and their scores along a sequence."""

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
    """Return the scores of the bins of a stretch, [bins, channels]; the last can be shorter.

    Args:
        trained: A model with scores for bins, such as of `longbird dna finetune coding`.
        sequence: Linear sequence that contains the stretch, which is also read beyond its ends.
        begin: First base of the stretch, which begins a bin.
        end: Position after its last base.
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
    """Return models that are trained on labels in windows of one length or another.

    Args:
        attempt: Trains and measures, given what makes a model, and the tokens of a window.
        settings: Everything else that determines the result.
        models: For each its name, its description, what makes it, and the tokens of a window.
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
    """Train a model on labels as `longbird dna finetune` does, and return its cost as well.

    Args:
        task: "coding" or "profile".
        files: Genomes, each before its labels.
        model: Folder of the model to start from.
        attempt: The attempt, with seed and folder.
        budget: The budget; the result is the model of the last step.
        **options: Further options of the task.

    Raises:
        KeyboardInterrupt: The run was stopped; repeating the attempt resumes it.
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
