"""Baselines that know little of the order of bases: A and T content, words, and positions."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from experiments.dna.bases import UNKNOWN, words

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)
"""Inverse strengths of regularisation that are tried."""
FOLDS = 3


class Scorer(Protocol):
    """A classifier that scores windows."""

    def fit(self, windows: np.ndarray, positive: np.ndarray, groups: np.ndarray) -> Any:
        """Train.

        Args:
            windows: [windows, bases]
            positive: [windows]
            groups: Windows that stay together in cross-validation, [windows].
        """
        ...

    def scores(self, windows: np.ndarray) -> np.ndarray:
        """Return scores, larger for positive windows: log-odds, unless there is a `threshold`."""
        ...


class AtContent:
    """The share of A and T.

    Examples:
        >>> from experiments.dna.bases import codes
        >>> AtContent().scores(codes("ATGN")[None]).tolist()
        [0.5]
    """

    def fit(self, windows: np.ndarray, positive: np.ndarray, groups: np.ndarray) -> AtContent:
        """Set the threshold to the median of the windows."""
        self.threshold = float(np.median(self.scores(windows)))
        return self

    def scores(self, windows: np.ndarray) -> np.ndarray:
        """Return the share of A and T."""
        return ((windows == 0) | (windows == 3)).mean(1)


class Words:
    """Logistic regression on the counts of words of a few bases.

    Cross-validation on the training windows chooses the regularisation.
    """

    def __init__(self, length: int = 5) -> None:
        self.length = length

    def fit(self, windows: np.ndarray, positive: np.ndarray, groups: np.ndarray) -> Words:
        """Train."""
        weights, self.bias = logistic(word_counts(windows, self.length), positive, groups)
        self.weights = np.append(weights, 0.0)  # the last is that of -1, an unknown word
        return self

    def scores(self, windows: np.ndarray) -> np.ndarray:
        """Return log-odds."""
        return self.weights[words(windows, self.length)].sum(1) + self.bias

    def scan(self, sequence: np.ndarray, width: int) -> np.ndarray:
        """Return the scores of all windows of a sequence."""
        upto = np.cumsum(np.append(0.0, self.weights[words(sequence, self.length)]))
        there = width - self.length + 1  # words in a window
        return upto[there:] - upto[: len(upto) - there] + self.bias


class OneHot:
    """Logistic regression on the base at each position of a window, regularised as in `Words`."""

    def fit(self, windows: np.ndarray, positive: np.ndarray, groups: np.ndarray) -> OneHot:
        """Train."""
        weights, self.bias = logistic(one_hot(windows), positive, groups)
        self.weights = np.pad(weights.reshape(-1, 4), ((0, 0), (0, 1)))  # 0 for an unknown base
        return self

    def scores(self, windows: np.ndarray) -> np.ndarray:
        """Return log-odds."""
        return self.weights[np.arange(windows.shape[1]), windows].sum(1) + self.bias

    def scan(self, sequence: np.ndarray, width: int) -> np.ndarray:
        """Return the scores of all windows of a sequence."""
        places = len(sequence) - width + 1
        total = np.full(places, self.bias)
        for at, row in enumerate(self.weights):
            total += row[sequence[at : at + places]]
        return total


def word_counts(windows: np.ndarray, length: int) -> np.ndarray:
    """Return the count of each word in each window, without unknown words.

    Examples:
        >>> from experiments.dna.bases import codes
        >>> word_counts(codes("AACN")[None], 1).tolist()
        [[2.0, 1.0, 0.0, 0.0]]
    """
    counts = np.zeros((len(windows), 4**length), np.float32)
    for at in range(0, len(windows), 1024):  # numbers of words take eight times the memory
        numbers = words(windows[at : at + 1024], length)
        rows, places = np.nonzero(numbers >= 0)
        flat = rows * 4**length + numbers[rows, places]
        counts[at : at + 1024] = np.bincount(flat, minlength=len(numbers) * 4**length).reshape(
            len(numbers), -1
        )
    return counts


def one_hot(windows: np.ndarray) -> np.ndarray:
    """Return [windows, 4 bases], with zeros at unknown bases."""
    table = np.concatenate([np.eye(UNKNOWN, dtype=np.float32), np.zeros((1, 4), np.float32)])
    return table[windows].reshape(len(windows), -1)


def logistic(
    features: np.ndarray, positive: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return weights and bias, regularised by cross-validation over groups."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    grid = {"logisticregression__C": list(STRENGTHS)}
    folds = GroupKFold(min(FOLDS, len(np.unique(groups))))
    search = GridSearchCV(pipeline, grid, cv=folds, scoring="average_precision")
    scaler, model = search.fit(features, positive, groups=groups).best_estimator_
    weights = model.coef_[0].astype(float) / scaler.scale_
    return weights, float(model.intercept_[0] - weights @ scaler.mean_)


def scan(scorer: Scorer, sequence: np.ndarray, width: int, batch: int = 8192) -> np.ndarray:
    """Return the scores of all windows of a sequence in order, [bases - width + 1].

    A scorer with a method `scan(sequence, width)` does this itself.
    """
    if (own := getattr(scorer, "scan", None)) is not None:
        return own(sequence, width)
    views = sliding_window_view(sequence, width)
    parts = [scorer.scores(views[at : at + batch]) for at in range(0, len(views), batch)]
    return np.concatenate(parts)
