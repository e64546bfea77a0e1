"""What a decoder has to remember, against the dense mask: prefixes, bounds and the predicate."""

import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from longbird.core.graph import (
    BlockWindow,
    Causal,
    Edges,
    ErdosRenyi,
    Full,
    GlobalBlocks,
    GlobalTokens,
    LegacyBigBird,
    RandomBlocks,
    WattsStrogatz,
    Window,
    bigbird,
)
from longbird.core.graph.streaming import Stream, stream

SHORTEST = 9  # every position of the strategies exists from this length on
LENGTHS = (SHORTEST, 10, 13, 24, 41)

positions = st.integers(0, SHORTEST - 1)
pieces = st.one_of(
    st.just(Full()),
    st.just(Causal()),
    st.builds(Window, st.integers(0, 6), st.integers(1, 3)),
    st.builds(BlockWindow, st.sampled_from([1, 3, 5]), st.integers(1, 5)),
    st.lists(positions, max_size=3).map(GlobalTokens),
    st.builds(GlobalBlocks, st.integers(0, 3), st.just(0), st.integers(1, 4)),
    st.lists(st.tuples(positions, positions), max_size=12).map(lambda pairs: Edges(pairs)),
)
graphs = st.recursive(
    pieces,
    lambda parts: st.builds(
        lambda a, b, both: a & b if both else a | b, parts, parts, st.booleans()
    ),
    max_leaves=6,
)
causal_graphs = st.one_of(
    graphs.map(lambda graph: graph & Causal()),
    st.builds(lambda a, b: a & Causal() | b & Causal(), graphs, graphs),
)


def grows_by_prefixes(graph, lengths=LENGTHS):
    longest = graph.mask(lengths[-1], heads=2)
    return all((longest[:, :m, :m] == graph.mask(m, heads=2)).all() for m in lengths)


def is_causal(graph, n=LENGTHS[-1]):
    return not np.triu(graph.mask(n), 1).any()


def assert_exact(graph, found):
    assert grows_by_prefixes(graph)
    assert is_causal(graph)
    for n in LENGTHS:
        at = np.arange(n)
        seen = found.sees(at[:, None], at[None, :])
        assert seen.dtype == bool
        assert (seen == graph.mask(n)[0]).all()
        i, j = np.nonzero(seen)
        assert found.reach is None or ((i - j <= found.reach) | (j < found.sinks)).all()


@given(causal_graphs)
def test_every_causal_graph_streams_exactly(graph):
    assert_exact(graph, stream(graph))


@given(graphs)
def test_what_is_accepted_is_exact(graph):
    try:
        found = stream(graph)
    except ValueError as error:
        assert "Causal()" in str(error)
    else:
        assert_exact(graph, found)


@given(causal_graphs)
def test_tensors_give_what_arrays_give(graph):
    found, n = stream(graph), 24
    at = torch.arange(n)
    seen = found.sees(at[:, None], at[None, :])
    assert seen.dtype == torch.bool
    assert (seen.numpy() == graph.mask(n)[0]).all()
    assert (found.sees(at + 5, at).numpy() == graph.mask(n + 5)[0][at + 5, at]).all()
    assert bool(found.sees(at[20], at[3])) == graph.mask(n)[0, 20, 3]


@pytest.mark.parametrize(
    ("graph", "reach", "sinks"),
    [
        (Window(0), 0, 0),
        (Window(4) & Causal(), 4, 0),
        (Window(3, dilation=5) & Causal(), 15, 0),
        (BlockWindow(1, 1), 0, 0),
        (BlockWindow(1, 6) & Causal(), 5, 0),
        (BlockWindow(3, 4) & Causal(), 7, 0),
        (BlockWindow(5, 4) & Causal(), 11, 0),
        (GlobalTokens([]) | Window(0), 0, 0),
        (GlobalTokens([0, 7]) & Causal(), 0, 8),
        (GlobalBlocks(2, 0, block=3) & Causal(), 0, 6),
        (Edges([(9, 8), (30, 28), (3, 3)]), 2, 0),
        (Edges([(30, 1), (20, 0), (35, 35)]), 0, 2),
        ((Window(4) | GlobalTokens([0])) & Causal(), 4, 1),
        (Window(4) & Causal() | GlobalTokens([0]) & Causal(), 4, 1),
        (Window(4) & Causal() & Window(9), 4, 0),
        (Window(4) & Full() & Causal(), 4, 0),
        ((Window(4) | GlobalTokens([2])) & (Window(6) | GlobalTokens([1, 2])) & Causal(), 4, 3),
        ((Window(4) | GlobalTokens([20])) & Window(6) & Causal(), 6, 0),
        ((Window(4) | GlobalTokens([1])) & Window(20) & Causal(), 4, 2),
        (bigbird(4, random=0, global_last=0) & Causal(), 7, 4),
    ],
    ids=repr,
)
def test_bounds_are_tight(graph, reach, sinks):
    found = stream(graph)
    assert (found.reach, found.sinks) == (reach, sinks)
    assert type(found.reach) is int
    i, j = np.nonzero(graph.mask(64)[0])
    assert (i - j)[j >= sinks].max(initial=0) == reach
    assert j[i - j > reach].max(initial=-1) == sinks - 1


@pytest.mark.parametrize("graph", [Causal(), Causal() | Window(3) & Causal(), Full() & Causal()])
def test_causal_alone_has_no_limit(graph):
    assert stream(graph) == Stream(None, 0, graph)


@pytest.mark.parametrize(
    ("graph", "advice"),
    [
        (GlobalTokens([0, -1]), r"GlobalTokens\(.*from the beginning"),
        (GlobalBlocks(1, 1, block=4), r"GlobalBlocks\(.*set its last=0"),
        (RandomBlocks(1, block=4), r"RandomBlocks\(.*leave it out"),
        (bigbird(4, global_last=0), r"RandomBlocks\(.*leave it out"),
        (ErdosRenyi(0.3), r"ErdosRenyi\(.*leave it out"),
        (WattsStrogatz(4, 0.5), r"WattsStrogatz\(.*leave it out"),
        (
            LegacyBigBird("google", block=4, random=1, full_up_to=0),
            r"LegacyBigBird\(.*leave it out",
        ),
    ],
    ids=repr,
)
def test_graphs_that_change_as_they_grow_are_refused(graph, advice):
    assert not grows_by_prefixes(graph & Causal(), range(24, 48))
    for refused in (graph, graph & Causal(), Window(2) & Causal() | graph & Causal()):
        with pytest.raises(ValueError, match=advice):
            stream(refused)


@pytest.mark.parametrize(
    ("graph", "culprit"),
    [
        (Full(), r"Full\(\)"),
        (Window(1), r"Window\(radius=1, dilation=1\)"),
        (Full() | Causal(), r"Full\(\)"),
        (Window(1) & Causal() | GlobalTokens([0]), r"GlobalTokens\(positions=\(0,\)\)"),
        (Window(1) & BlockWindow(3, 4), r"BlockWindow\(.*\) & Window\(.*\)"),
        (Causal() | Edges([(2, 2), (1, 2)]), r"Edges\(\[\[1, 2\], \[2, 2\]\]\)"),
    ],
    ids=repr,
)
def test_graphs_that_look_ahead_are_refused(graph, culprit):
    assert not is_causal(graph)
    with pytest.raises(ValueError, match=rf"but one of {culprit} may; .*Causal\(\)"):
        stream(graph)
    assert_exact(graph & Causal(), stream(graph & Causal()))


def test_a_stream_is_a_value():
    found = stream((Window(3) | GlobalTokens([0])) & Causal())
    assert pickle.loads(pickle.dumps(found)) == found
    assert len({found, stream(found.graph)}) == 1
    with pytest.raises(TypeError, match=r"needs a graph, received 'causal' \(str\)"):
        stream("causal")
