"""How well documents are found: each query against all of them, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

METRICS = (
    "ndcg_at_10", "recall_at_1", "recall_at_10", "recall_at_100", "mrr_at_10",
    "mean_reciprocal_rank",
)  # fmt: skip
AT_ONCE = 2**24
"""Scores that are held at once."""


def ranked(
    queries: np.ndarray,
    documents: np.ndarray,
    wanted: Callable[[slice], np.ndarray],
    themselves: np.ndarray | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each query its metrics, [6], and the numbers of the documents that come first.

    Of documents with the same score the relevant come last, so that a model for which all are
    alike has found nothing.

    Args:
        queries: [queries, w], of length 1.
        documents: [documents, w], of length 1.
        wanted: Which documents are relevant for some queries, bool [some, documents].
        themselves: The number of each query among the documents, with which it is not compared,
            [queries].
    """
    at_once = max(1, AT_ONCE // max(1, len(documents)))
    for begin in range(0, len(queries), at_once):
        block = slice(begin, begin + at_once)
        scores, relevant = queries[block] @ documents.T, wanted(block)
        if themselves is not None:
            own = np.arange(len(scores)), themselves[block]
            scores[own], relevant[own] = -np.inf, False
        order = np.lexsort((relevant, -scores), axis=-1)
        yield from zip(
            measured(np.take_along_axis(relevant, order, axis=-1)), order[:, :10], strict=True
        )


def measured(found: np.ndarray) -> np.ndarray:
    """The metrics of queries, [queries, 6], as `METRICS` names them.

    nDCG has gains of 0 and 1. Recall is the share of the relevant documents that is found.

    Args:
        found: Is the document at each rank relevant? bool [queries, documents]; one at least.

    Examples:
        >>> found = np.array([[False, True, True, False]])
        >>> dict(zip(METRICS, measured(found)[0].round(3).tolist()))  # doctest: +ELLIPSIS
        {'ndcg_at_10': 0.693, 'recall_at_1': 0.0, 'recall_at_10': 1.0, ...}
    """
    discounts = 1 / np.log2(np.arange(2, 12))
    every = found.sum(1)
    top = found[:, :10]
    gain = top @ discounts[: top.shape[1]]
    ideal = np.cumsum(discounts)[np.minimum(every, 10) - 1]
    first = found.argmax(1) + 1
    recalls = [found[:, :k].sum(1) / every for k in (1, 10, 100)]
    return np.stack(
        [gain / ideal, *recalls, np.where(first <= 10, 1 / first, 0.0), 1 / first], axis=1
    )
