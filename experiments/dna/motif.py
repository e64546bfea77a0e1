"""A word with free places, on either strand: what ChIP peaks have, where the word is known."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter1d

from experiments.dna.bases import UNKNOWN, codes, reverse_complement

CHIP = "ACCCANGG"
"""What the protein of the packaged experiment binds."""


def matches(sequence: np.ndarray, motif: str) -> np.ndarray:
    """How many bases of the motif are there, on the better strand, on a circle, [bases].

    Counted at the leftmost base of the motif; N fits everything, and counts nothing.

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
    """The best match in each bin, or within so many bases of it, [bins]."""
    best = maximum_filter1d(matches(sequence, motif), size + 2 * reach, mode="wrap")
    middles = np.arange(len(sequence) // size) * size + size // 2
    return best[middles]
