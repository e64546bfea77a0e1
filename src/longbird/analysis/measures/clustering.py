"""The clustering coefficient: how often two neighbours of a token are neighbours themselves.

That of networkx's `average_clustering`: of the undirected simple graph (an edge if either token
sees the other, none to itself), the mean over all tokens of the share of pairs of neighbours that
are joined; 0 where a token has fewer than two neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array

from longbird.analysis.measures.digraph import Digraph, Floats, Ints
from longbird.analysis.measures.hops import runs
from longbird.analysis.measures.sample import share_interval
from longbird.core.graph.random import below

# Pairs of neighbours that are looked at one by one: some seconds. Of each of many graphs, as many
# as take less than two.
MOST_WEDGES = 2**27
FEWEST_WEDGES = 2**25
# Hoeffding: off by more than 0.01 in one case of a hundred. [1] Seshadhri, Pinar, Kolda, "Wedge
# sampling for computing clustering coefficients and triangle counts on large graphs", 2014.
SAMPLES = 26_492
MOST_TILES = 4096
CHUNK = 1 << 23


@dataclass(frozen=True)
class Clustering:
    """The coefficient, and its 95% confidence interval if it is estimated from a sample."""

    value: float
    interval: tuple[float, float] | None = None


def cluster(graph: Digraph, effort: float = 1.0, seed: int = 0) -> Clustering:
    """Return the clustering coefficient of an undirected graph; see `Digraph.undirected`.

    Args:
        graph: The graph.
        effort: The share of the usual work after which a sample is taken instead.
        seed: Of the sample.
    """
    n = graph.n
    if n < 3:
        return Clustering(0.0)
    rest = graph.without_hubs
    wedges = min(MOST_WEDGES, max(effort * MOST_WEDGES, FEWEST_WEDGES))
    joined = _joined(rest, wedges)
    if joined is not None:
        # Hubs are neighbours of every token and of all its neighbours.
        hubs, degree = graph.hubs, rest.degrees
        joined = joined + hubs * degree + hubs * (hubs - 1) / 2
        local = _shares(joined, degree + hubs)
        return Clustering(float(local.sum() + hubs * _of_hub(graph)) / n)
    # Whether the two ends of a wedge at each of some random tokens are joined.
    m, degree = graph.ordinary, graph.degrees
    centre = below(m, 23, seed, np.arange(SAMPLES))
    centre = centre[degree[centre] >= 2]
    left = _neighbour(graph, centre, seed, 0, centre)
    right = _neighbour(graph, centre, seed, 1, left)
    hits = int(graph.has(left, right).sum())
    value, low, high = (
        (m * share + graph.hubs * _of_hub(graph)) / n
        for share in (hits / SAMPLES, *share_interval(hits, SAMPLES))
    )
    return Clustering(value, (low, high))


def _of_hub(graph: Digraph) -> float:
    """Return the coefficient of a hub: the share of pairs of other tokens that are joined."""
    n = graph.n
    edges = int(graph.degrees.sum()) // 2
    return (edges - (n - 1)) / ((n - 1) * (n - 2) / 2)


def _shares(joined: Floats, degree: Ints) -> Floats:
    pairs = degree * (degree - 1) / 2
    return np.divide(joined, pairs, out=np.zeros(len(pairs)), where=pairs > 0)


def _joined(graph: Digraph, most: float) -> Floats | None:
    """Return how many pairs of neighbours of each position are joined; None if it takes long."""
    if not graph.ordinary:
        return np.zeros(0)
    found = runs(graph)
    if found is not None:
        return _joined_in_runs(*(each.astype(np.float64) for each in found))
    if not graph.part.nnz and len(graph.lengths) <= MOST_TILES:
        return _joined_in_tiles(graph)
    if (graph.degrees.astype(np.float64) ** 2).sum() <= most:
        return _joined_in_lists(graph)
    return None


def _joined_in_runs(low: Floats, high: Floats) -> Floats:
    """Count the pairs if each token and its neighbours are a run of positions.

    The run of a later neighbour u begins at low[u] and goes on beyond that of i, so that the two
    share high[i] - low[u] + 1 positions.
    """
    i = np.arange(len(low))
    first, last = low.astype(np.int64), high.astype(np.int64)
    low_sum, high_sum = (np.append(0, np.cumsum(each)) for each in (low, high))
    after, before = last - i, i - first
    shared = after * (high + 1) - (low_sum[last + 1] - low_sum[i + 1])
    shared += (high_sum[i] - high_sum[first]) - before * (low - 1)
    # The neighbours that u shares with i include neither u nor i.
    return (shared - 2 * (after + before)) / 2


def _joined_in_tiles(graph: Digraph) -> Floats:
    """Count closed walks of three steps over tiles, except those that stay in place."""
    tiles, length = graph.full, graph.lengths.astype(np.float64)
    loop = tiles.diagonal()
    weighted = csr_array(tiles.multiply(length[None, :]))
    two = weighted @ tiles  # walks of two steps between a token of one tile and one of another
    three = weighted.multiply(two.T).sum(axis=1)
    walks = three - 2 * loop * two.diagonal() - weighted @ loop + 2 * loop
    return (np.asarray(walks, np.float64) / 2)[graph.tile]


def _joined_in_lists(graph: Digraph) -> Floats:
    """Count the pairs one by one, for some tokens at a time."""
    m, degree = graph.ordinary, graph.degrees
    row, column = graph.listed(0, m)
    other = row != column
    row, column = row[other], column[other]
    matrix = csr_array(coo_array((np.ones(len(row)), (row, column)), shape=(m, m)))
    found = np.empty(m)
    ends = np.cumsum(np.asarray(matrix @ degree.astype(np.float64)))
    begin = 0
    while begin < m:
        before = ends[begin - 1] if begin else 0.0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        some = matrix[begin:end]
        found[begin:end] = np.asarray((some @ matrix).multiply(some).sum(axis=1)) / 2
        begin = end
    return found


def _neighbour(graph: Digraph, centre: Ints, seed: int, side: int, other: Ints) -> Ints:
    """Draw a neighbour of each centre that is neither the centre nor the other one."""
    found = np.full(len(centre), -1)
    left = np.arange(len(centre))
    tile_ends = np.append(0, np.cumsum(graph.lengths[graph.full.indices]))
    draws = 0
    while len(left):
        i = centre[left]
        tile = graph.tile[i]
        first, last = graph.full.indptr[tile], graph.full.indptr[tile + 1]
        in_full = tile_ends[last] - tile_ends[first]
        in_part = np.diff(graph.part.indptr)[i]
        rank = below(in_full + in_part + graph.hubs, 29, seed, side, draws, left)
        chosen = rank - in_full - in_part + graph.ordinary  # a hub, unless
        by_tile, by_edge = rank < in_full, (rank >= in_full) & (rank < in_full + in_part)
        at = tile_ends[first[by_tile]] + rank[by_tile]
        entry = np.searchsorted(tile_ends, at, side="right") - 1
        chosen[by_tile] = graph.starts[graph.full.indices[entry]] + at - tile_ends[entry]
        chosen[by_edge] = graph.part.indices[
            graph.part.indptr[i[by_edge]] + (rank - in_full)[by_edge]
        ]
        good = (chosen != i) & (chosen != other[left])
        found[left[good]] = chosen[good]
        left, draws = left[~good], draws + 1
    return found
