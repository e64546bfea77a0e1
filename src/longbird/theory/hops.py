"""How many hops it takes from each token to each other, along the edges.

A hop is a layer: with edges (i, m) and (m, j), the content of j is in m after one layer and in i
after two. Hops are counted exactly where there is a short way to do so, and where all pairs are
within reach of plain counting; otherwise from a random sample of queries, each against all keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from longbird.graph.random import below
from longbird.layout.tiles import ranges
from longbird.theory.digraph import Digraph, Floats, Ints

Bits = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int32]

# Up to so many steps of 64 pairs each (some seconds) all pairs are counted.
MOST_STEPS = 2**29
MOST_INTERVAL_STEPS = 2**31
FEW_TOKENS = 1024
MOST_TILES = 4096
SAMPLES = 1024
FEWEST_SAMPLES = 64
# Words that are gathered at a time, which fit into a processor's cache.
CHUNK = 1 << 17
# 95% of a normal distribution are within so many standard deviations.
NORMAL = 1.96


@dataclass(frozen=True, eq=False)
class Hops:
    """Pairs of different tokens by the number of hops between them.

    Attributes:
        n: Tokens.
        within: float [hops], the ordered pairs within 1, 2, ... hops, until there are no new ones.
        fewest: int [hops], the fewest tokens that any query has seen after each layer, its own
            included; of a sample, those of its queries.
        diameter: The most hops of any pair; None if some pair is not connected.
        most: As `diameter`, but at most that; the two differ where only a sample was looked at.
        sample: Of a sample, how many others each query has reached: float [hops, queries]; None
            where all pairs were counted.
    """

    n: int
    within: Floats
    fewest: Ints
    diameter: int | None
    most: int | None
    sample: Floats | None = None

    @property
    def average(self) -> float | None:
        """The mean number of hops over the pairs that are connected; None if none is."""
        if not len(self.within) or not self.within[-1]:
            return None
        missing = self.within[-1] - np.append(0, self.within[:-1])
        return float(missing.sum() / self.within[-1])

    @property
    def average_interval(self) -> tuple[float, float] | None:
        """A 95% confidence interval of the average; None if it is exact."""
        average = self.average
        if self.sample is None or average is None:
            return None
        reached = self.sample[-1]
        before = np.vstack([np.zeros_like(reached), self.sample[:-1]])
        total = (reached - before).sum(axis=0)
        error = self._error(total - average * reached) / reached.mean()
        return max(1.0, average - error), average + error

    @property
    def reached_intervals(self) -> list[tuple[float, float]] | None:
        """95% confidence intervals of the share of pairs within each number of hops."""
        if self.sample is None:
            return None
        shares = self.sample / (self.n - 1)
        found = [(float(each.mean()), self._error(each)) for each in shares[1:]]
        known = float(self.within[0] / (self.n * (self.n - 1)))
        bounds = [(max(0.0, mean - error), min(1.0, mean + error)) for mean, error in found]
        return [(known, known), *bounds]

    def _error(self, values: Floats) -> float:
        left = 1 - len(values) / self.n  # of the queries, those not in the sample
        return float(NORMAL * values.std(ddof=1) * np.sqrt(left / len(values)))


def count_hops(graph: Digraph, seed: int = 0) -> Hops:
    """The hops between all tokens of a graph, by the quickest way that is exact, or a sample."""
    n = graph.n
    if n < 2:
        return Hops(n, np.zeros(0), np.zeros(0, np.int64), 0, 0)
    if graph.hubs:
        return _by_hubs(graph)
    found = runs(graph)
    if found is not None:
        return _by_runs(n, *found, seed)
    if not graph.part.nnz and len(graph.lengths) <= MOST_TILES:
        return _by_tiles(graph)
    return _by_sweeps(graph, seed)


def components(graph: Digraph) -> int:
    """The number of parts within which every token can reach every other."""
    if graph.hubs or not graph.n:
        return min(graph.n, 1)
    # Full tiles by two more nodes each: one that all its queries see, one that sees all its keys.
    m, tiles = graph.ordinary, len(graph.lengths)
    position, tile = np.arange(m), graph.tile
    full, part = graph.full.tocoo(), graph.part.tocoo()
    rows = [part.coords[0], position, m + tiles + tile, m + full.coords[0]]
    columns = [part.coords[1], m + tile, position, m + tiles + full.coords[1]]
    i, j = np.concatenate(rows), np.concatenate(columns)
    size = m + 2 * tiles
    matrix = csr_array(coo_array((np.ones(len(i)), (i, j)), shape=(size, size)))
    _, label = connected_components(matrix, directed=True, connection="strong")
    return len(np.unique(label[:m]))


def _by_hubs(graph: Digraph) -> Hops:
    """Through a hub every token is two hops from every other, or one."""
    n, edges = graph.n, int(graph.degrees.sum())
    fewest = int(graph.degrees.min()) + 1
    if edges == n * (n - 1):
        return Hops(n, np.array([float(edges)]), np.array([n]), 1, 1)
    return Hops(n, np.array([edges, n * (n - 1.0)]), np.array([fewest, n]), 2, 2)


# Windows, also causal and dilated ones: what a token reaches is a run of positions at every hop.


def runs(graph: Digraph) -> tuple[Places, Places] | None:
    """The first and last position that each token sees or is, if all between are seen too.

    None also if they do not ascend, because then the runs of later hops are harder to find.
    """
    position = np.arange(graph.ordinary)
    low, high = position.copy(), position.copy()
    for matrix, first, last, row in (
        (graph.full, graph.starts[:-1], graph.starts[1:] - 1, graph.tile),
        (graph.part, position, position, position),
    ):
        if not matrix.nnz:
            continue
        begin, end = matrix.indptr[:-1][row], matrix.indptr[1:][row]
        some = begin < end
        low[some] = np.minimum(low[some], first[matrix.indices[begin[some]]])
        high[some] = np.maximum(high[some], last[matrix.indices[end[some] - 1]])
    complete = np.array_equal(high - low, graph.degrees)
    ascending = (np.diff(low) >= 0).all() and (np.diff(high) >= 0).all()
    return (low.astype(np.int32), high.astype(np.int32)) if complete and ascending else None


def _by_runs(n: int, low: Places, high: Places, seed: int) -> Hops:
    ends = np.array([0, n - 1], np.int32)
    if len(_walk(low, high, ends)[0]) * n <= MOST_INTERVAL_STEPS:
        total, fewest, whole, _ = _walk(low, high, np.arange(n, dtype=np.int32))
        diameter = len(total) if whole else None
        return Hops(n, total, fewest, diameter, diameter)
    drawn = _sample(n, SAMPLES, seed).astype(np.int32)
    _, fewest, _, sample = _walk(low, high, np.concatenate([ends, drawn]), keep=True)
    sample = sample[:, 2:]
    within = sample.mean(axis=1) * n
    within[0] = (high - low).sum(dtype=np.int64)
    within = np.maximum.accumulate(within)
    # Every place between two tokens is passed in both directions; then no pair is farther apart
    # than the two ends, which were looked at.
    place = np.arange(n)
    whole = bool((high[:-1] > place[:-1]).all() and (low[1:] < place[1:]).all())
    diameter = len(within) if whole else None
    return Hops(n, within, fewest, diameter, diameter, sample)


def _walk(
    low: Places, high: Places, queries: Places, keep: bool = False
) -> tuple[Floats, Ints, bool, Floats]:
    """Others within each number of hops of the queries: sums, fewest, if all; and each of them."""
    first, last = low[queries], high[queries]
    total, fewest, each = [], [], []
    while True:
        reached = last - first
        total.append(float(reached.sum(dtype=np.int64)))
        fewest.append(int(reached.min()) + 1)
        if keep:
            each.append(reached.astype(np.float64))
        next_first, next_last = low[first], high[last]
        if np.array_equal(next_first, first) and np.array_equal(next_last, last):
            break
        first, last = next_first, next_last
    whole = fewest[-1] == len(low)
    return np.array(total), np.array(fewest), whole, np.array(each)


# Blocks: where all tiles are full, the tokens of a tile are alike.


def _by_tiles(graph: Digraph) -> Hops:
    n, lengths = graph.n, graph.lengths
    distance = shortest_path(graph.full, unweighted=True)  # [tiles, tiles]
    # Two tokens of one tile are as far apart as the way back to the tile is long.
    full = graph.full.tocoo()
    back = np.full(len(lengths), np.inf)
    np.minimum.at(back, full.coords[0], 1 + distance[full.coords[1], full.coords[0]])
    np.fill_diagonal(distance, back)
    pairs = np.outer(lengths, lengths) - np.diag(lengths)
    finite = np.isfinite(distance) & (pairs > 0)
    most = int(distance[finite].max()) if finite.any() else 1
    row = np.broadcast_to(np.arange(len(lengths))[:, None], distance.shape)
    place = row[finite] * (most + 1) + distance[finite].astype(np.int64)
    count = np.bincount(place, pairs[finite], minlength=len(lengths) * (most + 1))
    within = np.cumsum(count.reshape(-1, most + 1), axis=1)[:, 1:]  # pairs of each tile of queries
    fewest = np.rint((within / lengths[:, None]).min(axis=0)).astype(np.int64) + 1
    total = within.sum(axis=0)
    diameter = most if total[-1] == n * (n - 1) else None
    return Hops(n, total, fewest, diameter, diameter)


# Any graph: sets of tokens as bits, 64 in a word.


def sweep(graph: Digraph, seeds: Ints) -> Iterator[tuple[Ints, Bits, int]]:
    """For each hop, the positions that now reach further seeds, which, and the steps it took.

    The graph has no hubs. Bit b of the words of a position stands for `seeds[b]`; a seed reaches
    itself before the first hop.
    """
    m, words = graph.ordinary, -(-len(seeds) // 64)
    number = np.arange(len(seeds))
    seen = np.zeros((m, words), np.uint64)
    seen[seeds, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
    fresh, rows = seen.copy(), np.unique(seeds)
    into = graph.transposed.part
    while len(rows):
        edges = int(np.diff(into.indptr)[rows].sum())
        if not graph.full.nnz and 2 * edges < into.nnz:
            # Only positions with an edge to one that has changed.
            at = ranges(into.indptr[rows].astype(np.int64), np.diff(into.indptr)[rows])
            near = np.unique(into.indices[at]).astype(np.int64)
            found, steps = _either(graph.part, fresh, near)
        else:
            near = np.arange(m)
            found, steps = _either(graph.part, fresh, near)
            if graph.full.nnz:
                of_tile = np.bitwise_or.reduceat(fresh, graph.starts[:-1], axis=0)
                of_tile, more = _either(graph.full, of_tile, np.arange(len(of_tile)))
                found |= of_tile[graph.tile]
                steps += more
        found &= ~seen[near]
        new = found.any(axis=1)
        fresh[rows] = 0
        rows, bits = near[new], found[new]
        seen[rows] |= bits
        fresh[rows] = bits
        if len(rows):
            yield rows, bits, steps + 2 * len(near) * words


def _either(matrix: csr_array, bits: Bits, rows: Ints) -> tuple[Bits, int]:
    """For each of the rows, the bits that any of its columns has; and the steps it took."""
    degree = np.diff(matrix.indptr)[rows].astype(np.int64)
    start = matrix.indptr[:-1][rows].astype(np.int64)
    words = bits.shape[1]
    found = np.zeros((len(rows), words), np.uint64)
    some = np.flatnonzero(degree)
    ends = np.cumsum(degree[some])
    begin = 0
    while begin < len(some):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK // words, side="right")))
        part = some[begin:end]
        gathered = bits.take(matrix.indices[ranges(start[part], degree[part])], axis=0)
        at = np.cumsum(degree[part]) - degree[part]
        found[part] = np.bitwise_or.reduceat(gathered, at, axis=0)
        begin = end
    return found, int(degree.sum()) * words


def _by_sweeps(graph: Digraph, seed: int) -> Hops:
    n = graph.n
    if n > FEW_TOKENS:
        probe = np.unique(np.linspace(0, n - 1, 64).astype(np.int64))
        steps = sum(steps for _, _, steps in sweep(graph, probe))
        if steps * n / 64 > MOST_STEPS:
            words = int(np.clip(MOST_STEPS // (4 * steps), 1, SAMPLES // 64))
            return _by_sample(graph, 64 * words, seed)
    reached: list[npt.NDArray[np.int32]] = []  # for each hop, what every query has reached at it
    for begin in range(0, n, 1024):
        targets = np.arange(begin, min(begin + 1024, n))
        for hop, (rows, bits, _) in enumerate(sweep(graph, targets)):
            if hop == len(reached):
                reached.append(np.zeros(n, np.int32))
            reached[hop][rows] += np.bitwise_count(bits).sum(axis=1, dtype=np.int32)
    if not reached:
        return Hops(n, np.zeros(1), np.ones(1, np.int64), None, None)
    total = np.cumsum([float(each.sum(dtype=np.int64)) for each in reached])
    fewest, so_far = [], np.ones(n, np.int64)
    for each in reached:
        so_far += each
        fewest.append(int(so_far.min()))
    diameter = len(total) if fewest[-1] == n else None
    return Hops(n, total, np.array(fewest), diameter, diameter)


def _by_sample(graph: Digraph, size: int, seed: int) -> Hops:
    """From both ends and from random queries; the ends only count for the diameter."""
    n = graph.n
    queries = np.concatenate([graph.places[[0, n - 1]], _sample(n, size - 2, seed)])
    queries = queries[np.sort(np.unique(queries, return_index=True)[1])]
    reached = np.cumsum(_reached(graph.transposed, queries), axis=0)
    sample = reached[:, 2:].astype(np.float64)
    within = sample.mean(axis=1) * n
    within[0] = graph.degrees.sum()  # which is known, and a few rows of many keys may dominate
    within = np.maximum.accumulate(within)
    fewest = reached.min(axis=1) + 1
    if components(graph) > 1:
        return Hops(n, within, fewest, None, None, sample)
    # No pair is farther apart than there and back again over any one token.
    there = (reached < n - 1).sum(axis=0) + 1
    again = (np.cumsum(_reached(graph, queries), axis=0) < n - 1).sum(axis=0) + 1
    longest = int(max(there.max(), again.max()))
    return Hops(n, within, fewest, longest, int((there + again).min()), sample)


def _reached(graph: Digraph, seeds: Ints) -> Ints:
    """For each hop and seed, how many positions reach the seed in exactly so many hops."""
    found: list[Ints] = []
    for rows, bits, _ in sweep(graph, seeds):
        count = np.zeros(64 * bits.shape[1], np.int64)
        for begin in range(0, len(rows), 8192):
            octets = bits[begin : begin + 8192].view(np.uint8)
            count += np.unpackbits(octets, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        found.append(count[: len(seeds)])
    return np.array(found).reshape(-1, len(seeds))


def _sample(n: int, size: int, seed: int) -> Ints:
    """Different random positions; the same for the same seed."""
    return np.unique(below(n, 17, seed, np.arange(size)))
