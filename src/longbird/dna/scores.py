"""How well scores tell two classes apart, with many samples at once for intervals."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

THRESHOLD = 0.5
STEPS, FURTHEST = 100, 20
"""Scores of single bases, of which there may be millions, are rounded down to a hundredth of a
logit between -20 and 20: what is rare has low scores, which differ as much as others there."""


def rounded_down(scores: np.ndarray) -> np.ndarray:
    """Scores with few digits in their logits; what reaches 0.5 still does.

    Examples:
        >>> rounded_down(np.array([0.0, 0.0001, 0.4999, 0.5, 0.50001])).round(6).tolist()
        [0.0, 9.9e-05, 0.4975, 0.5, 0.5]
    """
    with np.errstate(divide="ignore"):
        logits = np.log(scores.astype(np.float64)) - np.log1p(-scores.astype(np.float64))
    steps = np.floor(np.clip(logits, -FURTHEST, FURTHEST) * STEPS)
    return 1 / (1 + np.exp(-steps / STEPS))


class Ranked:
    """What is true and what is not at each level of a score, example by example.

    Args:
        examples: Which example each score is of, int [scores].
        scores: Between 0 and 1, [scores].
        truth: bool [scores].
        number: Of examples.
        rounded: By `rounded_down`; otherwise every score is a level of its own.
    """

    def __init__(
        self,
        examples: np.ndarray,
        scores: np.ndarray,
        truth: np.ndarray,
        number: int,
        rounded: bool = False,
    ) -> None:
        if rounded:
            scores = rounded_down(scores)
        levels, at = np.unique(-scores, return_inverse=True)  # the highest first
        self.levels, self.examples = -levels, number

        def table(chosen: np.ndarray) -> csr_array:
            ones = np.ones(int(chosen.sum()))
            places = (examples[chosen], at[chosen])
            return csr_array((ones, places), shape=(number, len(levels)))

        self.true, self.false = table(truth), table(~truth)

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
        return float(self.true.sum() / max(self.true.sum() + self.false.sum(), 1))
