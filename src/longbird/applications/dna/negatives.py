"""Negatives for promoters: other places of the genome, or sequences made from promoters.

The choice of negatives determines the scores, so it is named wherever a score is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from longbird.applications.dna.genomes import Genome, Interval
from longbird.applications.dna.sweeps import bases_around
from longbird.errors import InvalidValueError

PIECES, CHANGED = 20, 12
"""Number of pieces of an artificial negative, and of those that change (Oubounyt et al. 2019)."""
TRIES = 2000
"""Maximum number of draws per place, after which there is considered to be no room."""
RECIPES = {
    "random": "random places of the genome on both strands, at least a window away from starts "
    "on their strand",
    "intergenic": "random places of the genome on both strands, at least a window away from "
    "starts on their strand, with no base of the window in a gene of either strand",
    "permuted": "artificial: promoters with 12 of 20 pieces in another order",
    "shuffled": "artificial: promoters with the bases of 12 of 20 pieces shuffled",
    "uniform": "artificial: promoters with 12 of 20 pieces of random bases, all equally likely",
}


def artificial(bases: str, recipe: str, draw: np.random.Generator) -> str:
    """Return a sequence made from a promoter, of which 12 of 20 pieces change.

    Examples:
        >>> made = artificial("AC" * 50 + "GT" * 50, "permuted", np.random.default_rng(0))
        >>> len(made), sorted(made) == sorted("AC" * 50 + "GT" * 50)
        (200, True)
    """
    edges = np.linspace(0, len(bases), PIECES + 1).astype(int)
    pieces = [bases[a:b] for a, b in itertools.pairwise(edges)]
    chosen = np.sort(draw.choice(PIECES, CHANGED, replace=False))
    if recipe == "permuted":
        for place, source in zip(
            chosen, [pieces[i] for i in draw.permutation(chosen)], strict=True
        ):
            pieces[place] = source
        return "".join(pieces)
    for place in chosen:
        own = list(pieces[place])
        if recipe == "uniform":
            pieces[place] = "".join(draw.choice(list("ACGT"), len(own)))
        else:
            pieces[place] = "".join(draw.permutation(own)) if own else ""
    return "".join(pieces)


def places(
    genome: Genome,
    window_at: Callable[[str, int, str], Interval],
    part_of: Callable[[Interval], str | None],
    quotas: dict[str, int],
    allowed: Callable[[str, int, str], bool],
    draw: np.random.Generator,
) -> Iterator[tuple[Interval, str]]:
    """Yield windows at random allowed places, each with its part, until the quotas are full."""
    left, total = dict(quotas), sum(quotas.values())
    seen: set[tuple[str, int, str]] = set()
    for _ in range(TRIES * max(total, 1)):
        if not any(left.values()):
            return
        number, reverse = int(draw.integers(genome.size)), int(draw.integers(2))
        contig, base = genome.locate(number)
        strand = "+-"[reverse]
        key: Any = (contig.name, base, strand)
        if key in seen or not allowed(*key):
            continue
        window = window_at(*key)
        part = part_of(window)
        if not left.get(part or "") or 2 * bases_around(genome, window).count("N") > len(window):
            continue
        seen.add(key)
        left[part or ""] -= 1
        yield window, str(part)
    if any(left.values()):
        missing = ", ".join(f"{number:,} for {part}" for part, number in left.items() if number)
        raise InvalidValueError(
            f"the genome has too few places for negatives ({missing} are missing): ask for fewer "
            "with `per_positive`, for shorter windows, or for another recipe with `negatives`"
        )
