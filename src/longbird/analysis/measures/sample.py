"""A random sample of tokens, and what it says of all of them.

Tokens are drawn from one kind at a time [1], so that a few that are unlike all others are not
missed. A token is in the largest part of the graph, leads there, or does neither; and few or many
walks of some steps begin at it. A rare kind is taken as a whole, and so are the tokens with the
fewest walks and the most. [1] W. G. Cochran, "Sampling Techniques", 1977, chapter 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, stdtrit

from longbird.analysis.measures.breadth import hops_from
from longbird.analysis.measures.digraph import Digraph, Floats, Ints
from longbird.core.graph.random import uniform

CONFIDENCE = 0.95
# Steps of the walks, and tokens that are drawn of a kind.
WALK = 3
EACH = 8


@dataclass(frozen=True, eq=False)
class Sample:
    """Positions drawn from kinds of tokens.

    Attributes:
        positions: int64 [sample], all different.
        kind: int64 [sample], the kind of each.
        sizes: int64 [kinds], how many tokens there are of each kind.
        family: int64 [kinds], a number for kinds that differ in their walks alone.
    """

    positions: Ints
    kind: Ints
    sizes: Ints
    family: Ints

    def total(self, values: npt.NDArray[Any]) -> Floats:
        """Estimates the sum over all tokens of values [rows, sample], for each row."""
        drawn = np.bincount(self.kind, minlength=len(self.sizes))
        return values @ (self.sizes / drawn)[self.kind]

    def error(self, values: npt.NDArray[Any]) -> Floats:
        """How far the totals are off, at most, with 95% confidence.

        Besides what each kind varies, one token more is reckoned with in each family, half as far
        from the others as any two in the sample are: one that is too rare to have been drawn.
        """
        drawn = np.bincount(self.kind, minlength=len(self.sizes))
        part = drawn < self.sizes  # kinds that were not taken as a whole
        variance = np.zeros(len(values))
        for kind in np.flatnonzero(part):
            some, size = values[:, self.kind == kind], int(self.sizes[kind])
            factor = size * (size - some.shape[1]) / some.shape[1]
            variance += factor * some.var(axis=1, ddof=1)
        for family in np.unique(self.family[part]):
            these = part & (self.family == family)
            spread = np.ptp(values[:, self.family[self.kind] == family], axis=1) / 2
            variance += (self.sizes[these].sum() * spread / drawn[these].sum()) ** 2
        freedom = int((drawn[part] - 1).sum())
        quantile = float(stdtrit(max(freedom, 1), (1 + CONFIDENCE) / 2))
        return quantile * np.sqrt(variance)


def draw_sample(graph: Digraph, size: int, seed: int) -> Sample:
    """About `size` tokens of a graph without hubs; the same ones for the same seed."""
    n = graph.n
    in_largest = graph.parts == np.bincount(graph.parts).argmax()
    leads_there = hops_from(graph.transposed, int(in_largest.argmax())) >= 0
    standing = in_largest.astype(np.int64) + leads_there
    walks = np.ones(n)
    for _ in range(WALK):
        walks = graph.times(walks)
    drawn: list[Ints] = []
    sizes: list[int] = []
    family: list[int] = []
    for each in np.unique(standing):
        tokens = np.flatnonzero(standing == each)
        tokens = tokens[np.argsort(walks[tokens], kind="stable")]  # then by position
        most = max(2 * EACH, size // 2, size * len(tokens) // n)
        groups = [(tokens, most)]
        if len(tokens) > most:
            tail = most // 8
            low, middle, high = np.split(tokens, [tail, len(tokens) - tail])
            # Groups in which much is going on are small.
            weight = np.cumsum(np.sqrt(1 + np.minimum(walks[middle], n)))
            cuts = np.linspace(0, weight[-1], (most - 2 * tail) // EACH + 1)[1:-1]
            between = np.split(middle, np.searchsorted(weight, cuts))
            groups = [(low, tail), (high, tail), *((group, EACH) for group in between)]
        for group, wanted in groups:
            if not len(group):
                continue
            drawn.append(group[np.argsort(uniform(17, seed, group))[:wanted]])
            sizes.append(len(group))
            family.append(int(each))
    kind = np.repeat(np.arange(len(sizes)), [len(group) for group in drawn])
    return Sample(np.concatenate(drawn), kind, np.array(sizes), np.array(family))


def share_interval(hits: int, draws: int) -> tuple[float, float]:
    """Between what a share is of which so many draws were hits, by Clopper and Pearson."""
    tail = (1 - CONFIDENCE) / 2
    low = betaincinv(hits, draws - hits + 1, tail) if hits else 0.0
    high = betaincinv(hits + 1, draws - hits, 1 - tail) if hits < draws else 1.0
    return float(low), float(high)
