"""Metrics that the bootstrap computes for many samples, and which therefore use weights.

Each is `of(columns, counts)` of `experiments.framework.experiment.Metric`. Without a bootstrap,
scikit-learn computes the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.framework.experiment import Columns

Of = Callable[[Columns, np.ndarray], np.ndarray]


def auroc_of(score: str, true: str, where: str | None = None) -> Of:
    """Return a metric: the probability that a positive scores higher than a negative.

    Args:
        score: A column; equal scores count half.
        true: A column of 0 and 1.
        where: A column that is 1 at the examples that count.

    Examples:
        >>> columns = {"score": np.array([0.1, 0.4, 0.3, 0.8]), "true": np.array([0, 0, 1, 1])}
        >>> auroc_of("score", "true")(columns, np.ones((1, 4)))
        array([0.75])
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        columns, counts = _chosen(columns, counts, where)
        above, below = _upto(columns, counts, score, true)
        right, wrong = above[:, -1:], below[:, -1:]
        zero = np.zeros((len(above), 1))
        up, along = np.concatenate([zero, above], 1), np.concatenate([zero, below], 1)
        area = ((up[:, 1:] + up[:, :-1]) / 2 * np.diff(along)).sum(1)
        return _quotient(area, (right * wrong)[:, 0])

    return of


def average_precision_of(
    score: str, true: str, where: str | None = None, found: str | None = None
) -> Of:
    """Return a metric: the mean precision at each positive example, as in scikit-learn.

    Args:
        score: A column.
        true: A column of 0 and 1.
        where: A column that is 1 at the examples that count.
        found: A column that is 0 at positive examples that no threshold finds.

    Examples:
        >>> columns = {"score": np.array([0.1, 0.4, 0.3, 0.8]), "true": np.array([0, 0, 1, 1])}
        >>> average_precision_of("score", "true")(columns, np.ones((1, 4))).round(3)
        array([0.833])
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        columns, counts = _chosen(columns, counts, where)
        right, wrong = _upto(columns, counts, score, true, found)
        more = np.diff(np.concatenate([np.zeros((len(right), 1)), right], 1))
        precision = _quotient(right, right + wrong, empty=0.0)
        return _quotient((more * precision).sum(1), counts @ columns[true])

    return of


def precision_at_recall_of(
    score: str, true: str, recall: float, where: str | None = None, found: str | None = None
) -> Of:
    """Return a metric: the precision at the highest threshold with that recall.

    It is 0 if no threshold reaches the recall. The columns are those of `average_precision_of`.

    Examples:
        >>> columns = {"score": np.array([0.1, 0.4, 0.3, 0.8]), "true": np.array([0, 0, 1, 1])}
        >>> precision_at_recall_of("score", "true", 0.9)(columns, np.ones((1, 4))).round(3)
        array([0.667])
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        columns, counts = _chosen(columns, counts, where)
        right, wrong, there = _at_recall(columns, counts, score, true, recall, found)
        precision = _quotient(right, right + wrong, empty=0.0)
        return np.where(counts @ columns[true] > 0, np.where(there, precision, 0.0), np.nan)

    return of


def false_at_recall_of(
    score: str, true: str, recall: float, share: float, found: str | None = None
) -> Of:
    """Return a metric: the negatives above the threshold of `precision_at_recall_of`.

    Args:
        score: A column.
        true: A column of 0 and 1.
        recall: Share of the positive examples that should be found.
        share: Divisor of the number, such as megabases.
        found: A column that is 0 at positive examples that no threshold finds.

    Returns:
        The number; NaN if no threshold reaches the recall.

    Examples:
        >>> columns = {"score": np.array([0.1, 0.4, 0.3, 0.8]), "true": np.array([0, 0, 1, 1])}
        >>> false_at_recall_of("score", "true", 0.9, share=2.0)(columns, np.ones((1, 4)))
        array([0.5])
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        _, wrong, there = _at_recall(columns, counts, score, true, recall, found)
        return np.where(there, wrong / share, np.nan)

    return of


def f1_of(said: str, true: str, where: str | None = None) -> Of:
    """Return a metric: F1.

    Examples:
        >>> columns = {"said": np.array([1, 1, 0, 0]), "true": np.array([1, 0, 1, 0])}
        >>> f1_of("said", "true")(columns, np.ones((1, 4)))
        array([0.5])
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        columns, counts = _chosen(columns, counts, where)
        both = counts @ (columns[said] * columns[true])
        return _quotient(2 * both, counts @ columns[said] + counts @ columns[true])

    return of


def mcc_of(hits: str, false: str, missed: str, rest: str) -> Of:
    """Return a metric: the Matthews correlation, from columns of counts.

    Args:
        hits: True positives.
        false: False positives.
        missed: False negatives.
        rest: True negatives.

    Examples:
        >>> columns = {x: np.array([n]) for x, n in zip("abcd", (6, 1, 2, 3))}
        >>> mcc_of("a", "b", "c", "d")(columns, np.ones((1, 1))).round(3)
        array([0.478])
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        a, b, c, d = (counts @ columns[x].astype(float) for x in (hits, false, missed, rest))
        below = np.sqrt((a + b) * (a + c) * (d + b) * (d + c))
        return np.where(below > 0, _quotient(a * d - b * c, below), 0.0)

    return of


def _chosen(columns: Columns, counts: np.ndarray, where: str | None) -> tuple[Columns, np.ndarray]:
    """Return the examples that count, and how often each sample has each of them."""
    if where is None:
        return columns, counts
    chosen = np.flatnonzero(columns[where])
    return {name: column[chosen] for name, column in columns.items()}, counts[:, chosen]


def _at_recall(
    columns: Columns, counts: np.ndarray, score: str, true: str, recall: float, found: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positives and negatives above the highest threshold with a recall.

    Returns:
        Three arrays [samples]; the last says whether there is such a threshold.
    """
    right, wrong = _upto(columns, counts, score, true, found)
    enough = right >= recall * (counts @ columns[true])[:, None] - 1e-9
    rows, at = np.arange(len(right)), enough.argmax(1)
    return right[rows, at], wrong[rows, at], np.asarray(enough.any(1))


def _upto(
    columns: Columns,
    counts: np.ndarray,
    score: str,
    true: str,
    found: str | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of positives and negatives at or above each score, highest first.

    Returns:
        Two arrays [samples, different scores].
    """
    weights = counts if found is None else counts * columns[found]
    order = np.argsort(-columns[score], kind="stable")
    scores, truth = columns[score][order], columns[true][order].astype(float)
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))  # of equal ones
    weights = weights[:, order]
    right = np.cumsum(weights * truth, 1)[:, last]
    wrong = np.cumsum(weights * (1 - truth), 1)[:, last]
    return right, wrong


def _quotient(above: np.ndarray, below: np.ndarray, empty: float = np.nan) -> np.ndarray:
    return np.divide(above, below, out=np.full(above.shape, empty), where=below != 0)
