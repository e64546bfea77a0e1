"""Two models on the same documents: is one better, or was it luck?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from longbird.applications.training.tasks.task import Example, Prediction, Task

SAMPLES = 2000


def compare(
    task: Task,
    examples: tuple[Sequence[Example], Sequence[Example]],
    said: tuple[Sequence[Prediction], Sequence[Prediction]],
) -> dict[str, dict[str, Any]]:
    """For each metric: by how much the first model is better, and how sure that is.

    The interval is the paired bootstrap's: documents drawn again, with replacement, the same ones
    for both. The p-value is that of a paired permutation test: if the models were alike, each
    document's two predictions could be swapped; it is the share of swaps that make a difference
    at least as large, of all of them where they are few, else of some drawn.

    Args:
        task: What both are for.
        examples: The documents as each model reads them, in the same order.
        said: What each says of them.

    Returns:
        By metric: `value` and `other`, their `difference`, its 95% `interval`, and `p_value`.
    """
    n = len(said[0])
    first, second = (task.resampled(examples[side], said[side], _drawn(n)) for side in (0, 1))
    every, together = [*examples[0], *examples[1]], [*said[0], *said[1]]
    swaps, all_of_them = _swaps(n)
    kept, swapped = (
        task.resampled(every, together, np.concatenate([mine, 1 - mine], axis=1))
        for mine in (swaps, 1 - swaps)
    )
    found: dict[str, dict[str, Any]] = {}
    for name in kept:
        # The first of the swaps is none.
        value, other = float(kept[name][0]), float(swapped[name][0])
        drawn = first[name] - second[name]
        as_large = np.abs(kept[name] - swapped[name]) >= abs(value - other) - 1e-12
        found[name] = {
            "value": value,
            "other": other,
            "difference": value - other,
            "interval": tuple(np.nanquantile(drawn, [0.025, 0.975]).tolist()),
            "p_value": float(as_large.mean()),
            "swaps": f"{len(swaps)}, all" if all_of_them else f"{len(swaps)}, drawn",
        }
    return found


def _drawn(n: int) -> np.ndarray:
    """How often each sample has each document, int [samples, n]."""
    return np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), SAMPLES)


def _swaps(n: int) -> tuple[np.ndarray, bool]:
    """1 where a document keeps its predictions, int [swaps, n], and whether these are all.

    The first keeps all. It counts among those that are drawn, too, so that no p-value is 0.
    """
    if 2**n <= SAMPLES:
        return np.array(list(itertools.product((1, 0), repeat=n))), True
    drawn = np.random.default_rng(1).integers(0, 2, (SAMPLES, n))
    drawn[0] = 1
    return drawn, False
