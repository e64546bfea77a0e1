"""How well scores tell two classes apart, with many samples at once for intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

THRESHOLD = 0.5
STEPS, FURTHEST = 100, 20
"""Scores of single bases, of which there may be millions, are rounded down to a hundredth of a
logit between -20 and 20: what is rare has low scores, which differ as much as others there."""
LEVELS = 2 * STEPS * FURTHEST + 1


class Tally(NamedTuple):
    """How often the scores of an example have each level; one needs few bytes, however long.

    Attributes:
        levels: That occur, the lowest first; 0 is -20.
        true: Scores of each that are of what is true.
        false: And of what is not.
    """

    levels: np.ndarray
    true: np.ndarray
    false: np.ndarray


def tally(scores: np.ndarray, truth: np.ndarray) -> Tally:
    """Counts the scores of an example, rounded down; what reaches 0.5 still does.

    Args:
        scores: Between 0 and 1, [scores].
        truth: bool [scores].

    Examples:
        >>> found = tally(
        ...     np.array([0.0, 0.4999, 0.5, 0.5001]), np.array([True, True, False, True])
        ... )
        >>> found.levels.tolist(), found.true.tolist(), found.false.tolist()
        ([0, 1999, 2000], [1, 1, 1], [0, 0, 1])
    """
    with np.errstate(divide="ignore"):
        logits = np.log(scores.astype(np.float64)) - np.log1p(-scores.astype(np.float64))
    at = np.floor((np.clip(logits, -FURTHEST, FURTHEST)) * STEPS).astype(np.int64)
    at += STEPS * FURTHEST
    true, false = (np.bincount(at[own], minlength=LEVELS) for own in (truth, ~truth))
    there = np.flatnonzero(true + false)
    return Tally(
        there.astype(np.int16), true[there].astype(np.uint32), false[there].astype(np.uint32)
    )


class Ranked:
    """What is true and what is not at each level of a score, example by example.

    Args:
        levels: The highest first, [levels].
        true: How often each example has each level and is true, sparse [examples, levels].
        false: And is not.
    """

    def __init__(self, levels: np.ndarray, true: Any, false: Any) -> None:
        self.levels, self.true, self.false = levels, true, false
        self.examples: int = true.shape[0]

    @classmethod
    def each(cls, scores: np.ndarray, truth: np.ndarray) -> Ranked:
        """Of examples with one score each, every score being a level of its own.

        Args:
            scores: Between 0 and 1, [examples].
            truth: bool [examples].
        """
        levels, at = np.unique(-scores, return_inverse=True)  # the highest first

        def table(chosen: np.ndarray) -> csr_array:
            ones, places = np.ones(int(chosen.sum())), (np.flatnonzero(chosen), at[chosen])
            return csr_array((ones, places), shape=(len(scores), len(levels)))

        return cls(-levels, table(truth), table(~truth))

    @classmethod
    def counted(cls, tallies: Sequence[Tally]) -> Ranked:
        """Of examples with many scores, which were counted."""
        every = np.concatenate([each.levels for each in tallies])
        there = np.zeros(LEVELS, bool)
        there[every] = True
        levels = np.flatnonzero(there)[::-1]
        column = np.zeros(LEVELS, np.int32)
        column[levels] = np.arange(len(levels))
        columns = column[every]
        ends = np.cumsum([0, *(len(each.levels) for each in tallies)])

        def table(counts: list[np.ndarray]) -> csr_array:
            numbers = np.concatenate(counts).astype(np.float32)
            return csr_array((numbers, columns, ends), shape=(len(tallies), len(levels)))

        return cls(
            1 / (1 + np.exp(FURTHEST - levels / STEPS)),
            table([each.true for each in tallies]),
            table([each.false for each in tallies]),
        )

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """The metrics of samples, each [samples]; NaN where a sample has one class alone.

        Args:
            counts: How often each sample has each example, [samples, examples].
        """
        true, false = (np.asarray((each.T @ counts.T).T) for each in (self.true, self.false))
        found, wrong = np.cumsum(true, -1), np.cumsum(false, -1)
        positives, negatives = found[:, -1:], wrong[:, -1:]
        with np.errstate(invalid="ignore", divide="ignore"):
            # A pair of equal scores counts half.
            below = negatives - wrong + false / 2
            auroc = (true * below).sum(-1) / (positives * negatives)[:, 0]
            precision = found / np.maximum(found + wrong, 1)
            average = (true * precision).sum(-1) / positives[:, 0]
            average = np.where(negatives[:, 0] > 0, average, np.nan)
            cut = int(np.searchsorted(-self.levels, -THRESHOLD, "right")) - 1
            tp = found[:, cut] if cut >= 0 else np.zeros(len(counts))
            fp = wrong[:, cut] if cut >= 0 else np.zeros(len(counts))
            fn, tn = positives[:, 0] - tp, negatives[:, 0] - fp
            root = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
            mcc = np.where(root > 0, (tp * tn - fp * fn) / np.maximum(root, 1e-300), 0.0)
            return {
                "auroc": auroc,
                "average_precision": average,
                "f1": 2 * tp / np.maximum(2 * tp + fp + fn, 1),
                "mcc": np.where(positives[:, 0] * negatives[:, 0] > 0, mcc, np.nan),
                "precision": tp / np.maximum(tp + fp, 1),
                "recall": tp / np.maximum(tp + fn, 1),
            }

    def whole(self) -> dict[str, float]:
        """The metrics of every example once."""
        found = self.metrics(np.ones((1, self.examples)))
        return {name: float(values[0]) for name, values in found.items()}

    @property
    def prevalence(self) -> float:
        """The share that is true."""
        true, false = (float(each.sum(dtype=np.float64)) for each in (self.true, self.false))
        return true / max(true + false, 1)
