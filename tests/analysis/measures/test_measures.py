"""Measures against networkx, dense LAPACK and brute force."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import longbird as lb
from longbird.analysis.measures import Measures, analysis, clustering, hops, spectrum
from longbird.analysis.measures.digraph import union_of

PIECES = {
    "window": lb.Window(3),
    "dilated": lb.Window(8, dilation=4),
    "causal window": lb.Causal() & lb.Window(9),
    "bigbird": lb.bigbird(block=16),
    "causal bigbird": lb.bigbird(block=16) & lb.Causal(),
    "longformer": lb.Window(5) | lb.GlobalTokens([0, 7]),
    "causal global": (lb.GlobalTokens([3]) & lb.Causal()) | lb.Window(2),
    "thin random": lb.ErdosRenyi(0.02),
    "random": lb.ErdosRenyi(0.2, seed=3),
    "causal": lb.Causal(),
    "full": lb.Full(),
    "small world": lb.WattsStrogatz(4, 0.1),
    "random blocks": lb.RandomBlocks(2, block=16),
    "blocks": lb.RandomBlocks(1, block=16) | lb.BlockWindow(3, block=16),
    "blocks and tokens": lb.RandomBlocks(2, block=16) | lb.GlobalTokens([3, 20]),
    "multiset": lb.LegacyBigBird("huggingface", block=16, random=1),
    "nothing": lb.Edges([]),
    "global": lb.GlobalTokens([3]),
    "by length": lb.ByLength({100: lb.Full()}, lb.Window(4)),
    "many hops": lb.Window(1) | lb.Edges([(3, 30)]),
    "many hops in tiles": lb.BlockWindow(1, 4) | lb.Window(1) | lb.Edges([(3, 30)]),
    "loops": lb.Window(0),
    "two sides": lb.Edges([(i, j) for i in range(0, 33, 2) for j in range(1, 33, 6)]),
    "parts": lb.BlockWindow(1, block=20),
}


def edges(seed: int) -> tuple[lb.Graph, int]:
    """A random digraph, thin or dense, with and without loops."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 150))
    pairs = draw.integers(0, n, (int(draw.integers(0, 5 * n)), 2))
    return lb.Edges([(int(i), int(j)) for i, j in pairs]), n


CASES = [
    *[pytest.param(PIECES[name], n, 1, id=f"{name} {n}") for name in PIECES for n in (33, 150)],
    *[pytest.param(*edges(seed), 1, id=f"edges {seed}") for seed in range(30)],
    pytest.param(lb.bigbird(block=16), 200, 3, id="bigbird 3 heads"),
    pytest.param(lb.PerHead([lb.Window(2), lb.Window(2, dilation=5)]), 150, 2, id="per head"),
]  # fmt: skip


@pytest.mark.fast_cases(40)
@pytest.mark.parametrize(("graph", "n", "heads"), CASES)
def test_against_networkx(graph: lb.Graph, n: int, heads: int) -> None:
    found = graph.analyse(n, heads)
    masks = graph.mask(n, heads)
    for measures, mask in [(found, masks.any(axis=0)), *zip(found.per_head, masks, strict=True)]:
        agree(measures, mask)


def agree(found: Measures, mask: np.ndarray) -> None:
    n = len(mask)
    directed = nx.from_numpy_array(mask, create_using=nx.DiGraph)
    distance = np.array(
        [
            length
            for i, lengths in nx.all_pairs_shortest_path_length(directed)
            for j, length in lengths.items()
            if i != j
        ]
    )
    most = int(distance.max(initial=1))
    assert found.edges == mask.sum()
    assert found.density == pytest.approx(mask.mean())
    assert found.diameter == (most if len(distance) == n * (n - 1) else None)
    shares = [(distance <= hop).sum() / (n * (n - 1)) for hop in range(1, most + 1)]
    assert found.reached == pytest.approx(shares)
    if len(distance):
        assert found.average_path_length == pytest.approx(distance.mean())
    else:
        assert found.average_path_length is None
    assert (found.out_degree.fewest, found.out_degree.most) == extremes(mask.sum(axis=1))
    assert (found.in_degree.fewest, found.in_degree.most) == extremes(mask.sum(axis=0))
    seen = np.eye(n, dtype=bool)
    for fewest, mean in zip(found.receptive_field_min, found.receptive_field_mean, strict=True):
        seen = seen | (seen @ mask)
        assert fewest == seen.sum(axis=1).min()
        assert mean == pytest.approx(seen.sum() / n)

    simple = mask | mask.T
    np.fill_diagonal(simple, False)
    undirected = nx.from_numpy_array(simple)
    assert found.clustering == pytest.approx(nx.average_clustering(undirected), abs=1e-12)
    degree = simple.sum(axis=1)
    scale = np.where(degree > 0, 1 / np.sqrt(np.maximum(degree, 1)), 0)
    values = np.linalg.eigvalsh(simple * scale[:, None] * scale)
    assert found.spectral_gap == pytest.approx(1 - values[-2], abs=1e-9)
    walk = 1 - max(abs(values[-2]), abs(values[0])) if nx.is_connected(undirected) else 0
    assert found.walk_gap == pytest.approx(max(0, walk), abs=1e-9)
    assert not found.intervals
    assert found.exact("reached")


def extremes(values: np.ndarray) -> tuple[int, int]:
    return int(values.min()), int(values.max())


@pytest.mark.parametrize("name", PIECES)
def test_products_and_neighbours(name: str) -> None:
    """The parts of the hybrid together are the dense matrix, in any order of the tokens."""
    n, graph = 150, PIECES[name]
    mask = graph.mask(n)[0]
    digraph = union_of(graph.layout(n))
    x = np.random.default_rng(0).normal(size=n)
    for part, dense in (
        (digraph, mask),
        (digraph.transposed, mask.T),
        (digraph.undirected, mask | mask.T),
    ):
        tokens = part.tokens
        assert sorted(tokens) == list(range(n))
        np.testing.assert_allclose(part.times(x[tokens]), (dense @ x)[tokens], atol=1e-9)
        i, j = (each.reshape(-1) for each in np.indices((n, n)))
        assert np.array_equal(part.has(part.places[i], part.places[j]), dense[i, j])
        for token in (0, 7, n - 1):
            seen = tokens[part.neighbours(int(part.places[token]))]
            assert np.array_equal(np.sort(seen), np.flatnonzero(dense[token]))


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("graph", [lb.Full(), lb.Window(0), lb.bigbird(), lb.Edges([])], ids=repr)
def test_shortest_sequences(graph: lb.Graph, n: int) -> None:
    found = graph.analyse(n)
    joined = bool(n) and bool(graph.mask(n)[0][0, -1]) and n > 1
    assert found.diameter == (int(joined) if joined or n < 2 else None)
    assert found.reached == ((float(joined),) if n == 2 else ())
    assert found.clustering == 0
    assert str(found)
    assert json.dumps(found.as_json())


def test_numbers_that_are_known() -> None:
    assert lb.WattsStrogatz(8, 0.0).analyse(400).spectral_gap == pytest.approx(9.2505e-4, rel=1e-4)
    assert len(lb.Window(8).analyse(256).reached) == 32
    never = lb.Window(8, dilation=4).analyse(256)
    assert never.diameter is None
    assert never.reached[-1] < 0.25
    assert never.spectral_gap == 0
    star = lb.GlobalTokens([5]).analyse(1000)
    assert star.average_path_length == pytest.approx(2 - 2 / 1000)
    assert star.walk_gap == 0
    assert star.mixing_time is None


# The ways for long sequences, made to run on short ones.

LARGE = {
    "random": lb.ErdosRenyi(0.01),
    "causal": lb.bigbird(block=16) & lb.Causal(),
    "small world": lb.WattsStrogatz(8, 0.2) | lb.GlobalTokens([4]),
    "blocks": lb.BlockWindow(3, 16) | lb.RandomBlocks(1, 16),
    "window": lb.Window(6),
    "window and more": lb.Window(6) | lb.Edges([(3, 700), (30, 500)]),
}


@pytest.mark.parametrize("name", LARGE)
def test_samples_agree_with_all_pairs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n, graph = 1200, LARGE[name]
    exact = graph.analyse(n)
    for module, constant in (
        (analysis, "MOST_STEPS"), (clustering, "MOST_WEDGES"), (clustering, "MOST_TILES"),
        (spectrum, "MOST_DENSE"),
    ):  # fmt: skip
        monkeypatch.setattr(module, constant, 0)
    found = graph.analyse(n)
    assert (found.diameter is None) == (exact.diameter is None)
    if found.diameter is not None and exact.diameter is not None:
        low, high = found.intervals.get("diameter", (found.diameter, found.diameter))
        assert low <= exact.diameter <= high
    for measure in ("average_path_length", "clustering"):
        value, own = getattr(exact, measure), getattr(found, measure)
        low, high = found.intervals.get(measure, (own - 1e-9, own + 1e-9))  # it says: exact
        # An interval fails once in twenty; twice as wide, hardly ever.
        assert low - (high - low) <= value <= high + (high - low)
        assert getattr(found, measure) == pytest.approx(value, rel=0.1)
    for measure in ("spectral_gap", "walk_gap"):
        value, own = getattr(exact, measure), getattr(found, measure)
        low, high = found.intervals.get(measure, (own - 1e-9, own + 1e-9))  # it says: exact
        assert low - 1e-7 <= value <= high + 1e-7
        assert getattr(found, measure) == pytest.approx(value, rel=0.02)


def listed(edges: np.ndarray) -> lb.Graph:
    return lb.Edges([(int(i), int(j)) for i, j in edges])


# Where all tokens that matter were drawn, an interval is a point.
ROUNDING = 1e-9
DRAW = np.random.default_rng(5)
# Tokens that see or are seen by half of all others, and numbers of keys from 0 to hundreds.
HUBS = listed(np.array([(7, j) for j in range(0, 400, 2)] + [(i, 11) for i in range(0, 400, 3)]))
POWER = np.minimum((3 * DRAW.pareto(1.0, 2000)).astype(int), 399)
UNLIKE = {
    "random": lb.ErdosRenyi(0.01),
    "random, not connected": lb.ErdosRenyi(0.003),
    "hubs": lb.Window(2) | HUBS,
    "power law": listed(np.stack([POWER, DRAW.integers(0, 400, 2000)], axis=1)),
    "many hops": lb.Window(3) | lb.Edges([(3, 250), (30, 390)]),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_intervals_hold_what_they_promise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of samples with different seeds, about 95 in 100 have the true value in their interval."""
    graph, samples = union_of(UNLIKE[name].layout(400)), 60
    exact, clustered = hops.count_hops(graph), clustering.cluster(graph.undirected)
    assert exact.exact
    assert exact.average is not None
    assert clustered.interval is None
    monkeypatch.setattr(hops, "FEW_TOKENS", 0)
    monkeypatch.setattr(clustering, "MOST_WEDGES", 0)
    monkeypatch.setattr(clustering, "SAMPLES", 500)
    held = np.zeros(3)
    for seed in range(samples):
        found = hops.count_hops(graph, 0, seed)
        assert found.average_interval
        assert found.reached_intervals
        low, high = found.average_interval
        second, share = found.reached_intervals[1], exact.within[1] / (400 * 399)
        third = clustering.cluster(graph.undirected, seed=seed).interval
        assert third is not None
        held += (
            low - ROUNDING <= exact.average <= high + ROUNDING,
            second[0] - ROUNDING <= share <= second[1] + ROUNDING,
            third[0] <= clustered.value <= third[1],
        )
        if exact.diameter is not None:
            assert found.diameter
            assert found.most
            assert found.diameter <= exact.diameter <= found.most
    assert (held >= 0.88 * samples).all(), held / samples


SLOW_TAILS = {
    "small world": lb.WattsStrogatz(6, 0.02),
    "window and a few": lb.Window(4) | lb.ErdosRenyi(0.00002),
}


@pytest.mark.slow  # eighty samples
@pytest.mark.parametrize("name", SLOW_TAILS)
def test_the_last_hops_of_a_sample(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where hardly any pair is left, intervals hold, and nothing contradicts the diameter."""
    graph, samples = union_of(SLOW_TAILS[name].layout(1500)), 40
    exact = hops.count_hops(graph)
    assert exact.exact
    assert exact.diameter is not None
    monkeypatch.setattr(hops, "FEW_TOKENS", 0)
    share = exact.within / (1500 * 1499)
    missed = np.zeros(len(share))
    for seed in range(samples):
        found = hops.count_hops(graph, 2**20, seed)
        assert found.reached_intervals
        assert found.diameter
        assert len(found.within) == found.diameter <= exact.diameter
        assert (found.within[:-1] < found.within[-1]).all()
        assert (found.fewest[:-1] < 1500).all()
        assert (found.fewest >= exact.fewest[: len(found.fewest)])[:-1].all()
        low, high = np.array(found.reached_intervals).T
        middle = (share[: len(low)] > 0.3) & (share[: len(low)] < 0.7)
        assert ((high - low)[middle] < 0.25).all()
        # The last layer is that of the diameter that was seen; what lies beyond it is not known.
        within = (low - ROUNDING <= share[: len(low)]) & (share[: len(low)] <= high + ROUNDING)
        missed[: len(low) - 1] += ~within[:-1]
    assert missed.max() <= 0.15 * samples, missed / samples


@pytest.mark.slow  # forty graphs
def test_a_sample_of_what_is_not_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all pairs are reached then, and every layer reaches new ones."""
    monkeypatch.setattr(hops, "FEW_TOKENS", 0)
    draw = np.random.default_rng(0)
    for _ in range(40):  # token 0 sees itself alone
        edges = np.stack([draw.integers(1, 300, 300), draw.integers(0, 300, 300)], axis=1)
        graph = union_of((lb.Causal() | listed(edges)).layout(300))
        found = hops.count_hops(graph, 2**14)
        assert found.diameter is None
        assert found.reached_intervals is not None
        assert found.within[-1] < 300 * 299
        assert found.reached_intervals[-1][1] < 1
        assert (np.diff(found.within) > 0).all()
        assert found.fewest[-1] == 1


def test_a_star_takes_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longbird.core.machine.available_bytes", lambda: 10_000_000)
    with pytest.raises(ValueError, match="choose fewer tokens"):
        lb.ErdosRenyi(0.2).contains_star(2000)


@pytest.mark.parametrize("n", [2, 9, 60])
@pytest.mark.parametrize(
    "graph", [lb.Window(1), lb.Window(3), lb.ErdosRenyi(0.2), lb.Full()], ids=repr
)
def test_the_walk_has_mixed_in_time(graph: lb.Graph, n: int) -> None:
    """By walking: so many steps from any token, and its place is within 1/4 of the limit."""
    found = graph.analyse(n)
    mask = graph.mask(n)[0]
    joined = (mask | mask.T) & ~np.eye(n, dtype=bool)
    if found.mixing_time is None:
        part = nx.from_numpy_array(joined)
        assert not nx.is_connected(part) or nx.is_bipartite(part)
        return
    degree = joined.sum(axis=1)
    walk = np.linalg.matrix_power(joined / degree[:, None], found.mixing_time)
    apart = np.abs(walk - degree / degree.sum()).sum(axis=1) / 2
    assert apart.max() <= 0.25
    # And no more than the formula takes.
    largest = np.sort(np.abs(np.linalg.eigvals(joined / degree[:, None])))[-2]
    assert found.mixing_time == np.ceil(np.log(4 * degree.sum() / degree.min()) / (1 - largest))


def test_two_halves_never_mix_however_long() -> None:
    ladder = [(i, i + 1) for i in range(1199)] + [(i, i + 33) for i in range(1200 - 33)]
    for graph in (
        lb.Edges(ladder),
        lb.Window(1),
        lb.GlobalTokens([3]) & lb.Edges([(3, i) for i in range(1200)]),
    ):
        found = graph.analyse(1200)
        assert found.smallest_eigenvalue == pytest.approx(-1, abs=1e-12), graph
        assert found.walk_gap == 0, graph
        assert found.mixing_time is None
        assert found.exact("mixing_time")
    odd = lb.Edges([*ladder, (0, 2)]).analyse(1200)  # a triangle
    assert odd.walk_gap > 0
    assert odd.smallest_eigenvalue > -1


@pytest.mark.parametrize("name", LARGE)
def test_few_steps_of_lanczos_say_so(name: str) -> None:
    """What has not converged has an interval, and LAPACK's value is in it."""
    n = 1200
    undirected = union_of(LARGE[name].layout(n)).undirected
    values = np.linalg.eigvalsh(spectrum._dense(undirected))
    for steps in (0, 2**20):
        found = spectrum.spectrum(undirected, steps)
        assert found is not None
        for each, value in ((found.second, values[-2]), (found.smallest, values[0])):
            low, high = each.interval or (each.value - 1e-9, each.value + 1e-9)
            assert low - 1e-9 <= value <= high + 1e-9, (steps, each, value)


def test_lanczos_that_is_cut_short_has_an_interval() -> None:
    undirected = union_of((lb.Window(6) | lb.ErdosRenyi(0.0004)).layout(1200)).undirected
    found = spectrum.spectrum(undirected, 0)
    assert found is not None
    assert found.smallest.interval is not None
    assert -1 <= found.smallest.interval[0] < found.smallest.value == found.smallest.interval[1]


def test_what_cannot_be_measured_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="measuring 2,147,483,647 tokens"):
        lb.Window(3).analyse(2**31 - 1)
    with pytest.raises(ValueError, match="heads must be an integer from 1 to 65536"):
        lb.Window(3).analyse(20, heads=10**9)


def test_hardly_a_lattice_has_no_omega() -> None:
    world = (lb.Window(1) | lb.Edges([(0, 2), (10, 12)])).analyse(100).small_world
    assert world is not None
    assert world.omega is None
    assert world.sigma > 0


def test_some_numbers_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "MOST_STEPS", 0)
    found = lb.ErdosRenyi(0.01).analyse(1500)
    assert not found.exact("average_path_length")
    assert not found.exact("reached")
    assert found.exact("density")
    assert "95%" in str(found)
    with pytest.raises(ValueError, match="no measure called 'nonsense'"):
        found.exact("nonsense")


@pytest.mark.parametrize("block", [16, 17])
def test_tokens_and_blocks_have_the_same_eigenvalues(block: int) -> None:
    """Ragged last blocks included."""
    graph = lb.BlockWindow(3, block) | lb.RandomBlocks(1, block) | lb.GlobalTokens([0])
    undirected = union_of(graph.layout(300)).undirected
    assert not undirected.part.nnz
    dense = np.linalg.eigvalsh(spectrum._dense(undirected))
    blocks = spectrum._of_blocks(undirected)
    assert blocks[[-2, 0]] == pytest.approx(dense[[-2, 0]], abs=1e-10)


@pytest.mark.parametrize(
    "graph", [lb.bigbird(block=4), lb.Window(2) | lb.GlobalTokens([3, 9])], ids=repr
)
def test_edges_that_cut_off_from_the_globals(graph: lb.Graph) -> None:
    n = 48
    found, mask = graph.analyse(n), graph.mask(n)[0]
    everyone = {t for t in range(n) if mask[:, t].all()}
    assert found.edges_to_globals == min(cut(mask, t, everyone) for t in set(range(n)) - everyone)
    everyone = {t for t in range(n) if mask[t].all()}
    fewest = min(cut(mask.T, t, everyone) for t in set(range(n)) - everyone)
    assert found.edges_from_globals == fewest


def cut(mask: np.ndarray, token: int, globals_: set[int]) -> int:
    flow = nx.DiGraph()
    flow.add_edges_from((int(i), int(j), {"capacity": 1}) for i, j in np.argwhere(mask) if i != j)
    flow.add_edges_from((t, "all") for t in globals_)  # without a limit
    return nx.maximum_flow_value(flow, token, "all")


@pytest.mark.slow  # dozens of graphs
def test_what_random_graphs_leave_open() -> None:
    """Against many more random graphs, by networkx."""
    found = lb.Window(3).analyse(120).small_world
    assert found is not None
    assert found.drawn == 16
    degree = (
        2 * nx.from_numpy_array(lb.Window(3).mask(120)[0] & ~np.eye(120, dtype=bool)).size() / 120
    )
    many = []
    for seed in range(100):
        one = nx.gnm_random_graph(120, round(60 * degree), seed=seed)
        one = one.subgraph(max(nx.connected_components(one), key=len))
        many.append((nx.average_clustering(one), nx.average_shortest_path_length(one)))
    clustering, length = np.mean(many, axis=0)
    sigma = found.clustering / clustering / (found.average_path_length / length)
    omega = length / found.average_path_length - found.clustering / found.lattice_clustering
    assert found.sigma_interval
    assert found.omega_interval
    low, high = found.sigma_interval
    assert 0 < low < sigma < high < 2 * low
    assert low < found.sigma < high
    low, high = found.omega_interval
    assert low - 0.02 < omega < high + 0.02
    assert high - low < 0.1
    assert not lb.Window(3).analyse(120).exact("small_world")


@pytest.mark.slow  # draws random graphs of 1,000 tokens
def test_small_worlds() -> None:
    n, k = 1000, 10
    ring, small, random = (
        lb.WattsStrogatz(k, beta).analyse(n).small_world for beta in (0.0, 0.05, 1.0)
    )
    assert ring
    assert small
    assert random
    assert ring.omega < -0.8
    assert abs(small.omega) < 0.4
    assert random.omega > 0.8
    assert small.sigma > 5
    assert random.sigma == pytest.approx(1, abs=0.2)
    assert ring.lattice_clustering == pytest.approx(ring.clustering)
    drawn = nx.gnp_random_graph(n, k / (n - 1), seed=1)
    drawn = drawn.subgraph(max(nx.connected_components(drawn), key=len))
    length = nx.average_shortest_path_length(drawn)
    assert ring.random_path_length == pytest.approx(length, rel=0.02)
    full = lb.Full().analyse(100).small_world
    assert full
    assert (full.sigma, full.omega) == pytest.approx((1, 0), abs=1e-9)
    # Globals alone make paths short; without them it is a lattice again.
    found = (lb.Window(5) | lb.GlobalTokens([0])).analyse(n)
    assert found.small_world
    assert found.small_world_without_globals
    assert found.small_world_without_globals.omega < found.small_world.omega - 0.5


@pytest.mark.slow  # draws
def test_drawing(tmp_path: Path) -> None:
    found = lb.bigbird(block=16).analyse(200, heads=2)
    found.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert found._repr_svg_().rstrip().endswith("</svg>")
    with pytest.raises(ValueError, match=r"expected a name that ends in \.png"):
        found.save(tmp_path / "a.jpg")


@pytest.mark.slow  # some seconds each, and memory
@pytest.mark.parametrize(
    "graph",
    [
        lb.bigbird(),
        lb.longformer(),
        lb.Window(8),
        lb.Window(1),
        lb.ErdosRenyi(16 / 65536),
        lb.Window(256) | lb.Window(32, dilation=64),
        lb.Window(1) | lb.BlockWindow(1, 16) | lb.Edges([(3, 60_000)]),
    ],
    ids=repr,
)
def test_long_sequences(graph: lb.Graph) -> None:
    n = 65536
    found = graph.analyse(n)
    assert found.density == pytest.approx(graph.layout(n).density)
    assert found.diameter is not None
    assert found.reached[-1] == pytest.approx(1)
