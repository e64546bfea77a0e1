"""A motif with free positions on either strand: the baseline for ChIP peaks with a known motif."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter1d

from experiments.dna.bases import UNKNOWN, codes, reverse_complement

CHIP = "ACCCANGG"
"""What the protein of the packaged experiment binds."""


def matches(sequence: np.ndarray, motif: str) -> np.ndarray:
    """Return how many bases of the motif match on the better strand of a circle, [bases].

    Matches are counted at the leftmost base of the motif; N matches everything and does not count.

    Examples:
        >>> matches(codes("TTACCCATGGTT"), CHIP).tolist()[2], len(CHIP) - 1
        (7, 7)
    """
    word = codes(motif)
    found = []
    for strand in (word, reverse_complement(word)):
        total = np.zeros(len(sequence), np.int64)
        for offset, base in enumerate(strand.tolist()):
            if base != UNKNOWN:
                total += np.roll(sequence, -offset) == base
        found.append(total)
    return np.maximum(*found)


def bin_scores(sequence: np.ndarray, motif: str, size: int, reach: int) -> np.ndarray:
    """Return the best match in each bin, or within this many bases of it, [bins]."""
    best = maximum_filter1d(matches(sequence, motif), size + 2 * reach, mode="wrap")
    middles = np.arange(len(sequence) // size) * size + size // 2
    return best[middles]
