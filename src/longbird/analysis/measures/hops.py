"""The number of hops from each token to each other along the edges.

A hop is a layer: with edges (i, m) and (m, j), the content of j is in m after one layer and in i
after two. Hops are counted exactly if the graph has a special structure, or is small enough to
count all pairs, and otherwise from a random sample of queries, each with all keys.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from longbird.analysis.measures.digraph import Digraph, Floats, Ints
from longbird.analysis.measures.paths import search, within
from longbird.analysis.measures.sample import Sample, draw_sample

Bits = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int32]
Table = npt.NDArray[np.int32]

# Maximum number of steps along edges, of one search or of 64 at once, for all pairs: seconds.
MOST_STEPS = 2**29
FEW_TOKENS = 1024
# A search without any edges takes as long as this many steps.
STEPS_TO_BEGIN = 2**14
STEPS_PER_HOP = 16
# From this many hops on, 64 separate searches take no longer than 64 at once.
MANY = 64
SAMPLES = 1024
FEWEST_SAMPLES = 32
# Maximum size of the table of a sample.
MOST_NUMBERS = 2**24
# Number of words that are gathered at a time, which fit into the cache of a processor.
CHUNK = 1 << 17


@dataclass(frozen=True, eq=False)
class Hops:
    """Pairs of different tokens by the number of hops between them.

    Attributes:
        n: Number of tokens.
        within: Ordered pairs within 1, 2, ... hops, until there are no new ones: float [hops].
        fewest: Minimum number of tokens that a query (of a sample, if one was drawn) has seen
            after each layer, including its own: int [hops].
        diameter: Maximum number of hops, or a lower bound from a sample; None if some pair is not
            connected.
        most: Upper bound of the diameter, which differs from it only for samples.
        average_interval: 95% confidence interval of the average; None if it is exact.
        reached_intervals: 95% confidence intervals of the share of pairs within each number of
            hops; None if it is exact.
    """

    n: int
    within: Floats
    fewest: Ints
    diameter: int | None
    most: int | None
    average_interval: tuple[float, float] | None = None
    reached_intervals: list[tuple[float, float]] | None = None

    @property
    def average(self) -> float | None:
        """Mean number of hops over connected pairs; None if there are none."""
        if not len(self.within) or not self.within[-1]:
            return None
        missing = self.within[-1] - np.append(0, self.within[:-1])
        return float(missing.sum() / self.within[-1])

    @property
    def exact(self) -> bool:
        """Whether all pairs were counted."""
        return self.reached_intervals is None


def count_hops(graph: Digraph, steps: int | None = None, seed: int = 0) -> Hops:
    """Count the hops between all tokens by the fastest exact method, or from a sample.

    Args:
        graph: Any digraph.
        steps: Maximum work for counting all pairs; by default `MOST_STEPS`.
        seed: Seed of the sample.
    """
    n, steps = graph.n, MOST_STEPS if steps is None else steps
    if n < 2:
        return Hops(n, np.zeros(0), np.zeros(0, np.int64), 0, 0)
    if graph.hubs:
        return _by_hubs(graph)
    found = runs(graph)
    if found is not None:
        return _by_runs(graph, *found, steps, seed)
    tiles = len(graph.lengths)
    if not graph.part.nnz and tiles * (graph.full.nnz + STEPS_TO_BEGIN) <= steps:
        return _counted(n, _from_tiles(graph), graph.lengths)
    cost = graph.part.nnz + graph.full.nnz + 2 * n
    probe = np.unique(np.linspace(0, n - 1, 64).astype(np.int64))
    hops = sum(1 for _ in islice(sweep(graph, probe), MANY))
    table = None
    if hops < MANY and (n <= FEW_TOKENS or n * cost * hops <= 64 * steps):
        table = _from_all_at_once(graph)
    if table is None and (n <= FEW_TOKENS or n * (cost + STEPS_TO_BEGIN) <= steps):
        table = _from_each(graph, np.arange(n))
    if table is not None:
        return _counted(n, table, np.ones(n, np.int64))
    many = hops == MANY
    if many:
        hops = max(len(within(graph, position)[0]) for position in (0, n // 2, n - 1))
        most = min(SAMPLES, MOST_NUMBERS // max(hops, 1))
        size = int(np.clip(steps // (2 * (cost + STEPS_PER_HOP * hops)), FEWEST_SAMPLES, most))
    else:
        size = 64 * int(np.clip(steps // (4 * max(hops, 1) * cost), 1, SAMPLES // 64))
    return _by_sample(graph, size, many, seed)


def _counted(n: int, table: Table, lengths: Ints) -> Hops:
    """Return the hops, given the number of others that each query reaches: [hops, queries].

    Each query represents `lengths` queries.
    """
    total = table @ lengths.astype(np.float64)
    fewest = table.min(axis=1).astype(np.int64) + 1
    diameter = len(table) if fewest[-1] == n else None
    return Hops(n, total, fewest, diameter, diameter)


def _estimated(graph: Digraph, table: Table, sample: Sample) -> Hops:
    """Estimate the same from a sample, without the diameter.

    The last columns of the table are the sample; the others are additional queries. If the graph
    is connected, some pair is known to be as many hops apart as there are rows.
    """
    n = graph.n
    fewest = table.min(axis=1).astype(np.int64) + 1
    table = table[:, -len(sample.positions) :]
    pairs = n * (n - 1)
    # The first hop is known for all tokens: only the pairs beyond it are estimated.
    known, beyond = int(graph.degrees.sum()), table - table[0]
    # Before the last row, at least one pair is not reached, and none of those known not to be.
    most = pairs - np.maximum((n - 1 - table).sum(axis=1, dtype=np.int64), 1)
    total = np.minimum(known + sample.total(beyond), most)
    share, error = total / pairs, sample.error(beyond) / pairs
    # Even if all drawn tokens have reached everything, a rare token may not have. (If an event did
    # not occur in k draws, its probability is at most 3 / k with 95% confidence.) It then lacks at
    # most what others lacked one hop before.
    lacking = (table[-1] - table).max(axis=1, initial=0)
    lacking[lacking == 0] = lacking[lacking > 0].min(
        initial=n
    )  # while others still reach new tokens
    rare = 3 / len(sample.positions) * np.append(0, lacking[:-1]) / (n - 1)
    low = np.maximum(share - np.maximum(error, rare), known / pairs).tolist()
    high = np.minimum(share + error, most / pairs).tolist()
    bounds = list(zip(low, high, strict=True))
    if graph.connected:
        fewest = np.minimum(fewest, n - 1)
        total[-1], fewest[-1], bounds[-1] = pairs, n, (1.0, 1.0)
    found = Hops(n, total, fewest, None, None, None, bounds)
    average = found.average
    if average is None:
        return found
    # The average is the ratio of the hops of all pairs to the number of pairs.
    reached = beyond[-1].astype(np.float64)
    hops = len(table) * reached - beyond[:-1].sum(axis=0, dtype=np.float64)
    around = float(sample.error((hops - average * reached)[None])[0] / total[-1])
    interval = max(1.0, average - around), average + around
    return dataclasses.replace(found, average_interval=interval)


def _by_hubs(graph: Digraph) -> Hops:
    """Return the hops of a graph with hubs, where every token is within two hops of others."""
    n, edges = graph.n, int(graph.degrees.sum())
    fewest = int(graph.degrees.min()) + 1
    if edges == n * (n - 1):
        return Hops(n, np.array([float(edges)]), np.array([n]), 1, 1)
    return Hops(n, np.array([edges, n * (n - 1.0)]), np.array([fewest, n]), 2, 2)


# Windows, including causal and dilated ones: at every hop, a token reaches a run of positions.


def spans(graph: Digraph) -> tuple[Ints, Ints]:
    """Return the first and last position that each token sees or has; for graphs without hubs."""
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
    return low, high


def runs(graph: Digraph) -> tuple[Places, Places] | None:
    """Return the same if each token sees all positions between them, and both are ascending.

    Returns None otherwise.
    """
    low, high = spans(graph)
    complete = np.array_equal(high - low, graph.degrees)
    ascending = (np.diff(low) >= 0).all() and (np.diff(high) >= 0).all()
    return (low.astype(np.int32), high.astype(np.int32)) if complete and ascending else None


def _by_runs(graph: Digraph, low: Places, high: Places, steps: int, seed: int) -> Hops:
    n = graph.n
    probe = np.unique(np.linspace(0, n - 1, 64).astype(np.int32))  # both ends are in it
    hops = sum(1 for _ in _walk(low, high, probe))
    if hops * n <= 2 * steps:
        walked = ((each.sum(dtype=np.int64), each.min()) for each in _walk(low, high))
        total, fewest = (np.array(each) for each in zip(*walked, strict=True))
        diameter = len(total) if fewest[-1] == n - 1 else None
        return Hops(n, total.astype(np.float64), fewest.astype(np.int64) + 1, diameter, diameter)
    size = int(np.clip(MOST_NUMBERS // hops, 2 * FEWEST_SAMPLES, SAMPLES))
    sample = draw_sample(graph, size, seed)
    queries = np.concatenate([probe, sample.positions.astype(np.int32)])
    table = np.array(list(_walk(low, high, queries)))
    found = _estimated(graph, table, sample)
    # No pair is farther apart than the two ends, which are in the table.
    diameter = len(table) if graph.connected else None
    return dataclasses.replace(found, diameter=diameter, most=diameter)


def _walk(low: Places, high: Places, queries: Places | None = None) -> Iterator[Places]:
    """Yield how many others each query (by default, each token) has reached, hop by hop."""
    first, last = (low, high) if queries is None else (low[queries], high[queries])
    while True:
        yield last - first
        next_first, next_last = low[first], high[last]
        if np.array_equal(next_first, first) and np.array_equal(next_last, last):
            return
        first, last = next_first, next_last


# Blocks: if all tiles are full, the tokens of a tile are equivalent.


def _from_tiles(graph: Digraph) -> Table:
    """Return how many others a token of each tile reaches: int [hops, tiles]."""
    tiles, lengths = len(graph.lengths), graph.lengths
    into = graph.transposed.full
    columns: list[Ints] = []
    hop = np.empty(tiles, np.int64)
    for tile in range(tiles):
        order, ends = search(graph.full, tile)
        hop[:] = tiles
        hop[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        reached = np.cumsum(lengths[order])[ends - 1] - lengths[tile]
        # Two tokens of a tile are as far apart as a shortest cycle through the tile is long.
        back = 1 + int(hop[into.indices[slice(*into.indptr[tile:][:2])]].min(initial=tiles))
        if back <= tiles and lengths[tile] > 1:
            reached = np.append(reached, np.repeat(reached[-1], max(0, back + 1 - len(reached))))
            reached[back:] += lengths[tile] - 1
        columns.append(reached[1:])
    return _padded(columns)


def _padded(columns: list[Ints]) -> Table:
    """Return columns of different heights as a table, padded with their last numbers."""
    height = max(1, *map(len, columns))
    table = np.zeros((height, len(columns)), np.int32)
    for number, column in enumerate(columns):
        table[: len(column), number] = column
        table[len(column) :, number] = column[-1] if len(column) else 0
    return table


# Any graph: one search after the other, or 64 searches at once, each in a bit of a word.


def _from_each(graph: Digraph, queries: Ints) -> Table:
    return _padded([within(graph, int(query))[0] for query in queries])


def _from_all_at_once(graph: Digraph) -> Table | None:
    """Return how many others each token reaches, int [hops, n]; None if it takes many hops."""
    n = graph.n
    rows: list[Table] = []  # what every query reaches at each hop
    for begin in range(0, n, 1024):
        for hop, fresh in enumerate(sweep(graph, np.arange(begin, min(begin + 1024, n)))):
            if hop == MANY:
                return None
            if hop == len(rows):
                rows.append(np.zeros(n, np.int32))
            rows[hop] += np.bitwise_count(fresh).sum(axis=1, dtype=np.int32)
    return np.cumsum(rows or [np.zeros(n, np.int32)], axis=0, dtype=np.int32)


def _from_some(graph: Digraph, queries: Ints, many: bool) -> Table:
    """Return how many others some queries reach: int [hops, queries]."""
    rows: list[Ints] = []
    for fresh in sweep(graph.transposed, queries) if not many else ():
        if len(rows) == MANY:
            many = True
            break
        count = np.zeros(64 * fresh.shape[1], np.int64)
        for begin in range(0, len(fresh), 8192):
            octets = fresh[begin : begin + 8192].view(np.uint8)
            count += np.unpackbits(octets, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        rows.append(count[: len(queries)])
    if many:
        return _from_each(graph, queries)
    return np.cumsum(rows or [np.zeros(len(queries))], axis=0, dtype=np.int32)


def sweep(graph: Digraph, seeds: Ints) -> Iterator[Bits]:
    """Yield for each hop which seeds each position reaches for the first time: [n, words].

    The graph has no hubs. Bit b of the words of a position represents `seeds[b]`; a seed reaches
    itself before the first hop.
    """
    number = np.arange(len(seeds))
    fresh = np.zeros((graph.n, -(-len(seeds) // 64)), np.uint64)
    fresh[seeds, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
    seen = fresh.copy()
    while True:
        found = _either(graph.part, fresh)
        if graph.full.nnz:
            of_tile = np.bitwise_or.reduceat(fresh, graph.starts[:-1], axis=0)
            found |= _either(graph.full, of_tile)[graph.tile]
        found &= ~seen
        if not found.any():
            return
        seen |= found
        fresh = found
        yield fresh


def _either(matrix: csr_array, bits: Bits) -> Bits:
    """Return for each row the bits that any of its columns has."""
    degree = np.diff(matrix.indptr).astype(np.int64)
    words = bits.shape[1]
    found = np.zeros((len(degree), words), np.uint64)
    some = np.flatnonzero(degree)
    ends = np.cumsum(degree[some])
    begin = 0
    while begin < len(some):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK // words, side="right")))
        # Rows without columns take no space between those with columns.
        gathered = bits.take(matrix.indices[before : int(ends[end - 1])], axis=0)
        at = np.append(before, ends[begin : end - 1]) - before
        found[some[begin:end]] = np.bitwise_or.reduceat(gathered, at, axis=0)
        begin = end
    return found


def _by_sample(graph: Digraph, size: int, many: bool, seed: int) -> Hops:
    """Count from random queries to all keys and, for the diameter, from likely extremes."""
    n = graph.n
    ends = graph.places[[0, n - 1]].tolist()
    ends += [within(graph, end)[1] for end in ends]
    # Each query has its own bit, so queries must be distinct.
    sample = draw_sample(graph, size, seed)
    extra = np.setdiff1d(ends, sample.positions)
    queries = np.concatenate([extra, sample.positions])
    table = _from_some(graph, queries, many)
    if not graph.connected:
        # Hops that only the additional queries need are not in the totals.
        news = np.flatnonzero(np.diff(table[:, len(extra) :], axis=0).any(axis=1)) + 1
        return _estimated(graph, table[: 1 + news.max(initial=0)], sample)
    # No pair is farther apart than the way to and from any one token.
    there = (table < n - 1).sum(axis=0) + 1
    back = _from_some(graph.transposed, queries[: 4 if many else 64], many)
    again = (back < n - 1).sum(axis=0) + 1
    longest = int(max(there.max(), again.max()))
    most = int((there[: len(again)] + again).min())
    # The way back may be longer than all ways from the drawn tokens.
    table = np.pad(table, ((0, longest - len(table)), (0, 0)), mode="edge")
    found = _estimated(graph, table, sample)
    return dataclasses.replace(found, diameter=longest, most=most)
