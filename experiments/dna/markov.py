"""Bits per base of tables that predict a base from those before it, or around it.

A model that fills in masked bases sees both sides, so it is compared with two-sided tables.
One-sided
tables are those of prediction from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.dna.bases import ending_words, reverse_complement

STRENGTHS = (1.0, 4.0, 16.0, 64.0, 256.0)
"""How much smoothing is tried."""


def smoothed(
    counts: Sequence[np.ndarray], places: Iterable[np.ndarray], strength: float
) -> Iterable[np.ndarray]:
    """Yield the probability of the true bases for longer and longer contexts.

    P(x | c) = (n(c, x) + s P(x | c')) / (n(c) + s), where c' is the next shorter context, and a
    quarter without any. A base without a context of a length keeps its last probability.

    Args:
        counts: For each length of context, n(c, x) at 4 c + x.
        places: For each length of context, the position of each base in that table, or -1 without
            such a context, [bases].
        strength: s.

    Yields:
        [bases] for each length; NaN where the base itself is unknown.
    """
    before = None
    for table, numbers in zip(counts, places, strict=True):
        if before is None:
            before = np.where(numbers >= 0, 0.25, np.nan)
        known = np.flatnonzero(numbers >= 0)
        those, x = np.divmod(numbers[known], 4)
        four = table.reshape(-1, 4)[those].astype(float)  # n(c, ·)
        here = before.copy()
        seen = four[np.arange(len(x)), x]
        here[known] = (seen + strength * before[known]) / (four.sum(1) + strength)
        before = here
        yield here


def tables(counts: Sequence[np.ndarray], strength: float) -> list[np.ndarray]:
    """Return tables of all words with one-sided contexts, the oldest base in the highest bits.

    Examples:
        >>> tables([np.array([3, 0, 0, 1])], 4.0)
        [array([0.5  , 0.125, 0.125, 0.25 ])]
    """
    found: list[np.ndarray] = []
    before = np.full(1, 0.25)
    for count in counts:
        shorter = np.tile(before, len(count) // len(before))
        total = np.repeat(count.reshape(-1, 4).sum(1), 4)
        before = (count + strength * shorter) / (total + strength)
        found.append(before)
    return found


class Markov:
    """Predict each base from up to `order` bases before it; counts are of both strands.

    Examples:
        >>> from experiments.dna.bases import codes
        >>> model = Markov(1).count([codes("ACACACAC")])
        >>> print(model.bits(codes("CA"), strength=1.0)[1].round(2))
        [2.  0.3]
    """

    def __init__(self, order: int) -> None:
        if not 0 <= order <= 12:
            raise ValueError(f"order must be 0 to 12, received {order}: a table has 4^(order + 1)")
        self.counts = [np.zeros(4 ** (k + 1), np.uint32) for k in range(order + 1)]

    def count(self, sequences: Iterable[np.ndarray]) -> Markov:
        """Count sequences and their reverse complements."""
        count_both_strands(self.counts, self.places, sequences)
        return self

    def places(self, sequence: np.ndarray) -> Iterable[np.ndarray]:
        """Return the position of each base in the table of each order."""
        return ending_words(sequence, len(self.counts))

    def bits(self, sequence: np.ndarray, strength: float) -> np.ndarray:
        """Return the bits of each base for each order from 0 on, [orders, bases]."""
        by_order = smoothed(self.counts, self.places(sequence), strength)
        return np.stack([-np.log2(each) for each in by_order])


class TwoSided:
    """Predict each base from up to `width` bases on each side; counts are of both strands.

    Contexts grow on both sides at once, so that predictions are equal on both strands.

    Examples:
        >>> from experiments.dna.bases import codes
        >>> model = TwoSided(1).count([codes("ACACACAC")])
        >>> print(model.bits(codes("ACA"), strength=1.0)[1].round(2))
        [2.  0.3 2. ]
    """

    def __init__(self, width: int) -> None:
        if not 0 <= width <= 6:
            raise ValueError(
                f"width must be 0 to 6, received {width}: a table has 4^(2 width + 1)"
            )
        self.counts = [np.zeros(4 ** (2 * k + 1), np.uint32) for k in range(width + 1)]

    def count(self, sequences: Iterable[np.ndarray]) -> TwoSided:
        """Count sequences and their reverse complements."""
        count_both_strands(self.counts, self.places, sequences)
        return self

    def places(self, sequence: np.ndarray) -> Iterable[np.ndarray]:
        """Return the position of each base in the table of each width."""
        for k, ending in enumerate(ending_words(sequence, 2 * len(self.counts) - 1)):
            if k % 2:
                continue
            side = k // 2
            around = np.concatenate([ending, np.full(side, -1)])[side:]  # the word with each base
            left, right = around >> 2 * (side + 1), around & (4**side - 1)
            x = (around >> 2 * side) & 3
            yield np.where(around >= 0, ((left << 2 * side | right) << 2) | x, -1)

    def bits(self, sequence: np.ndarray, strength: float) -> np.ndarray:
        """Return the bits of each base for each width from 0 on, [widths, bases]."""
        by_width = smoothed(self.counts, self.places(sequence), strength)
        return np.stack([-np.log2(each) for each in by_width])


def count_both_strands(
    counts: Sequence[np.ndarray],
    places: Callable[[np.ndarray], Iterable[np.ndarray]],
    sequences: Iterable[np.ndarray],
) -> None:
    """Add the counts of sequences and their reverse complements to tables."""
    for sequence in sequences:
        for strand in (sequence, reverse_complement(sequence)):
            for table, numbers in zip(counts, places(strand), strict=True):
                add(table, numbers)


def add(table: np.ndarray, numbers: np.ndarray) -> None:
    """Count numbers, except negative ones."""
    table += np.bincount(numbers[numbers >= 0], minlength=len(table)).astype(table.dtype)


@dataclass(frozen=True)
class Chosen:
    """The best table on validation sequences.

    Attributes:
        size: Order or width.
        strength: Strength of smoothing.
        bits: Bits of each base of those sequences.
    """

    size: int
    strength: float
    bits: float


def choose(
    model: Markov | TwoSided,
    validation: Sequence[np.ndarray],
    strengths: Sequence[float] = STRENGTHS,
    size: int | None = None,
) -> Chosen:
    """Choose size and smoothing with the fewest bits, or only the smoothing of a given size."""
    tried: list[Chosen] = []
    for strength in strengths:
        every = np.concatenate([model.bits(x, strength) for x in validation], 1)
        means = np.nanmean(every, 1).tolist()
        tried += [
            Chosen(each, strength, x) for each, x in enumerate(means) if size in (None, each)
        ]
    return min(tried, key=lambda each: each.bits)
