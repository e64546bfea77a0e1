"""Sequences that are nearly the same, by the words of 21 bases that they share.

A word and its reverse complement are one word. Of long sequences a sample of words is enough:
those whose hash is among the smallest, the same in all sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from longbird.bench.dna.bases import reverse_complement, words
from longbird.bench.dna.splits import TEST, TRAIN, VALIDATION
from longbird.bench.quality.families import similar

WORD = 21


def sketch(sequence: np.ndarray, every: int = 1) -> np.ndarray:
    """The hashes of its words, one of `every` on average, sorted.

    Examples:
        >>> one = np.arange(30, dtype=np.uint8) * 7 % 5 % 4
        >>> np.array_equal(sketch(one), sketch(reverse_complement(one)))
        True
    """
    if len(sequence) < WORD:
        return np.zeros(0, np.int64)
    forward, backward = words(sequence, WORD), words(reverse_complement(sequence), WORD)[::-1]
    hashes = _mixed(np.minimum(forward, backward)[forward >= 0].view(np.uint64))
    kept = hashes[hashes <= np.uint64((2**64 - 1) // every)]
    return np.unique(kept >> np.uint64(1)).astype(np.int64)  # columns of a table are signed


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64, which spreads near numbers over all."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def clusters(sequences: Iterable[np.ndarray], alike: float = 0.15, every: int = 1) -> np.ndarray:
    """The number of the cluster of each sequence, [sequences].

    Two are of one cluster if one has that share of the other's words, and so on, by others.

    Examples:
        >>> from longbird.bench.dna.bases import codes
        >>> one = "ACGTTGCATCGATTACGGATCCATGCAAGT"
        >>> clusters([codes(one), codes("G" * 30), codes(one[2:] + "GG")])
        array([0, 1, 0], dtype=int32)
    """
    sketches = [sketch(each, every) for each in sequences]
    begins = np.cumsum([0, *map(len, sketches)])
    columns = np.concatenate(sketches) if sketches else np.zeros(0, np.int64)
    shape = (len(sketches), 2**63 - 1)
    table = csr_array((np.ones(len(columns), np.float32), columns, begins), shape)
    first, second = similar(table, alike)
    graph = coo_array((np.ones(len(first)), (first, second)), (len(sketches), len(sketches)))
    return connected_components(graph, directed=False)[1]


def twins_in_training(clusters: np.ndarray, sides: Sequence[int] | np.ndarray) -> np.ndarray:
    """Which held-out sequences have one of their cluster among those that are learned from?

    Examples:
        >>> twins_in_training(np.array([0, 1, 0, 1]), [0, 2, 2, 2]).tolist()
        [False, False, True, False]
    """
    sides = np.asarray(sides)
    learned = np.zeros(int(clusters.max(initial=-1)) + 1, bool)
    learned[clusters[(sides == TRAIN) | (sides == VALIDATION)]] = True
    return (sides == TEST) & learned[clusters]
