"""Is a graph a small world: clustered like a lattice, and yet with paths as short as at random?

Both coefficients compare the undirected simple graph with others of as many tokens and the same
mean degree: a random graph (Erdős, Rényi) and a ring on which each token has its nearest
neighbours (Watts, Strogatz). What these have is computed from formulas, not drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

# Euler's constant.
EULER = 0.5772156649015329


@dataclass(frozen=True)
class SmallWorld:
    """How a graph compares with a random one and with a lattice of the same degree.

    Attributes:
        sigma: (C / C_random) / (L / L_random) [1]: above 1, a small world. It grows with n.
        omega: L_random / L - C / C_lattice [2]: near 0 a small world, towards -1 a lattice and
            towards 1 a random graph.
        clustering: C of the graph.
        average_path_length: L of the graph, as undirected.
        random_clustering: C of a random graph: the share k / (n - 1) of all pairs.
        random_path_length: L of a random graph, (ln n - 0.577) / ln k + 1/2 [3]; where it is so
            dense that every pair has one hop or two, 2 - k / (n - 1).
        lattice_clustering: C of the ring: 3 (k - 2) / (4 (k - 1)) where it is long.

    References:
        - [1] M. D. Humphries, K. Gurney, "Network 'small-world-ness'", PLoS ONE 3, 2008.
        - [2] Q. K. Telesford et al., "The ubiquity of small-world networks", 2011.
        - [3] A. Fronczak, P. Fronczak, J. A. Hołyst, "Average path length in random networks",
          Phys. Rev. E 70, 056110, 2004.
    """

    sigma: float
    omega: float
    clustering: float
    average_path_length: float
    random_clustering: float
    random_path_length: float
    lattice_clustering: float


def small_world(
    n: int, degree: float, clustering: float, path_length: float | None
) -> SmallWorld | None:
    """Compare a connected graph; None if it has fewer than 2 neighbours a token, as a chain has.

    Args:
        n: Tokens.
        degree: Mean number of neighbours.
        clustering: The clustering coefficient.
        path_length: Mean hops between two tokens; None if some are not connected.
    """
    if path_length is None or degree <= 2:
        return None
    share = degree / (n - 1)
    random_length = 2 - share
    if n * share**2 < 2 * log(n):  # then some pair has no neighbour in common
        random_length = max(random_length, (log(n) - EULER) / log(degree) + 0.5)
    lattice = lattice_clustering(n, degree)
    return SmallWorld(
        sigma=clustering / share / (path_length / random_length),
        omega=random_length / path_length - clustering / lattice,
        clustering=clustering,
        average_path_length=path_length,
        random_clustering=share,
        random_path_length=random_length,
        lattice_clustering=lattice,
    )


def lattice_clustering(n: int, degree: float) -> float:
    """The clustering of a ring whose tokens have so many neighbours; between even numbers, a mean.

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
