"""Small-world coefficients: is a graph clustered like a lattice, with paths as short as at random?

Both coefficients compare the undirected simple graph with graphs of the same size and mean degree:
a random graph (Erdős, Rényi) and a ring on which each token has its nearest neighbours (that of
Watts and Strogatz before rewiring). Small random graphs are drawn and measured; for larger ones,
and for the ring, formulas are used. Those for the ring are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, log, log1p, sqrt

import numpy as np
from scipy.special import stdtrit

from longbird.analysis.measures.clustering import Clustering, cluster
from longbird.analysis.measures.digraph import Digraph, Floats, undirected_of
from longbird.analysis.measures.hops import Hops, count_hops
from longbird.analysis.measures.sample import CONFIDENCE
from longbird.core.graph.random import below

# Number of random graphs that are drawn, and maximum number of edges of all of them.
DRAWS = 16
MOST_EDGES = 2**17
MOST_TOKENS = 4096
# Euler's constant.
EULER = 0.5772156649015329


@dataclass(frozen=True)
class SmallWorld:
    """Comparison of a graph with random graphs and lattices of the same degree.

    Attributes:
        sigma: (C / C_random) / (L / L_random) [1]: above 1, a small world. It grows with n.
        omega: L_random / L - C / C_lattice [2]: near 0 a small world, towards -1 a lattice and
            towards 1 a random graph. None if tokens have fewer than three neighbours on average,
            because such a lattice has hardly any triangles.
        clustering: C of the graph.
        average_path_length: L of the graph, as undirected.
        random_clustering: C of drawn random graphs, or k / (n - 1).
        random_path_length: L of drawn random graphs, or (ln n - 0.577) / ln k + 1/2 [3]; if they
            are so dense that every pair is within two hops, 2 - k / (n - 1).
        lattice_clustering: C of the ring: 3 (k - 2) / (4 (k - 1)) if it is long.
        drawn: Number of random graphs that were drawn and measured; 0 if formulas were used.
        sigma_interval: 95% confidence interval with respect to the drawn random graphs, for C and
            L as they are; None if fewer than two were drawn.
        omega_interval: The same for omega.
        exact: Whether C and L of the graph are exact.

    References:
        - [1] M. D. Humphries, K. Gurney, "Network 'small-world-ness'", PLoS ONE 3, 2008.
        - [2] Q. K. Telesford et al., "The ubiquity of small-world networks", 2011.
        - [3] A. Fronczak, P. Fronczak, J. A. Hołyst, "Average path length in random networks",
          Phys. Rev. E 70, 056110, 2004.
    """

    sigma: float
    omega: float | None
    clustering: float
    average_path_length: float
    random_clustering: float
    random_path_length: float
    lattice_clustering: float
    drawn: int
    sigma_interval: tuple[float, float] | None
    omega_interval: tuple[float, float] | None
    exact: bool


def small_world(graph: Digraph, clustering: Clustering, hops: Hops) -> SmallWorld | None:
    """Compare an undirected graph, given its clustering and hops.

    None if it is not connected, or has two neighbours a token or fewer, as a chain has.
    """
    n, length = graph.n, hops.average
    if n < 3 or length is None or not graph.connected:
        return None
    degree = float(graph.degrees.mean())
    if degree <= 2:
        return None
    draws = 0
    if n <= MOST_TOKENS and n * degree <= MOST_EDGES and degree < n - 1:
        draws = int(min(DRAWS, MOST_EDGES // (n * degree)))
    if draws:
        found = np.array([_drawn(n, degree, seed) for seed in range(draws)])  # [draws, 2]
    else:
        found = np.array([[degree / (n - 1), _random_length(n, degree)]])
    random_clustering, random_length = found.mean(axis=0).tolist()
    lattice = lattice_clustering(n, degree)
    sigma = clustering.value / random_clustering / (length / random_length)
    omega = random_length / length - clustering.value / lattice if degree >= 3 else None
    return SmallWorld(
        sigma=sigma,
        omega=omega,
        clustering=clustering.value,
        average_path_length=length,
        random_clustering=random_clustering,
        random_path_length=random_length,
        lattice_clustering=lattice,
        drawn=draws,
        sigma_interval=_times(sigma, found),
        omega_interval=None if omega is None else _plus(omega, found[:, 1] / length),
        exact=clustering.interval is None and hops.exact,
    )


def _plus(value: float, drawn: Floats) -> tuple[float, float] | None:
    """Return a 95% interval of a sum with a mean."""
    if len(drawn) < 2:
        return None
    error = _error(drawn)
    return value - error, value + error


def _times(value: float, drawn: Floats) -> tuple[float, float] | None:
    """Return a 95% interval of a product with two means, from their relative errors."""
    if len(drawn) < 2:
        return None
    factor = exp(sqrt(sum((_error(each) / each.mean()) ** 2 for each in drawn.T)))
    return value / factor, value * factor


def _error(drawn: Floats) -> float:
    """Return the error of a mean with 95% confidence."""
    quantile = float(stdtrit(len(drawn) - 1, (1 + CONFIDENCE) / 2))
    return quantile * float(drawn.std(ddof=1)) / sqrt(len(drawn))


def _drawn(n: int, degree: float, seed: int) -> tuple[float, float]:
    """Return clustering and path length of a random graph of about this mean degree."""
    pairs, wanted = n * (n - 1) / 2, n * degree / 2
    # This many draws give the desired number of pairs, since some are drawn twice.
    draws = ceil(-pairs * log1p(-min(wanted, pairs - 0.5) / pairs))
    i = below(n, 37, seed, 0, np.arange(draws))
    j = below(n - 1, 37, seed, 1, np.arange(draws))
    graph = undirected_of(n, i, j + (j >= i))
    # A tiny graph that happens to have no triangle gets the expected share instead.
    return cluster(graph).value or degree / (n - 1), count_hops(graph).average or 1.0


def _random_length(n: int, degree: float) -> float:
    share = degree / (n - 1)
    if n * share**2 >= 2 * log(n):  # then all pairs have a neighbour in common
        return 2 - share
    return max(2 - share, (log(n) - EULER) / log(degree) + 0.5)


def lattice_clustering(n: int, degree: float) -> float:
    """Return the clustering of a ring by the number of neighbours; interpolated for odd numbers.

    Examples:
        >>> lattice_clustering(1000, 4)
        0.5
        >>> lattice_clustering(5, 4)
        1.0
    """
    low = int(degree // 2) * 2
    high = min(low + 2, n - 1)
    found = _ring(n, low)
    if degree == low or high == low:
        return found
    share = (degree - low) / (high - low)
    return (1 - share) * found + share * _ring(n, high)


def _ring(n: int, k: int) -> float:
    if k < 2:
        return 0.0
    if 3 * k < 2 * n:  # the neighbours of a token do not meet behind its back
        return 3 * (k - 2) / (4 * (k - 1))
    near = np.zeros(n)
    near[1 : k // 2 + 1] = near[n - k // 2 :] = 1
    if k == n - 1:
        near[1:] = 1
    shared = np.fft.irfft(np.fft.rfft(near) ** 2, n)  # common neighbours at each distance
    degree = near.sum()
    return float((near @ shared) / (degree * (degree - 1)))
