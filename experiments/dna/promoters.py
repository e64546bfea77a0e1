"""Transcription starts of E. coli, and places without a known start.

All places have a strand. A window consists of the bases before the first transcribed base and of
those from it on, in the direction of transcription. -60..+20, as biologists write it, are 60 and
20 bases, because there is no base 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from experiments.dna.bases import complement
from experiments.dna.examples import Examples
from experiments.dna.organisms import bacterium
from experiments.dna.splits import by_fifth
from experiments.sources import genomes

BEFORE, AFTER = 60, 20
"""The window that negatives are chosen by."""
RATIOS = {"random": 11, "intergenic": 3}
"""Negatives for each positive, by how they are drawn."""
CLEAR = 100
"""Bases between a negative and the nearest known start on its strand, at least."""
SEQUENCE = genomes.REGULATED
BLOCK = 10_000
"""Bases of which the places stay together when examples are drawn."""


@dataclass(frozen=True)
class Places:
    """Places on one sequence.

    Attributes:
        at: First transcribed base, [places].
        minus: Whether it is on the minus strand.
        positive: Whether transcription starts there.
        side: Training, validation or test.
    """

    at: np.ndarray
    minus: np.ndarray
    positive: np.ndarray
    side: np.ndarray


def windows(
    sequence: np.ndarray, at: np.ndarray, minus: np.ndarray, before: int, after: int
) -> np.ndarray:
    """Return the windows of places on a circle, each in its own direction.

    Examples:
        >>> from experiments.dna.bases import codes, letters
        >>> two = windows(codes("AACGT"), np.array([2, 2]), np.array([False, True]), 1, 2)
        >>> [letters(each) for each in two]
        ['ACG', 'CGT']
    """
    along = np.arange(-before, after)
    places = at[:, None] + np.where(minus[:, None], -along, along)
    bases = sequence[places % len(sequence)]
    return np.where(minus[:, None], complement(bases), bases)


@cache
def starts(*, experimental: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the transcription starts of E. coli and their strands."""
    return read_bed_starts(genomes.starts(experimental=experimental))


def read_bed_starts(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the single bases of a BED file, and which of them are on minus."""
    rows = [line.split("\t") for line in path.read_text("ascii").splitlines()]
    return np.array([int(row[1]) for row in rows]), np.array([row[5] == "-" for row in rows])


@cache
def promoters(negatives: str, *, width: int, held_out: int = 2, seed: int = 0) -> Places:
    """Return 1,301 starts with experimental evidence, and negatives.

    Negatives are drawn from the whole genome and both strands ("random"), or such that nothing of
    their
    -60..+20 is in a gene on any strand ("intergenic"). No start, experimental or not, is known
    within
    100 bases on their strand. They are the same for windows of all widths, except in the gaps.

    Args:
        negatives: "random" or "intergenic".
        width: Number of bases of the widest window, for the gap between sides.
        held_out: Number of the held-out fifth.
        seed: Seed of the draw.
    """
    if negatives not in RATIOS:
        raise ValueError(f"negatives must be one of {', '.join(RATIOS)}, received {negatives!r}")
    organism = bacterium("E. coli")
    length = len(organism.sequences[SEQUENCE])
    at, minus = starts(experimental=True)
    allowed = [clear_of(*starts(experimental=False), strand, length) for strand in (False, True)]
    if negatives == "intergenic":
        free = ~organism.genic[SEQUENCE]
        allowed = [
            x & whole(free, strand) for strand, x in zip((False, True), allowed, strict=True)
        ]
    drawn_at, drawn_minus = draw(allowed, RATIOS[negatives] * len(at), seed)
    every = np.concatenate([at, drawn_at])
    sides = by_fifth(length, held_out, width, circular=True)[every]
    return Places(
        every,
        np.concatenate([minus, drawn_minus]),
        np.arange(len(every)) < len(at),
        sides,
    )


@cache
def examples(
    negatives: str, before: int = BEFORE, after: int = AFTER, *, held_out: int = 2, seed: int = 0
) -> Examples:
    """Return the windows of `promoters`."""
    places = promoters(negatives, width=before + after, held_out=held_out, seed=seed)
    sequence = bacterium("E. coli").sequences[SEQUENCE]
    read = windows(sequence, places.at, places.minus, before, after)
    return Examples(read, places.positive, places.side, places.at // BLOCK)


def clear_of(
    at: np.ndarray, minus: np.ndarray, strand: bool, length: int, clear: int = CLEAR
) -> np.ndarray:
    """Return which bases of a circle are this far from all places on a strand, [bases]."""
    free = np.ones(length, bool)
    near = at[minus == strand][:, None] + np.arange(-clear, clear + 1)
    free[near % length] = False
    return free


def whole(free: np.ndarray, minus: bool, before: int = BEFORE, after: int = AFTER) -> np.ndarray:
    """Return the places of a circle at which the whole window is free, [bases].

    Examples:
        >>> free = np.array([True, True, True, False, True])
        >>> whole(free, False, before=1, after=1).tolist()
        [True, True, True, False, False]
    """
    left, right = (after - 1, before + 1) if minus else (before, after)
    doubled = np.concatenate([free[len(free) - left :], free, free[: right - 1]]).astype(int)
    total = np.concatenate([[0], np.cumsum(doubled)])
    return total[left + right :] - total[: -(left + right)] == left + right


def draw(allowed: list[np.ndarray], count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw different places among those allowed on plus and those allowed on minus."""
    plus, minus = (np.flatnonzero(each) for each in allowed)
    if count > len(plus) + len(minus):
        raise ValueError(f"{count} places are to be drawn from {len(plus) + len(minus)}")
    drawn = np.random.default_rng(seed).choice(len(plus) + len(minus), count, replace=False)
    return np.concatenate([plus, minus])[drawn], drawn >= len(plus)
