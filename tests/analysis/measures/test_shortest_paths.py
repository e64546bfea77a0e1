"""Shortest paths and stars, against networkx and brute force."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

import longbird as lb

GRAPHS = {
    "window": lb.Window(3),
    "dilated": lb.Window(4, dilation=5),
    "bigbird": lb.bigbird(block=16),
    "causal bigbird": lb.bigbird(block=16) & lb.Causal(),
    "random": lb.ErdosRenyi(0.02, seed=2),
    "blocks": lb.RandomBlocks(1, block=16),
    "global": lb.GlobalTokens([3]),
    "heads": lb.PerHead([lb.Window(2), lb.Window(2, dilation=9)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_paths_are_shortest(name: str) -> None:
    n, graph = 130, GRAPHS[name]
    mask = graph.mask(n, graph.least_heads).any(axis=0)
    digraph = nx.from_numpy_array(mask, create_using=nx.DiGraph)
    for i, j in np.random.default_rng(0).integers(0, n, (25, 2)).tolist():
        path = graph.path(i, j, n)
        if path is None:
            assert not nx.has_path(digraph, i, j)
            continue
        assert path[0] == i
        assert path[-1] == j
        assert all(mask[a, b] for a, b in pairwise(path))
        assert len(path) == nx.shortest_path_length(digraph, i, j) + 1


def test_path_of_a_token_to_itself_and_errors() -> None:
    assert lb.Edges([]).path(4, 4, n=5) == [4]
    assert lb.Edges([(0, 1)]).path(0, 1, n=2) == [0, 1]
    assert lb.Edges([(0, 1)]).path(1, 0, n=2) is None
    with pytest.raises(
        ValueError, match="the token j of a path must be less than n=5, received 5"
    ):
        lb.Window(1).path(0, 5, n=5)
    with pytest.raises(ValueError, match="received -1"):
        lb.Window(1).path(-1, 0, n=5)
    with pytest.raises(TypeError, match=r"received 1\.5 \(float\)"):
        lb.Window(1).path(1.5, 0, n=5)  # type: ignore[arg-type]


def is_centre(mask: np.ndarray, centre: int) -> bool:
    others = np.arange(len(mask)) != centre
    edges = mask[centre, others], mask[others, centre], mask.diagonal()[others]
    return all(each.all() for each in edges)


@pytest.mark.parametrize("seed", range(20))
def test_stars_are_found_and_their_lack_too(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 40))
    mask = draw.random((n, n)) < 0.3
    centre = int(draw.integers(n))
    mask[centre] = mask[:, centre] = True
    np.fill_diagonal(mask, True)
    mask[centre, centre] = bool(seed % 2)  # does not matter
    star = lb.Edges(np.argwhere(mask)).contains_star(n)
    assert star
    assert star.centres == tuple(t for t in range(n) if is_centre(mask, t))
    assert star.centre in star.centres
    assert "is the centre" in str(star)

    other = (centre + 1) % n
    lost = [(centre, other), (other, centre), (other, other)][seed % 3]
    mask[lost] = False
    for also in star.centres:
        if also != centre:
            mask[also, centre] = False
    star = lb.Edges(np.argwhere(mask)).contains_star(n)
    assert bool(star) == any(is_centre(mask, t) for t in range(n))
    if not star:
        assert star.missing
        assert not any(mask[edge] for edge in star.missing)
        if star.missing_count == len(star.missing):  # with these edges it would be one
            mask[tuple(np.array(star.missing).T)] = True
            assert star.centre is not None
            assert is_centre(mask, star.centre)


def test_stars_of_known_graphs() -> None:
    assert lb.bigbird().contains_star(4096).centre == 0
    assert not lb.Window(8).contains_star(100)
    assert not (lb.bigbird() & lb.Causal()).contains_star(1000)
    assert not lb.GlobalTokens([0]).contains_star(10)  # the others do not see themselves
    assert lb.GlobalTokens([0]).contains_star(10).missing_count == 9
    assert not lb.Full().contains_star(0)
    assert lb.Full().contains_star(1)
    # A star in one head alone does not serve the other.
    half = lb.PerHead([lb.Window(1) | lb.GlobalTokens([2]), lb.Window(1)])
    assert not half.contains_star(9)
