"""Random graphs: distributions, independence, and what must hold in every single one."""

import itertools

import networkx as nx
import numpy as np
import pytest

from longbird.core.graph import (
    BlockWindow,
    Causal,
    ErdosRenyi,
    Full,
    GlobalBlocks,
    GlobalTokens,
    RandomBlocks,
    WattsStrogatz,
    Window,
    bigbird,
)
from longbird.core.graph.random import below, draw, uniform

# Seeds are fixed, so a test passes always or never; the limits are those of a p-value of 1e-4.


def chi_square(counts: np.ndarray) -> float:
    """Deviation from uniform in standard deviations of the chi-square statistic."""
    expected = counts.sum() / counts.size
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = counts.size - 1
    return (statistic - freedom) / np.sqrt(2 * freedom)


def blocks_of(graph: RandomBlocks, blocks: int, heads: int) -> np.ndarray:
    """The drawn block pairs, bool [heads, blocks, blocks]."""
    return graph.mask(blocks * graph.block, heads)[:, :: graph.block, :: graph.block]


def test_generator_is_fixed_for_ever():
    assert draw(1, 2, 3).tolist() == [15020427595393229491]
    assert below(100, 7, np.arange(5)).tolist() == [72, 23, 27, 42, 55]
    assert uniform(0, 0).tolist() == [0.6524484863740322]
    drawn = RandomBlocks(3, 64, seed=1).drawn(100, 1, range(2), np.arange(50))
    assert drawn.tolist() == [53, 59, 97, 104, 121, 142]


def test_generator_bits_are_fair_and_keys_independent():
    bits = np.unpackbits(draw(3, np.arange(20_000)).view(np.uint8).reshape(-1, 8), axis=1)
    assert abs(bits.mean(axis=0) - 0.5).max() < 4.5 * 0.5 / np.sqrt(20_000)
    assert abs(chi_square(np.bincount(below(50, np.arange(100), 1, 2), minlength=50))) < 4
    a, b = uniform(0, np.arange(20_000)), uniform(1, np.arange(20_000))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03
    assert abs(np.corrcoef(a[1:], a[:-1])[0, 1]) < 0.03


@pytest.mark.parametrize("count", [0, 1, 3, 11, 12, 40])
def test_random_blocks_are_distinct_and_as_many_as_asked(count):
    drawn = blocks_of(RandomBlocks(count, block=2, seed=3), blocks=12, heads=5)
    assert (drawn.sum(axis=2) == min(count, 12)).all()


@pytest.mark.parametrize("count", [1, 3])
def test_random_blocks_are_uniform(count):
    total = sum(blocks_of(RandomBlocks(count, 1, seed), 16, 12).sum(0) for seed in range(60))
    assert abs(chi_square(total)) < 4
    pairs = np.zeros((16, 16))
    for seed in range(60):
        for row in blocks_of(RandomBlocks(2, 1, seed), 16, 12).reshape(-1, 16):
            pairs[tuple(np.flatnonzero(row))] += 1
    assert abs(chi_square(pairs[np.triu_indices(16, 1)])) < 4


def test_heads_rows_and_seeds_are_independent():
    drawn = blocks_of(RandomBlocks(3, 1, 0), 64, 12)
    expected = 9 / 64  # blocks that two independent rows have in common
    for a, b in [
        (drawn[:-1], drawn[1:]),
        (drawn[:, :-1], drawn[:, 1:]),
        (drawn, blocks_of(RandomBlocks(3, 1, 1), 64, 12)),
    ]:
        common = (a & b).sum(axis=-1)
        assert abs(common.mean() - expected) < 4 * np.sqrt(expected / common.size)


def test_a_head_does_not_depend_on_the_number_of_heads():
    graph = bigbird(4)
    assert (graph.mask(100, 3) == graph.mask(100, 12)[:3]).all()


@pytest.mark.parametrize("n", [1, 5, 16, 31, 40, 64])
@pytest.mark.parametrize(
    "avoid",
    [
        BlockWindow(3, 4),
        GlobalBlocks(1, 1, 4) | BlockWindow(3, 4),
        Window(9),
        Full(),
        Causal() | GlobalTokens([0]),
        RandomBlocks(2, 4, seed=9),
        RandomBlocks(3, 5, seed=9),
    ],
    ids=repr,
)
def test_avoided_blocks_are_not_drawn(avoid, n):
    heads, block, count = 3, 4, 2
    graph = RandomBlocks(count, block, seed=1, avoid=avoid)
    drawn, avoided = graph.mask(n, heads), avoid.mask(n, heads)
    starts = range(0, n, block)
    for head, r in itertools.product(range(heads), starts):
        rows = slice(r, r + block)
        covered = [avoided[head, rows, c : c + block].all() for c in starts]
        found = [drawn[head, rows, c : c + block].any() for c in starts]
        assert not any(c and f for c, f in zip(covered, found, strict=True))
        assert sum(found) == min(count, len(covered) - sum(covered))


def test_avoiding_draws_uniformly_from_the_rest():
    base = BlockWindow(3, 1) | GlobalBlocks(1, 1, 1)
    total = sum(RandomBlocks(3, 1, seed, avoid=base).mask(16, 12).sum(0) for seed in range(60))
    free = ~base.mask(16)[0]
    assert (total[~free] == 0).all()
    middle = np.arange(3, 13)  # rows with the same number of free blocks
    counts = total[middle][free[middle]]
    assert abs(chi_square(counts)) < 4


def test_bigbird_reaches_the_whole_sequence_and_repeats_nothing():
    n, block, heads = 2048, 16, 4
    blocks = bigbird(block).mask(n, heads)[:, ::block, ::block]
    degree = blocks.sum(axis=2)
    assert (degree[:, [0, -1]] == n // block).all()
    assert (degree[:, 3:-3] == 1 + 3 + 3 + 1).all()
    assert blocks[:, 1:-1].any(axis=(0, 1)).all()


def test_bigbird_without_some_pieces():
    base = bigbird(4, random=0)
    assert (base.mask(40) == (BlockWindow(3, 4) | GlobalBlocks(1, 1, 4)).mask(40)).all()
    lean = bigbird(4, window=1, random=1, global_first=0, global_last=0)
    assert (lean.mask(40, 2).sum(2) == 8).all()


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.01, 0.3, 0.9, 1.0])
def test_erdos_renyi_has_the_right_number_of_edges(p):
    n = 300
    found = [ErdosRenyi(p, seed).edges(n) for seed in range(20)]
    total = sum(map(len, found))
    assert abs(total - 20 * p * n * n) <= 4 * np.sqrt(20 * p * (1 - p) * n * n)
    for edges in found:
        codes = edges[:, 0] * n + edges[:, 1]
        assert (np.diff(codes) > 0).all()
        assert not len(codes) or (codes[0] >= 0 and codes[-1] < n * n)


def test_erdos_renyi_edges_are_independent_and_uniform():
    masks = np.stack([ErdosRenyi(0.2, seed).mask(20)[0] for seed in range(400)])
    total = masks.sum(axis=0)
    assert abs(total - 80).max() < 5 * np.sqrt(400 * 0.2 * 0.8)
    neighbours = (masks[:, :, 1:] & masks[:, :, :-1]).mean()
    assert abs(neighbours - 0.04) < 4 * np.sqrt(0.04 / masks.size)
    assert abs(masks[:, range(20), range(20)].mean() - 0.2) < 0.02  # self edges too


def test_erdos_renyi_edges_of_large_sparse_graphs():
    edges = ErdosRenyi(1e-6, seed=1).edges(1_000_000)
    assert abs(len(edges) - 1e6) < 4e3
    assert abs(edges.mean(axis=0) - 5e5).max() < 4 * 1e6 / np.sqrt(12 * 1e6)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6, 30])
@pytest.mark.parametrize("k", [0, 2, 4])
def test_watts_strogatz_without_rewiring_is_a_circulant(k, n):
    graph = nx.circulant_graph(n, range(k // 2 + 1)) if n else nx.empty_graph(0)
    expected = nx.to_numpy_array(graph, dtype=int) > 0 if n else np.zeros((0, 0), bool)
    assert (WattsStrogatz(k, 0.0).mask(n)[0] == expected).all()


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("n", "k"), [(7, 4), (6, 4), (50, 6), (5, 4), (3, 4)])
def test_watts_strogatz_degree_is_constant(n, k, beta):
    for seed in range(5):
        mask = WattsStrogatz(k, beta, seed).mask(n)[0]
        assert (mask.sum(axis=1) == min(k + 1, n)).all()
        assert mask.diagonal().all()


def test_watts_strogatz_rewires_with_probability_beta():
    n, k, beta = 2000, 8, 0.3
    ring = WattsStrogatz(k, 0.0).mask(n)[0]
    kept = (WattsStrogatz(k, beta, seed=4).mask(n)[0] & ring).sum() - n
    assert abs(kept - n * k * (1 - beta)) < 4 * np.sqrt(n * k * beta * (1 - beta)) + 10


def test_watts_strogatz_rewires_uniformly():
    n, k = 24, 2
    total = np.zeros(n)
    for seed in range(300):
        mask = WattsStrogatz(k, 1.0, seed).mask(n)[0]
        for i in range(n):
            total += np.roll(mask[i], -i)
    assert total[0] == 300 * n
    # The first edge cannot return to itself, so the two ring keys are rarer than all others.
    assert abs(chi_square(total[2:-1])) < 4


def test_watts_strogatz_is_a_small_world():
    def mean_distance(graph):
        digraph = nx.from_numpy_array(graph.mask(400)[0].astype(int), create_using=nx.DiGraph)
        return nx.average_shortest_path_length(digraph)

    assert mean_distance(WattsStrogatz(8, 0.2)) < mean_distance(WattsStrogatz(8, 0.0)) / 4
