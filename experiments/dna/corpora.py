"""Sequences for language models, and held-out sequences whose bits are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from experiments.dna.artificial import CHROMOSOMES, merged, upstream
from experiments.dna.bases import read_fasta
from experiments.dna.organisms import bacterium
from experiments.dna.splits import (
    TEST,
    TRAIN,
    VALIDATION,
    by_fifth,
    by_name,
    stretches,
)
from experiments.sources import genomes

PIECE = 16384
"""Bases of what counts as one document."""
GAP = 65536
"""Bases between sides; the window of a model must not be longer."""


@dataclass(frozen=True)
class Corpus:
    """Stretches of DNA.

    Attributes:
        train: Training stretches, [bases] each.
        validation: Validation stretches.
        test: Held-out stretches.
    """

    train: Sequence[np.ndarray]
    validation: Sequence[np.ndarray]
    test: Sequence[np.ndarray]


@cache
def corpus(name: str) -> Corpus:
    """Return one of CORPORA."""
    if name not in CORPORA:
        raise ValueError(f"corpus must be one of {', '.join(CORPORA)}, received {name!r}")
    return CORPORA[name]()


def of_one(sequence: np.ndarray, *, circular: bool, gap: int = GAP) -> Corpus:
    """Hold out the last fifth of a sequence."""
    sides = by_fifth(len(sequence), 4, gap, circular=circular)

    def pieces(side: int) -> list[np.ndarray]:
        return [sequence[begin:end] for begin, end in stretches(sides == side)]

    return Corpus(pieces(TRAIN), pieces(VALIDATION), pieces(TEST))


def _coli() -> Corpus:
    [sequence] = bacterium("E. coli").sequences.values()
    return of_one(sequence, circular=True)


def _worm() -> Corpus:
    [(_, sequence)] = read_fasta(genomes.caenorhabditis_x())
    return of_one(sequence, circular=False)


def _fly() -> Corpus:
    """Return the upstream sequences of Drosophila, in which overlapping bases count once."""
    every = merged(upstream())
    sides = by_name(np.array([name for name, _, _ in every]), *CHROMOSOMES)

    def pieces(side: int) -> list[np.ndarray]:
        return [x for (_, _, x), its in zip(every, sides, strict=True) if its == side]

    return Corpus(pieces(TRAIN), pieces(VALIDATION), pieces(TEST))


def _other_species() -> Corpus:
    """Train on B. theta and S. aureus, and test on E. coli.

    The last fifth of their largest contigs is for validation.
    """
    contigs = list(bacterium("B. theta").sequences.values())
    [circle] = bacterium("S. aureus").sequences.values()
    aureus = of_one(circle, circular=True)
    largest = max(range(len(contigs)), key=lambda i: len(contigs[i]))
    rest = [x for i, x in enumerate(contigs) if i != largest]
    chosen = [*aureus.test, contigs[largest]]
    test = list(bacterium("E. coli").sequences.values())
    return Corpus([*rest, *aureus.train, *aureus.validation], chosen, test)


CORPORA: dict[str, Callable[[], Corpus]] = {
    "E. coli": _coli,
    "C. elegans X": _worm,
    "Drosophila upstream": _fly,
    "other bacteria to E. coli": _other_species,
}
"""What bits are counted on."""


def by_piece(values: np.ndarray, size: int = PIECE) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of values over pieces, and the numbers of known values.

    Examples:
        >>> by_piece(np.array([1.0, 2.0, np.nan]), 2)
        (array([3., 0.]), array([2, 0]))
    """
    begins = np.arange(0, len(values), size)
    known = ~np.isnan(values)
    sums = np.add.reduceat(np.where(known, values, 0.0), begins)
    return sums, np.add.reduceat(known.astype(int), begins)
