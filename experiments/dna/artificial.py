"""Promoters of Drosophila, against negatives that are made of them.

Papers cut a promoter into 20 pieces and replace 12 of them. The replacement decides the score, and
is part of the name here: "permuted" changes the order of the 12 pieces, "composition" inserts
random bases with the frequencies of the promoter, and "uniform" random bases with equal
frequencies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from experiments.dna.bases import UNKNOWN, read_fasta, reverse_complement
from experiments.dna.examples import Examples
from experiments.dna.splits import by_name
from experiments.sources import genomes

RECIPES = ("permuted", "composition", "uniform")
PIECES, SUBSTITUTED = 20, 12
LENGTH = 2000
CHROMOSOMES = (("chr2R", "chr2RHet"), ("chrX", "chrXHet"))
"""Those that are held out, and those that a model is chosen by."""


@dataclass(frozen=True)
class Upstream:
    """Sequences before genes, on the strand of the gene.

    Attributes:
        bases: The sequences, [sequences, 2000]; the last base is next to the gene.
        chromosome: Chromosome of each.
        start: Position of the leftmost base on the chromosome.
        minus: Whether the gene is on the minus strand.
    """

    bases: np.ndarray
    chromosome: np.ndarray
    start: np.ndarray
    minus: np.ndarray


@cache
def upstream() -> Upstream:
    """Return 17,253 distinct sequences, without truncated ones and unknown bases."""
    found: dict[bytes, tuple[str, int, bool]] = {}
    for title, bases in read_fasta(genomes.drosophila_upstream()):
        name, place = title.split()
        where = re.fullmatch(r"(\w+):(-?\d+)-(\d+)", place)
        if where is None:
            raise ValueError(f"expected a title that ends with a place, received {title!r}")
        if len(bases) == LENGTH and (bases != UNKNOWN).all():
            minus = name.endswith("_r")
            found.setdefault(bases.tobytes(), (where[1], int(where[2]) - 1, minus))
    chromosome, start, minus = (np.array(column) for column in zip(*found.values(), strict=True))
    every = np.frombuffer(b"".join(found), np.uint8).reshape(-1, LENGTH)
    return Upstream(every, chromosome, start, minus)


def substituted(promoters: np.ndarray, recipe: str, seed: int) -> np.ndarray:
    """Return a negative for each promoter.

    Args:
        promoters: [promoters, bases] without unknown bases; a multiple of 20 bases.
        recipe: One of RECIPES.
        seed: Seed of the draw.

    Examples:
        >>> one = np.repeat(np.arange(20) % 4, 2).astype(np.uint8)[None]
        >>> made = substituted(one, "uniform", seed=0)
        >>> int((made != one).reshape(20, 2).any(1).sum()) <= 12
        True
    """
    count, length = promoters.shape
    if length % PIECES:
        raise ValueError(f"promoters must have a multiple of {PIECES} bases, received {length}")
    if (promoters == UNKNOWN).any():
        raise ValueError("promoters must have no unknown bases: substitutes would have none")
    random = np.random.default_rng(seed)
    pieces = promoters.reshape(count, PIECES, -1).copy()
    chosen = random.permuted(np.tile(np.arange(PIECES), (count, 1)), axis=1)[:, :SUBSTITUTED]
    rows = np.arange(count)[:, None]
    if recipe == "permuted":
        pieces[rows, np.sort(chosen)] = pieces[rows, chosen]
    elif recipe == "composition":
        share = np.stack([(promoters == base).mean(1) for base in range(4)], 1)
        upto = np.cumsum(share, 1)[:, None, None, :3]
        drawn = random.random((count, SUBSTITUTED, pieces.shape[2], 1))
        pieces[rows, chosen] = (drawn >= upto).sum(-1)
    elif recipe == "uniform":
        drawn = random.integers(0, 4, (count, SUBSTITUTED, pieces.shape[2]))
        pieces[rows, chosen] = drawn
    else:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, received {recipe!r}")
    return pieces.reshape(count, length)


@cache
def examples(recipe: str, length: int, seed: int = 0) -> Examples:
    """Return the last bases before each gene and as many negatives, on the same side as theirs."""
    if not 0 < length <= LENGTH:
        raise ValueError(f"length must be 1 to {LENGTH}, received {length}")
    every = upstream()
    promoters = every.bases[:, LENGTH - length :]
    made = substituted(promoters, recipe, seed)
    side = by_name(every.chromosome, *CHROMOSOMES)
    return Examples(
        np.concatenate([promoters, made]),
        np.arange(2 * len(promoters)) < len(promoters),
        np.tile(side, 2),
        np.tile(overlapping(every), 2),
    )


def overlapping(every: Upstream) -> np.ndarray:
    """Return the number of the stretch of each sequence; overlapping ones share it."""
    order = np.lexsort((every.start, every.chromosome))
    name, start = every.chromosome[order], every.start[order]
    apart = (name[1:] != name[:-1]) | (start[1:] >= start[:-1] + LENGTH)
    numbers = np.empty(len(order), int)
    numbers[order] = np.concatenate([[0], np.cumsum(apart)])
    return numbers


def merged(every: Upstream) -> list[tuple[str, int, np.ndarray]]:
    """Return the stretches that sequences cover, with chromosome and start, on the plus strand."""
    numbers = overlapping(every)
    found: list[tuple[str, int, np.ndarray]] = []
    by_stretch = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
    for rows in by_stretch:
        begin, end = int(every.start[rows].min()), int(every.start[rows].max()) + LENGTH
        bases = np.full(end - begin, UNKNOWN, np.uint8)
        for row in rows.tolist():
            plus = every.bases[row]
            at = int(every.start[row]) - begin
            bases[at : at + LENGTH] = reverse_complement(plus) if every.minus[row] else plus
        found.append((str(every.chromosome[rows[0]]), begin, bases))
    return found
