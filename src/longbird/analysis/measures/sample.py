"""Stratified random samples of tokens, and estimates from them.

Tokens are drawn from each stratum ("kind") separately [1], so that a few unusual tokens are not
missed. Kinds are distinguished by whether a token is in the largest component of the graph, leads
to it, or neither, and by the number of walks of some steps from it. Rare kinds, and the tokens
with the fewest and the most walks, are taken completely.

[1] W. G. Cochran, "Sampling Techniques", 1977, chapter 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, stdtrit

from longbird.analysis.measures.digraph import Digraph, Floats, Ints
from longbird.analysis.measures.paths import hops_from
from longbird.core.graph.random import uniform

CONFIDENCE = 0.95
# Number of steps of the walks, and of tokens that are drawn from a kind.
WALK = 3
EACH = 8


@dataclass(frozen=True, eq=False)
class Sample:
    """Positions drawn from kinds of tokens.

    Attributes:
        positions: Distinct positions: int64 [sample].
        kind: Kind of each position: int64 [sample].
        sizes: Number of tokens of each kind: int64 [kinds].
        family: Number shared by kinds that differ only in their walks: int64 [kinds].
    """

    positions: Ints
    kind: Ints
    sizes: Ints
    family: Ints

    def total(self, values: npt.NDArray[Any]) -> Floats:
        """Estimate the sum over all tokens of values [rows, sample], for each row."""
        drawn = np.bincount(self.kind, minlength=len(self.sizes))
        return values @ (self.sizes / drawn)[self.kind]

    def error(self, values: npt.NDArray[Any]) -> Floats:
        """Return the maximum error of the totals with 95% confidence.

        Besides the variance of each kind, it includes one additional token in each family that is
        too rare to have been drawn, and differs by half of the range of the sample.
        """
        drawn = np.bincount(self.kind, minlength=len(self.sizes))
        part = drawn < self.sizes  # kinds that were not taken completely
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
    """Draw about `size` tokens of a graph without hubs; equal seeds draw the same."""
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
            # Groups of tokens with many walks are small.
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
    """Return the interval of a share by Clopper and Pearson, from hits and draws."""
    tail = (1 - CONFIDENCE) / 2
    low = betaincinv(hits, draws - hits + 1, tail) if hits else 0.0
    high = betaincinv(hits + 1, draws - hits, 1 - tail) if hits < draws else 1.0
    return float(low), float(high)
