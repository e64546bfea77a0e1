from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest
import torch

import longbird as lb
from longbird.analysis.theory import furthest
from longbird.analysis.theory.furthest import (
    FullLayer,
    Hub,
    Ring,
    bits,
    close,
    experiment,
    planted,
    solve,
    solved,
)
from longbird.analysis.theory.limits import hops, measure, share_within
from longbird.analysis.theory.pictures import draw_furthest


def by_distance(u: torch.Tensor) -> list[set[int]]:
    """For each vector those that are furthest, by distances rather than by inner products."""
    distance = torch.cdist(u, u)
    most = distance.amax(dim=1, keepdim=True)
    return [set(row.nonzero()[:, 0].tolist()) for row in most - distance < 1e-7]


# ---- instances ----


@pytest.mark.parametrize("n", [2, 7, 32])
@pytest.mark.parametrize("make", [planted, close, bits])
def test_instances_are_unit_vectors(make, n: int) -> None:
    u = make(n, 3)
    assert len(u) == n
    assert torch.allclose(u.norm(dim=1), torch.ones(n, dtype=torch.float64))
    assert torch.equal(u, make(n, 3))
    assert not torch.equal(u, make(n, 4))


def test_the_planted_vector_is_the_furthest() -> None:
    u = planted(10)
    assert by_distance(u) == [{i ^ 1} for i in range(10)]
    changed = (u[::2] != -u[1::2]).sum(dim=1)
    assert changed.tolist() == [1] * 5  # so that it is not simply minus the vector


def test_the_choice_is_close() -> None:
    u = close(30)
    products = (u @ u.T)[::3].sort(dim=1).values
    assert by_distance(u)[::3] == [{i} for i in range(1, 30, 3)]
    assert (products[:, 1] - products[:, 0]).sub(2**-20).abs().max() < 1e-12


def test_about_one_pair_of_bits_is_orthogonal() -> None:
    pairs = [int(((u @ u.T) == 0).sum()) // 2 for u in (bits(32, seed) for seed in range(60))]
    assert 0.2 < np.mean(pairs) < 2


# ---- solutions ----


@pytest.mark.parametrize("make", [planted, close, bits])
@pytest.mark.parametrize("n", [16, 33])
def test_full_attention_takes_one_layer(make, n: int) -> None:
    u = make(n, 1)
    (found,) = FullLayer().layers(u)
    expected = torch.stack([u[sorted(best)].mean(dim=0) for best in by_distance(u)])
    if make is close or n % 2 == 0:
        assert torch.equal(found, expected) or make is bits
    assert solved(u, found).all()
    assert torch.allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("solution", "n", "layers"),
    [
        (Ring(1), 16, 16),
        (Ring(3), 32, 11),
        (Ring(4), 33, 9),
        (Ring(32), 32, 1),
        (Hub(1), 16, 17),
        (Hub(4), 32, 9),
        (Hub(5), 33, 8),
        (Hub(16), 16, 2),
    ],
)
def test_layers_of_sparse_solutions(solution, n: int, layers: int) -> None:
    outcome = solve(solution, planted(n))
    assert outcome.layers is not None
    assert outcome.layers <= layers == solution.takes(n)
    if n % 2 == 0:
        assert outcome.layers == layers
    for make in (close, bits):
        assert solve(solution, make(n, 2)).layers is not None


def test_ring_before_its_last_layer() -> None:
    outcome = solve(Ring(), planted(32))
    assert len(outcome.accuracy) == 32
    assert outcome.accuracy[30] == 0.5
    assert outcome.accuracy[31] == 1


@pytest.mark.parametrize("solution", [FullLayer(), Ring(2), Hub(2)])
@pytest.mark.parametrize("make", [planted, bits])
def test_no_solution_is_better_than_its_bounds(solution, make) -> None:
    for seed in range(3):
        outcome = solve(solution, make(24, seed))
        assert outcome.layers is not None
    # On the planted instance there is one furthest, and nobody knows it without having met it.
    outcome = solve(solution, planted(24))
    assert all(a <= b for a, b in zip(outcome.accuracy, outcome.within, strict=True))
    assert outcome.layers is not None
    assert outcome.layers >= outcome.comparisons


def test_bounds_grow_with_n_on_sparse_graphs_alone() -> None:
    few, many = (measure("Window(2) | GlobalTokens([0])", planted(n)) for n in (32, 128))
    assert 3 < many.comparisons / few.comparisons < 5
    assert measure("Full()", planted(32)).comparisons == 1
    assert many.within[1] == 1  # two hops, by the global token


def test_hops_are_those_of_networkx() -> None:
    mask = lb.ErdosRenyi(0.08, seed=3).mask(40)[0]
    expected = np.full((40, 40), 7)
    graph = nx.from_numpy_array(mask, create_using=nx.DiGraph)
    for i, reached in nx.all_pairs_shortest_path_length(graph, cutoff=6):
        for j, length in reached.items():
            expected[i, j] = length
    assert np.array_equal(hops(mask, 6), expected)


def test_share_within_a_window() -> None:
    shares = share_within("Window(1)", planted(8), 3)
    assert shares == (1, 1, 1)  # pairs are neighbours
    far = planted(8)[[0, 2, 4, 6, 7, 5, 3, 1]]
    assert share_within("Window(2)", far, 4) == (0.25, 0.5, 0.75, 1)


def test_means_of_the_furthest_alone_count() -> None:
    u = torch.eye(4).double()[[0, 1, 2, 3]]
    u[1] = -u[0]
    u = torch.cat([u, u[1:2]])  # vectors 1 and 4 are the furthest of vector 0
    found = u[[1, 0, 0, 0, 0]].clone()
    assert solved(u, found)[0]
    found[0] = 2 * u[1] - u[4] + 1e-6 * u[2]  # the same product
    assert not solved(u, found)[0]
    tied = torch.eye(3).double()
    assert solved(tied, torch.stack([(tied[1] + 3 * tied[2]) / 4, tied[0], tied[0]])).all()
    assert not solved(tied, torch.stack([2 * tied[1] - tied[2], tied[0], tied[1]]))[0]


# ---- wrong ones ----


def test_minus_the_vector_is_no_solution() -> None:
    assert not solved(planted(16), -planted(16)).any()


def test_a_query_with_the_wrong_sign_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = furthest._attend
    monkeypatch.setattr(furthest, "_attend", lambda q, k, v, graph: right(-q, k, v, graph))
    for solution in (FullLayer(), Ring(), Hub()):
        assert solve(solution, planted(16)).layers is None


@pytest.mark.fast_cases(4)
@pytest.mark.parametrize("seed", range(60))
def test_a_changed_weight_is_caught(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any weight that is not 0, of any solution: of the other sign, 0, or off by a hundredth.

    Those by which a hub asks for a place may be off by a hundredth: the next place is farther.
    """
    draw = random.Random(seed)
    solution = [FullLayer(), Ring(), Hub(2)][seed % 3]
    n = 96 if seed % 3 == 0 else 24
    size = close(n).shape[1]
    name = draw.choice(["query", "key", "value"])
    places = getattr(solution.weights(size, *([7] if seed % 3 == 2 else [])), name).nonzero()
    at = tuple(draw.choice(places.tolist()))
    asks = isinstance(solution, Hub) and name != "value" and at[0] >= size
    factor = draw.choice([-1, 0] if asks else [-1, 0, 1.01])
    right = type(solution).weights

    def changed(self, size: int, *layer: int) -> furthest.Weights:
        weights = right(self, size, *layer)
        getattr(weights, name)[at] *= factor
        return weights

    monkeypatch.setattr(type(solution), "weights", changed)
    # An empty hub is a vector of zeros, and wins only where all products are above 0.
    wrong = [solve(solution, make(n)).layers is None for make in (close, bits)]
    assert any(wrong), (name, at, factor)


@pytest.mark.slow  # a hundred runs
@pytest.mark.parametrize("solution", [Ring(2), Hub(2)])
def test_every_missing_edge_is_caught(solution, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one of some orders of the vectors: in one, not every edge has to carry an answer."""
    n = 8
    orders = [np.random.default_rng(seed).permutation(n) for seed in range(40)]
    right = type(solution).graph
    edges = right(solution, n).pairs.tolist()
    for missing in edges:
        if missing[0] == missing[1]:
            continue  # what a holder has so far: see below
        if isinstance(solution, Hub) and missing[0] < 2 and missing[1] % 2 != missing[0]:
            continue  # what the other hub loads
        broken = lb.Edges([edge for edge in edges if edge != missing])
        monkeypatch.setattr(type(solution), "graph", lambda self, n, broken=broken: broken)
        assert any(solve(solution, planted(n)[order]).layers is None for order in orders), missing
    kept = lb.Edges([edge for edge in edges if edge[0] != edge[1]])
    monkeypatch.setattr(type(solution), "graph", lambda self, n: kept)
    assert solve(solution, planted(n)).layers is None


def test_attention_that_is_not_sharp_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(furthest, "HARD", 10.0)
    assert solve(FullLayer(), planted(16)).layers is None


# ---- all together ----


def test_experiment_and_picture(tmp_path) -> None:
    outcomes = experiment((8, 16), graphs=["bigbird(block=2)"])
    assert [outcome.n for outcome in outcomes] == [8] * 4 + [16] * 4
    assert [outcome.layers for outcome in outcomes if outcome.accuracy] == [1, 8, 9, 1, 16, 17]
    draw_furthest(outcomes, tmp_path / "furthest.svg")
    assert (tmp_path / "furthest.svg").stat().st_size > 5000
    with pytest.raises(ValueError, match=r"ends in .png"):
        draw_furthest(outcomes, tmp_path / "furthest.txt")
    with pytest.raises(ValueError, match="planted, close, bits"):
        experiment((8,), instance="hard")


def test_a_token_that_loses_its_vector_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = FullLayer.weights

    def changed(self, size: int) -> furthest.Weights:
        weights = right(self, size)
        weights.value[0, 0] = 1.0
        return weights

    monkeypatch.setattr(FullLayer, "weights", changed)
    assert solve(FullLayer(), planted(16)).layers is None


def test_a_narrow_choice_is_a_tie() -> None:
    """Between what hardmax tells apart in float64 and what is the same, nothing is left over."""
    edge = -0.8 + 745.05e-9
    hair = [[1, 0, 0], [-0.8, 0.6, 0], [edge, 0, (1 - edge**2) ** 0.5]]
    assert solve(FullLayer(), hair).layers == 1
    for power in range(3, 9):
        near = [[1, 0], [-1, 10.0**-power], [-1, 1.2 * 10.0**-power], [0, 1]]
        u = torch.nn.functional.normalize(torch.tensor(near).double(), dim=1)
        for solution in (FullLayer(), Ring(), Hub(3)):
            assert solve(solution, u).layers is not None, (power, solution.name)


def test_own_vectors() -> None:
    u = np.array([[1, 0], [0.6, 0.8], [-0.8, 0.6]], np.float32)
    assert solve(FullLayer(), u).layers == 1
    with pytest.raises(ValueError, match="vector 1 has length 3, expected vectors of length 1"):
        solve(FullLayer(), torch.tensor([[1.0, 0], [0, 3.0]]))
    with pytest.raises(ValueError, match="vector 0 has length nan"):
        measure("Full()", torch.full((2, 2), torch.nan))
    with pytest.raises(ValueError, match=r"shape \[3\], expected at least two vectors"):
        solve(FullLayer(), torch.ones(3))
    with pytest.raises(ValueError, match="hubs must be at most the 8 vectors"):
        solve(Hub(20), planted(8))
    with pytest.raises(TypeError, match="expected vectors of one size"):
        solve(FullLayer(), [[1.0, 0.0], [1.0]])
    with pytest.raises(ValueError, match="reach must be an integer >= 1, received 0"):
        Ring(0)
    with pytest.raises(ValueError, match="most must be an integer >= 1, received -1"):
        solve(Ring(), planted(8), most=-1)


def test_a_vector_that_is_met_twice() -> None:
    """What is held and what is carried may be the same; their mean may be off by a last digit."""
    for seed in (8, 78, 249):
        draw = torch.Generator().manual_seed(seed)
        u = torch.randn(8, 4, generator=draw, dtype=torch.float64)
        u = torch.nn.functional.normalize(u, dim=1)
        assert solve(Ring(7), u).layers is not None
        assert solve(Ring(5), u).layers is not None


def test_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="for each of 2 heads, expected one graph"):
        measure("PerHead([Window(1), Window(2)])", planted(4))
    assert measure("Window(0)", planted(4)).comparisons == float("inf")
    monkeypatch.setattr("longbird.core.machine.available_bytes", lambda: 10_000)
    with pytest.raises(ValueError, match="choose fewer vectors"):
        solve(Ring(), planted(16))
