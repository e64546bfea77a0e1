"""Finding the vectors that are nearest to queries: exactly, or with an approximate index.

The exact search goes through all vectors, some at a time. The index, which usearch builds in a
file beside the vectors, proposes candidates, which are then ranked by exact products.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.errors import InvalidValueError, MissingPackageError
from longbird.files.writing import writing_file

PIECE = 2**16
"""Number of vectors in memory at once; with 384 numbers each, they take 100 MB."""
WORTH = 1_000_000
"""Number of vectors from which on building an index is worth the time."""
CANDIDATES = 10
"""Candidates per wanted result; there are at least a hundred."""
FIRST = 4096
"""Number of vectors that a single thread adds to an index before others join it."""
SAMPLE = 64
"""Number of vectors that are compared to tell whether an index belongs to them."""

Numbers = npt.NDArray[Any]


def nearest(
    queries: Numbers, vectors: Numbers, top: int, *, normalized: bool = True
) -> tuple[Numbers, Numbers]:
    """Return the indices of the vectors nearest to each query, best first, and their cosines.

    Of vectors with equal cosines, the first comes first.

    Args:
        queries: float32 [q, w].
        vectors: float32 [n, w]; may be mapped from a file.
        top: Maximum number of results per query.
        normalized: Whether the vectors have length 1.

    Returns:
        int64 [q, top] and float32 [q, top].

    Raises:
        ValueError: A product is not finite, which no model causes.

    Examples:
        >>> vectors = np.eye(3, dtype=np.float32)
        >>> nearest(vectors[2:] * 0.5 + vectors[:1] * 0.2, vectors, 2)[0].tolist()
        [[2, 0]]
    """
    best = np.zeros((len(queries), 0), np.int64)
    scores = np.zeros((len(queries), 0), np.float32)
    for first, piece in _pieces(vectors):
        found = queries @ piece.T
        if not normalized:
            found /= np.maximum(np.linalg.norm(piece, axis=1), 1e-12)
        if not np.isfinite(found).all():
            raise InvalidValueError("some of the vectors are not finite (NaN or infinite)")
        numbers = np.broadcast_to(np.arange(first, first + len(piece)), found.shape)
        best, scores = np.concatenate([best, numbers], 1), np.concatenate([scores, found], 1)
        order = np.array([_largest(row, top) for row in scores], np.int64)
        order = order.reshape(len(scores), min(top, scores.shape[1]))
        best, scores = np.take_along_axis(best, order, 1), np.take_along_axis(scores, order, 1)
    return best, scores


def nearest_by_index(
    queries: Numbers, vectors: Numbers, top: int, file: Path, *, since: float, normalized: bool
) -> tuple[Numbers, Numbers]:
    """Return the same as `nearest`, except that some vectors may be missed.

    The index in `file` is built if it does not exist, or is older than `since`, the time at which
    the vectors were written.

    Raises:
        ImportError: usearch is not installed.
    """
    if find_spec("usearch") is None:
        raise MissingPackageError("an index needs usearch: pip install 'longbird[search]'")
    index = _open_index(file, vectors, since)
    count = min(len(vectors), max(100, CANDIDATES * top))
    best = np.zeros((len(queries), min(top, len(vectors))), np.int64)
    scores = np.zeros(best.shape, np.float32)
    for row, query in enumerate(queries):
        among = np.sort(np.asarray(index.search(query, count, exact=False).keys, np.int64))
        found, exact = nearest(query[None], vectors[among], top, normalized=normalized)
        best[row], scores[row] = among[found[0]], exact[0]
    return best, scores


def _pieces(vectors: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Yield the vectors piece by piece, each with the index of its first vector."""
    for first in range(0, len(vectors), PIECE):
        yield first, np.ascontiguousarray(vectors[first : first + PIECE], dtype=np.float32)


def _largest(scores: Numbers, top: int) -> Numbers:
    """Return the indices of the largest scores, in order; of equal ones the first."""
    top = min(top, len(scores))
    # All scores that equal the last of them are candidates, so that chance does not decide.
    least = np.partition(scores, len(scores) - top)[len(scores) - top] if top else 0
    among = np.flatnonzero(scores >= least)
    return among[np.argsort(-scores[among], kind="stable")[:top]]


def _open_index(file: Path, vectors: Numbers, since: float) -> Any:
    from usearch.index import Index

    index = Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
    if file.is_file() and file.stat().st_mtime >= since:
        try:
            index.view(str(file))  # stays on the disk
        except Exception as error:  # its reader in C++ raises many types
            raise InvalidValueError(
                f"{file} is not a complete index: delete it ({error})"
            ) from error
        # A file that was copied or restored may be newer than the vectors of another index.
        some = np.linspace(0, len(vectors) - 1, min(len(vectors), SAMPLE)).astype(np.int64)
        kept: Any = index.get(some) if len(index) == len(vectors) else None
        if kept is not None and np.array_equal(kept, vectors[some]):
            return index
        index = Index(ndim=vectors.shape[1], metric="cos", dtype="f32")
    for first, piece in _pieces(vectors):
        numbers = np.arange(first, first + len(piece))
        # Vectors that threads add at once to a graph that is still small do not see each other,
        # and some are never found again: of 400 graphs of 300 vectors, 318 had such.
        alone = max(0, FIRST - first)
        index.add(numbers[:alone], piece[:alone], threads=1)
        index.add(numbers[alone:], piece[alone:])
    with writing_file(file) as written:
        index.save(str(written))
    return index
