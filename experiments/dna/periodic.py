"""Genes of bacteria without a network: six bases before a base, by its position in the codon.

Three tables of order 5, one for each position in a codon, are compared with one for non-coding
sequence, as in GeneMark (1993). For each strand and each of its three frames, the logarithms of
their ratios are summed over the bases around a base; the mean over the frames gives the odds that
the strand codes there.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.special import expit, logsumexp

from experiments.dna.bases import reverse_complement
from experiments.dna.markov import Markov, add, tables
from experiments.dna.organisms import Organism

ORDER = 5
STRENGTH = 16.0


class Periodic:
    """Predict how likely each base codes for a protein on each strand.

    Args:
        reach: Number of bases on each side that are summed over.
    """

    def __init__(self, reach: int = 48) -> None:
        self.reach = reach
        self.frames = [Markov(ORDER) for _ in range(3)]
        self.outside = Markov(ORDER)
        self.coding, self.bases = 0, 0

    def count(self, organisms: Iterable[Organism]) -> Periodic:
        """Count genomes and their genes."""
        for organism in organisms:
            for name, sequence in organism.sequences.items():
                self.count_sequence(sequence, organism.codons[name])
        return self

    def count_sequence(self, sequence: np.ndarray, codons: np.ndarray) -> None:
        """Count a sequence, [bases], with positions in codons, [2, bases]."""
        neither = (codons[0] < 0) & (codons[1] < 0)
        strands = (
            (sequence, codons[0], neither),
            (
                reverse_complement(sequence),
                codons[1, ::-1],
                neither[::-1],
            ),
        )
        for bases, codon, free in strands:
            for order, numbers in enumerate(self.outside.places(bases)):
                add(self.outside.counts[order], numbers[free])
                for frame, model in enumerate(self.frames):
                    add(model.counts[order], numbers[codon == frame])
        self.coding += int((codons >= 0).sum())
        self.bases += len(sequence)

    def log_odds(self, sequence: np.ndarray) -> np.ndarray:
        """Return the log-odds of coding on each strand, [2, bases]."""
        plus = self._of_strand(sequence)
        minus = self._of_strand(reverse_complement(sequence))[::-1]
        return np.stack([plus, minus])

    def coding_probability(self, sequence: np.ndarray) -> np.ndarray:
        """Return the probability of coding on each strand, [2, bases].

        At most one strand codes at a base. The prior is the share of coding bases in training.
        """
        share = min(self.coding / max(1, self.bases), 0.99)
        odds = self.log_odds(sequence) + np.log(share / 2 / (1 - share))  # [2, bases]
        either = np.logaddexp(odds[0], odds[1])
        return expit(either) * np.exp(odds - either)

    def _of_strand(self, bases: np.ndarray) -> np.ndarray:
        outside = tables(self.outside.counts, STRENGTH)
        inside = [tables(model.counts, STRENGTH) for model in self.frames]
        ratio = np.zeros((3, len(bases)))  # if it were the first, second or third of a codon
        for order, numbers in enumerate(self.outside.places(bases)):
            known = numbers >= 0  # else what a shorter context says remains
            for codon, table in zip(ratio, inside, strict=True):
                codon[known] = np.log(table[order] / outside[order])[numbers[known]]
        along = np.arange(len(bases))
        frames = [around(ratio[(along + shift) % 3, along], self.reach) for shift in range(3)]
        return logsumexp(frames, axis=0) - np.log(3)


def around(values: np.ndarray, reach: int) -> np.ndarray:
    """Return sums over each base and this many on each side, fewer at the ends.

    Examples:
        >>> around(np.array([1.0, 2.0, 4.0, 8.0]), 1)
        array([ 3.,  7., 14., 12.])
    """
    total = np.concatenate([[0.0], np.cumsum(values)])
    along = np.arange(len(values))
    last = np.minimum(along + reach + 1, len(values))
    return total[last] - total[np.maximum(along - reach, 0)]
