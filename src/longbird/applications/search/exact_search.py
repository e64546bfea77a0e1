"""The largest of all products of a query with vectors: exact, a piece of the vectors at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.errors import InvalidValueError

PIECE = 2**16
"""Vectors that are in memory at once; of 384 numbers, they take 100 MB."""

Numbers = npt.NDArray[Any]


def nearest(
    queries: Numbers, vectors: Numbers, top: int, *, normalized: bool = True
) -> tuple[Numbers, Numbers]:
    """The numbers of the vectors nearest to each query, best first, and their cosines.

    Of equal ones, the first comes first.

    Args:
        queries: float32 [q, w].
        vectors: float32 [n, w]; may be mapped from a file.
        top: How many, or all if there are fewer.
        normalized: Do vectors have length 1?

    Returns:
        int64 [q, top] and float32 [q, top].

    Raises:
        ValueError: A product is not a number, as no model gives it.

    Examples:
        >>> vectors = np.eye(3, dtype=np.float32)
        >>> nearest(vectors[2:] * 0.5 + vectors[:1] * 0.2, vectors, 2)[0].tolist()
        [[2, 0]]
    """
    best = np.zeros((len(queries), 0), np.int64)
    scores = np.zeros((len(queries), 0), np.float32)
    for first, piece in pieces(vectors):
        found = queries @ piece.T
        if not normalized:
            found /= np.maximum(np.linalg.norm(piece, axis=1), 1e-12)
        if not np.isfinite(found).all():
            raise InvalidValueError("some of the vectors are not finite (NaN or infinite)")
        numbers = np.broadcast_to(np.arange(first, first + len(piece)), found.shape)
        best, scores = _largest(
            np.concatenate([best, numbers], axis=1), np.concatenate([scores, found], axis=1), top
        )
    return best, scores


def pieces(vectors: Numbers) -> Iterator[tuple[int, Numbers]]:
    """The vectors, so many at a time, each with the number of its first."""
    for first in range(0, len(vectors), PIECE):
        yield first, np.ascontiguousarray(vectors[first : first + PIECE], dtype=np.float32)


def _largest(numbers: Numbers, scores: Numbers, top: int) -> tuple[Numbers, Numbers]:
    """Those with the largest scores, in order; the numbers of each row ascend where it matters."""
    top = min(top, scores.shape[1])
    rows: list[Numbers] = []
    for row in scores:
        # All that are as good as the last of them, so that it does not depend on chance which
        # of several equal ones is among them.
        least = np.partition(row, len(row) - top)[len(row) - top] if top else 0
        among = np.flatnonzero(row >= least)
        rows.append(among[np.argsort(-row[among], kind="stable")[:top]])
    order = np.array(rows, np.int64).reshape(len(scores), top)
    return np.take_along_axis(numbers, order, 1), np.take_along_axis(scores, order, 1)
