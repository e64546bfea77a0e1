"""An approximate index, for so many vectors that going through all of them takes too long.

It names candidates, and their order is that of exact products. usearch builds it, in a file beside
the vectors.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.applications.search.exact_search import nearest, pieces
from longbird.errors import InvalidValueError, MissingPackageError
from longbird.files.writing import writing_file

WORTH = 1_000_000
"""Vectors from which on an index is worth the time that it takes to build."""
CANDIDATES = 10
"""For each result that is wanted; at least a hundred."""
ALONE = 4096
"""The first vectors, which one thread adds."""
SAMPLE = 64
"""Vectors by which an index is told from that of others."""

Numbers = npt.NDArray[Any]


def nearest_by_index(
    queries: Numbers, vectors: Numbers, top: int, file: Path, *, since: float, normalized: bool
) -> tuple[Numbers, Numbers]:
    """What `nearest` gives, or nearly: a vector can be missed.

    Args:
        queries: float32 [q, w].
        vectors: float32 [n, w].
        top: How many for each query.
        file: Of the index, which is built if it is not there.
        since: When the vectors were written; an index that is older is built again.
        normalized: Do vectors have length 1?

    Raises:
        ImportError: usearch is not installed.
    """
    if find_spec("usearch") is None:
        raise MissingPackageError("an index needs usearch: pip install 'longbird[search]'")
    index = _opened(file, vectors, since)
    count = min(len(vectors), max(100, CANDIDATES * top))
    best = np.zeros((len(queries), min(top, len(vectors))), np.int64)
    scores = np.zeros(best.shape, np.float32)
    for row, query in enumerate(queries):
        among = np.sort(np.asarray(index.search(query, count, exact=False).keys, np.int64))
        found, exact = nearest(query[None], vectors[among], top, normalized=normalized)
        best[row], scores[row] = among[found[0]], exact[0]
    return best, scores


def _opened(file: Path, vectors: Numbers, since: float) -> Any:
    from usearch.index import Index

    width = vectors.shape[1]
    if file.is_file() and file.stat().st_mtime >= since:
        index = Index(ndim=width, metric="cos", dtype="f32")
        try:
            index.view(str(file))  # stays on the disk
        except Exception as error:  # whatever its reader in C++ says of a broken file
            raise InvalidValueError(f"{file} is not a whole index: delete it ({error})") from error
        # Files that were copied or restored may be newer than the vectors that they are of.
        some = np.linspace(0, len(vectors) - 1, min(len(vectors), SAMPLE)).astype(np.int64)
        if len(index) == len(vectors):
            kept: Any = index.get(some)
            if np.array_equal(kept, vectors[some]):
                return index
    index = Index(ndim=width, metric="cos", dtype="f32")
    for first, piece in pieces(vectors):
        numbers = np.arange(first, first + len(piece))
        # Vectors that threads add at once to a graph that is still small do not see each other,
        # and some are never found again: of 400 graphs of 300 vectors, 318 had such.
        alone = max(0, ALONE - first)
        index.add(numbers[:alone], piece[:alone], threads=1)
        index.add(numbers[alone:], piece[alone:])
    with writing_file(file) as written:
        index.save(str(written))
    return index
