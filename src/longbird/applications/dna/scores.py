"""Metrics of scores that separate two classes, for many bootstrap samples at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

THRESHOLD = 0.5
MOST = 2**24
"""Maximum number of scores that are ranked exactly; of more, the last three bits are ignored."""
SAMPLED = 2000
"""Minimum number of levels in samples: half for positives, however rare, and half for all."""


def marked(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return scores and classes in four bytes each: float32, negative for negatives.

    Args:
        scores: Scores between 0 and 1, [scores].
        truth: Whether each is a positive, bool [scores].

    Examples:
        >>> marked(np.array([0.0, 0.25, 0.5]), np.array([False, False, True])).tolist()
        [-0.0, -0.25, 0.5]
    """
    return np.copysign(scores, np.where(truth, 1, -1)).astype(np.float32)


class Ranked:
    """Counts of positives and negatives at each level of a score, for each example.

    Args:
        levels: Levels of the score, the highest first, [levels].
        true: Number of positives of each example at each level, sparse [examples, levels].
        false: Number of negatives.
        all_levels: Levels for all examples together, if these are finer.
        all_true: Number of positives at each of these, [all levels].
        all_false: Number of negatives.
    """

    def __init__(
        self,
        levels: np.ndarray,
        true: Any,
        false: Any,
        all_levels: np.ndarray | None = None,
        all_true: np.ndarray | None = None,
        all_false: np.ndarray | None = None,
    ) -> None:
        self.levels, self.true, self.false = levels, true, false
        self.examples: int = true.shape[0]
        self.all_levels = levels if all_levels is None else all_levels
        self.all_true = true.sum(0) if all_true is None else all_true
        self.all_false = false.sum(0) if all_false is None else all_false

    @classmethod
    def each(cls, scores: np.ndarray, truth: np.ndarray) -> Ranked:
        """Count examples with one score and one class each; every score is a level."""
        levels, at = np.unique(-scores, return_inverse=True)  # the highest first

        def table(chosen: np.ndarray) -> csr_array:
            ones, places = np.ones(int(chosen.sum())), (np.flatnonzero(chosen), at[chosen])
            return csr_array((ones, places), shape=(len(scores), len(levels)))

        return cls(-levels, table(truth), table(~truth))

    @classmethod
    def marked(cls, examples: Sequence[np.ndarray]) -> Ranked:
        """Count examples with many scores each, which the function `marked` has made."""
        every = np.concatenate(examples)
        if len(every) > MOST:
            every = (every.view(np.uint32) & 0xFFFFFFF8).view(np.float32)
        there = np.unique(np.abs(every))[::-1]  # the highest first
        true, false = (
            np.bincount(np.searchsorted(-there, own), minlength=len(there))
            for own in (-every[~np.signbit(every)], every[np.signbit(every)])
        )
        share = true / max(true.sum(), 1) + (true + false) / max(len(every), 1)
        upto = np.cumsum(share * (SAMPLED / 2))
        joined = np.floor(upto) + np.floor(upto - share * (SAMPLED / 2))  # large shares stay alone
        joined += there < THRESHOLD  # none has scores on both sides of it
        lowest = there[np.append(np.diff(joined) > 0, True)]

        def table(truth: bool) -> Any:
            rows: list[csr_array] = []
            for example in examples:
                own = np.abs(example[np.signbit(example) != truth])
                levels = np.searchsorted(-lowest, -own)
                counts = np.bincount(levels, minlength=len(lowest))
                rows.append(csr_array(counts[None].astype(np.float32)))
            return vstack(rows, "csr")

        return cls(lowest, table(True), table(False), there, true, false)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Return the metrics of samples [samples, examples]; NaN if one has a single class."""
        true, false = (np.asarray((each.T @ counts.T).T) for each in (self.true, self.false))
        return metrics_of_counts(self.levels, true, false)

    def whole(self) -> dict[str, float]:
        """Return the metrics of all examples."""
        found = metrics_of_counts(self.all_levels, self.all_true[None], self.all_false[None])
        return {name: float(values[0]) for name, values in found.items()}

    @property
    def prevalence(self) -> float:
        """Share of positives."""
        true, false = float(self.all_true.sum()), float(self.all_false.sum())
        return true / max(true + false, 1)


def metrics_of_counts(
    levels: np.ndarray, true: np.ndarray, false: np.ndarray
) -> dict[str, np.ndarray]:
    """Return metrics, each [samples], from counts [samples, levels], highest level first."""
    # Counts are summed in floating point, which is exact up to 2**53. Products of counts overflow
    # int64 even in small genomes: four counts of 100,000 bases multiply to 10**20.
    true, false = true.astype(np.float64), false.astype(np.float64)
    found, wrong = np.cumsum(true, -1), np.cumsum(false, -1)
    positives, negatives = found[:, -1:], wrong[:, -1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        # A pair of equal scores counts half.
        below = negatives - wrong + false / 2
        auroc = (true * below).sum(-1) / (positives * negatives)[:, 0]
        precision = found / np.maximum(found + wrong, 1)
        average = (true * precision).sum(-1) / positives[:, 0]
        average = np.where(negatives[:, 0] > 0, average, np.nan)
        cut = int(np.searchsorted(-levels, -THRESHOLD, "right")) - 1
        tp = found[:, cut] if cut >= 0 else np.zeros(len(true))
        fp = wrong[:, cut] if cut >= 0 else np.zeros(len(true))
        fn, tn = positives[:, 0] - tp, negatives[:, 0] - fp
        root = np.sqrt((tp + fp) * (tp + fn)) * np.sqrt((tn + fp) * (tn + fn))
        mcc = np.where(root > 0, (tp * tn - fp * fn) / np.maximum(root, 1), 0.0)
        some = np.where(positives[:, 0] > 0, 1.0, np.nan)
        return {
            "auroc": auroc,
            "average_precision": average,
            "f1": some * 2 * tp / np.maximum(2 * tp + fp + fn, 1),
            "mcc": np.where(positives[:, 0] * negatives[:, 0] > 0, mcc, np.nan),
            "precision": some * tp / np.maximum(tp + fp, 1),
            "recall": some * tp / np.maximum(tp + fn, 1),
        }
