"""Groups of documents that belong together: near-duplicates, and documents of one origin.

A held-out document must not have a near-duplicate in the training data, so families stay on one
side of a split.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

WORDS = 5
"""Words that follow each other, of which a shingle is made."""
COMMON = 100
"""A shingle in more documents than this is a common phrase, and says nothing of two of them."""


def families(
    texts: Sequence[str], alike: float, links: Sequence[Iterable[str]] = (), most: int = 4000
) -> np.ndarray:
    """Return the number of each document's family, [documents].

    Two documents belong to one family if they share a link, if one contains at least a given share
    of
    the other's shingles, or if other documents connect them in this way.

    Args:
        texts: The documents.
        alike: Share of the shingles of the document with fewer that the other must contain.
        links: For each document, the names of what it belongs to.
        most: Maximum number of words that are used of each document.

    Examples:
        >>> long = "the quick brown fox jumps over the lazy dog today"
        >>> families([long, "An essay on ships of the line", long + " again"], alike=0.8)
        array([0, 1, 0], dtype=int32)
        >>> families(["a", "b", "c"], alike=0.8, links=[["x"], ["y"], ["y", "z"]])
        array([0, 1, 1], dtype=int32)
    """
    n = len(texts)
    first, second = similar(shingles(texts, most), alike)
    named: dict[str, int] = {}
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    for number, names in enumerate(links):
        pairs += [(number, named.setdefault(name, number)) for name in names]
    ends = np.array(pairs, dtype=int).reshape(-1, 2).T
    graph = coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), (n, n))
    return connected_components(graph, directed=False)[1]


def shingles(texts: Iterable[str], most: int) -> csr_array:
    """Return which document contains which five words in a row, [documents, 2^32] of 0 and 1."""
    rows: list[np.ndarray] = []
    for text in texts:
        words = re.findall(r"\w+", text.lower())[:most]
        runs = range(max(1, len(words) - WORDS + 1)) if words else ()
        every = {zlib.crc32(" ".join(words[at : at + WORDS]).encode()) for at in runs}
        rows.append(np.array(sorted(every), dtype=np.int64))
    begins = np.cumsum([0, *map(len, rows)])
    columns = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    return csr_array((np.ones(len(columns), np.float32), columns, begins), (len(rows), 2**32))


def similar(table: csr_array, alike: float) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of documents of which one contains that share of the other's shingles."""
    _, columns, counts = np.unique(table.indices, return_inverse=True, return_counts=True)
    kept = counts[columns] <= COMMON
    begins = np.concatenate([[0], np.cumsum(kept)])[table.indptr]
    shape = (len(begins) - 1, len(counts))
    table = csr_array((table.data[kept], columns[kept], begins), shape)
    shared = (table @ table.T).tocoo()
    sizes = np.diff(begins)
    fewer = np.minimum(sizes[shared.row], sizes[shared.col])
    close = (shared.data >= alike * fewer) & (shared.row < shared.col)
    return shared.row[close], shared.col[close]


def split(
    families: np.ndarray, train: int, test: int, seed: int, largest: float = 0.05
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and held-out documents in random order, with no family on both sides.

    Families are held out until there are `test` documents. Very large families are used for
    training,
    because held out, one of them would dominate the result.

    Args:
        families: Family of each document.
        train: Maximum number of training documents.
        test: Maximum number of held-out documents.
        seed: Seed of the draw.
        largest: Share of all documents above which a family is not held out.

    Examples:
        >>> train, test = split(np.array([0, 0, 0, 1, 2, 2, 3]), 9, 2, seed=0, largest=0.4)
        >>> set(train) | set(test) == set(range(7)), set(test) & {0, 1, 2}
        (True, set())
    """
    draw, sizes = np.random.default_rng(seed), np.bincount(families)
    held = np.zeros(len(sizes), dtype=bool)
    taken = 0
    for family in draw.permutation(len(sizes)):
        if taken < test and 0 < sizes[family] <= largest * len(families):
            held[family] = True
            taken += int(sizes[family])
    order = draw.permutation(len(families))
    out = held[families[order]]
    return order[~out][:train], order[out][:test]
