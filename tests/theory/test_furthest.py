from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

import longbird as lb
from longbird.theory import furthest
from longbird.theory.furthest import (
    FullLayer,
    Hub,
    Ring,
    bits,
    experiment,
    hops,
    measure,
    planted,
    share_within,
    solve,
    solved,
)
from longbird.theory.pictures import draw_furthest


def by_distance(u: torch.Tensor) -> list[set[int]]:
    """For each vector those that are furthest, by distances rather than by inner products."""
    distance = torch.cdist(u, u)
    most = distance.amax(dim=1, keepdim=True)
    return [set(row.nonzero()[:, 0].tolist()) for row in most - distance < 1e-7]


# ---- instances ----


@pytest.mark.parametrize("n", [2, 7, 32])
@pytest.mark.parametrize("make", [planted, bits])
def test_instances_are_unit_vectors(make, n: int) -> None:
    u = make(n, 3)
    assert len(u) == n and torch.allclose(u.norm(dim=1), torch.ones(n, dtype=torch.float64))
    assert torch.equal(u, make(n, 3)) and not torch.equal(u, make(n, 4))


def test_the_planted_vector_is_the_furthest() -> None:
    assert by_distance(planted(10)) == [{i ^ 1} for i in range(10)]


def test_about_one_pair_of_bits_is_orthogonal() -> None:
    pairs = [int(((u @ u.T) == 0).sum()) // 2 for u in (bits(32, seed) for seed in range(60))]
    assert 0.2 < np.mean(pairs) < 2


# ---- solutions ----


@pytest.mark.parametrize("make", [planted, bits])
@pytest.mark.parametrize("n", [16, 33])
def test_full_attention_takes_one_layer(make, n: int) -> None:
    u = make(n, 1)
    (found,) = FullLayer().layers(u)
    expected = torch.stack([u[sorted(best)].mean(dim=0) for best in by_distance(u)])
    if make is planted and n % 2 == 0:
        assert torch.equal(found, expected)
    assert solved(u, found).all()
    assert torch.allclose((u * found).sum(1), (u * expected).sum(1), atol=1e-9)


@pytest.mark.parametrize(
    ("solution", "n", "layers"),
    [
        (Ring(1), 16, 16),
        (Ring(3), 32, 11),
        (Ring(4), 33, 9),
        (Ring(40), 32, 1),
        (Hub(1), 16, 17),
        (Hub(4), 32, 9),
        (Hub(5), 33, 8),
    ],
)
def test_layers_of_sparse_solutions(solution, n: int, layers: int) -> None:
    outcome = solve(solution, planted(n))
    assert outcome.layers is not None and outcome.layers <= layers
    if n % 2 == 0:
        assert outcome.layers == layers
    assert solve(solution, bits(n, 2)).layers is not None


def test_ring_before_its_last_layer() -> None:
    outcome = solve(Ring(), planted(32))
    assert len(outcome.accuracy) == 32
    assert outcome.accuracy[30] == 0.5 and outcome.accuracy[31] == 1


@pytest.mark.parametrize("solution", [FullLayer(), Ring(2), Hub(2)])
@pytest.mark.parametrize("make", [planted, bits])
def test_no_solution_is_better_than_its_bounds(solution, make) -> None:
    for seed in range(3):
        outcome = solve(solution, make(24, seed))
        assert outcome.layers is not None
    # On the planted instance nothing but the furthest itself gives the answer.
    outcome = solve(solution, planted(24))
    assert all(a <= b for a, b in zip(outcome.accuracy, outcome.within, strict=True))
    assert outcome.layers is not None and outcome.layers >= outcome.comparisons


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


# ---- wrong ones ----


def test_a_query_with_the_wrong_sign_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = furthest._attend
    monkeypatch.setattr(furthest, "_attend", lambda q, k, v, graph: right(-q, k, v, graph))
    for solution in (FullLayer(), Ring(), Hub()):
        assert solve(solution, planted(16)).layers is None


@pytest.mark.parametrize("solution", [Ring(2), Hub(2)])
def test_a_missing_edge_is_caught(solution, monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing(type(solution)):
        def graph(self, n: int) -> lb.Graph:
            pairs = super().graph(n).pairs
            at = (pairs[:, 0] == pairs[-1, 0]) & (pairs[:, 0] != pairs[:, 1])
            return lb.Edges(pairs[~at])

    broken = Missing(2)
    assert solve(broken, planted(16), 40).layers is None


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
    with pytest.raises(ValueError, match="planted, bits"):
        experiment((8,), instance="hard")
