"""A graph for each head and a graph for each length, against the graphs they choose from."""

import copy
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings

import longbird as lb
from longbird.analysis.drawing import picture
from longbird.core.graph import Graph, as_graph, stream

GRAPHS = [
    lb.Full(),
    lb.Causal(),
    lb.Window(3),
    lb.Window(2, dilation=3),
    lb.BlockWindow(3, 4),
    lb.GlobalTokens([0, -1]),
    lb.GlobalBlocks(1, 1, 4),
    lb.RandomBlocks(2, 4, seed=5),
    lb.ErdosRenyi(0.3, seed=2),
    lb.WattsStrogatz(4, 0.5),
    lb.Edges([(0, 1), (3, 2)]),
    lb.LegacyBigBird("google", block=4, random=1, full_up_to=8),
    lb.LegacyBigBird("huggingface_eval", block=4, random=1, full_up_to=0),
    lb.bigbird(4),
    lb.Window(2) & lb.Causal(),
]
graphs = st.sampled_from(GRAPHS)


@pytest.mark.slow  # a graph for each head, many times
@settings(deadline=None, max_examples=60)
@given(
    parts=st.lists(graphs, min_size=1, max_size=4),
    other=graphs,
    n=st.sampled_from([24, 65, 100]),
    block=st.sampled_from([None, 16, 7]),
)
def test_per_head_has_in_each_head_what_its_graph_has_there(parts, other, n, block):
    heads, graph = len(parts), lb.PerHead(parts)
    expected = np.stack([part.counts(n, heads)[head] for head, part in enumerate(parts)])
    beside = other.counts(n, heads)
    for combined, counts in (
        (graph, expected),
        (graph | other, np.maximum(expected, beside)),
        (graph & other, np.minimum(expected, beside)),
        (lb.PerHead([graph] * heads), expected),
        (lb.RandomBlocks(1, 8, avoid=graph), None),
    ):
        counts = combined.counts(n, heads) if counts is None else counts
        assert (combined.counts(n, heads) == counts).all()
        layout = combined.layout(n, heads, block)
        assert (layout.dense() == counts).all()
        assert layout.edges() == counts.sum()
    rows = graph.layout(n, heads, block, rows=(10, 20))
    assert (rows.dense() == expected[:, 10:20]).all()
    for head in range(heads):
        assert (graph.for_head(head).counts(n, heads)[head] == expected[head]).all()


@pytest.mark.parametrize("method", ["mask", "counts", "layout"])
def test_per_head_needs_as_many_graphs_as_heads(method):
    graph = lb.PerHead([lb.Window(1), lb.Window(2)])
    for heads in (1, 3):
        for given_graph in (graph, graph | lb.Causal(), lb.RandomBlocks(1, 4, avoid=graph)):
            with pytest.raises(ValueError, match=rf"2 graphs, .* is {heads}; give `heads=2`"):
                getattr(given_graph, method)(20, heads)


def test_per_head_windows_of_one_dilation_are_sorted():
    graph = lb.PerHead([lb.Window(9, 4), lb.Window(30, 4) & lb.Causal()])
    layout = graph.layout(2000, 2)
    assert layout.queries.step == 4
    assert (layout.dense() == graph.counts(2000, 2)).all()
    assert lb.PerHead([lb.Window(9, 4), lb.Window(9, 2)]).layout(2000, 2).queries.step == 1


@pytest.mark.parametrize("impl", ["reference", "gather", "native"])
def test_every_implementation_runs_them(impl):
    n, heads = 70, 3
    q, k, v = torch.randn(3, 2, heads, n, 8, generator=torch.Generator().manual_seed(0)).unbind()
    graph = lb.PerHead(["Window(3)", lb.bigbird(8), "Causal & BlockWindow(3, 8)"])
    whole = lb.attention(q, k, v, graph, impl=impl)
    for head in range(heads):
        alone = lb.attention(q, k, v, graph.graphs[head], impl="reference")
        torch.testing.assert_close(whole[:, head], alone[:, head], atol=1e-5, rtol=1e-4)
    by_length = lb.ByLength({30: "Full"}, otherwise=graph)
    lengths = torch.tensor([30, 70])
    ragged = lb.attention(q, k, v, by_length, lengths=lengths, impl=impl)
    short = lb.attention(q[:1, :, :30], k[:1, :, :30], v[:1, :, :30], lb.Full(), impl="reference")
    torch.testing.assert_close(ragged[:1, :, :30], short, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(ragged[1], whole[1], atol=1e-5, rtol=1e-4)


def test_per_head_streams_a_head_at_a_time():
    graph = lb.PerHead([lb.Window(3), lb.Window(2, 5) | lb.GlobalTokens([1])]) & lb.Causal()
    found = stream(graph)
    assert (found.reach, found.sinks) == (10, 2)
    n = 40
    for make in (np.arange, torch.arange):
        at, head = make(n), make(2)[:, None, None]
        seen = np.asarray(found.sees(at[:, None], at, head))
        assert (seen == graph.mask(n, 2)).all()
    with pytest.raises(ValueError, match="needs head"):
        found.sees(np.arange(3), np.arange(3))
    with pytest.raises(ValueError, match=r"ErdosRenyi.*leave it out"):
        stream(lb.PerHead([lb.Causal(), lb.ErdosRenyi(0.1)]) & lb.Causal())


def test_by_length_is_the_graph_of_the_length():
    graph = lb.ByLength({100: "BlockWindow(3, 8)", 20: lb.Full()}, otherwise="bigbird(block=8)")
    expected = {1: lb.Full(), 20: lb.Full(), 21: lb.BlockWindow(3, 8), 100: lb.BlockWindow(3, 8)}
    for n, chosen in {**expected, 101: lb.bigbird(8)}.items():
        assert graph.at(n) == chosen
        assert (graph.counts(n, 2) == chosen.counts(n, 2)).all()
        assert graph.layout(n, 2) is chosen.layout(n, 2)
        both = graph & lb.Causal()
        assert (both.layout(n, 2).dense() == (chosen & lb.Causal()).counts(n, 2)).all()
        avoiding = lb.RandomBlocks(1, 8, avoid=graph)
        assert (avoiding.layout(n, 2).dense() == avoiding.counts(n, 2)).all()
    assert (graph | lb.Full()).at(10) == lb.Full()  # what became the same is one
    with pytest.raises(ValueError, match=r"choose the graph of one length"):
        stream(lb.ByLength({5: lb.Causal()}, lb.Window(3) & lb.Causal()))


@pytest.mark.parametrize(
    "graph",
    [
        lb.PerHead([lb.Window(1), lb.bigbird(4), lb.Window(1)]),
        lb.PerHead([lb.Window(3)]) | lb.Causal(),
        lb.PerHead([lb.PerHead([lb.Causal()])]),
        lb.ByLength({512: lb.Full()}, otherwise=lb.bigbird()),
        lb.ByLength([(8, lb.Full()), (4, lb.Causal())], lb.PerHead([lb.Window(1), lb.Full()])),
        lb.Edges([(0, 1), (3, 2)], clip=True),
        lb.Edges(np.arange(2400).reshape(-1, 2), clip=True),
    ],
    ids=lambda graph: repr(graph)[:50],
)
def test_text_forms(graph):
    assert Graph.from_json(graph.to_json()) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph == copy.deepcopy(graph)
    assert Graph.from_key(graph.key) == graph
    assert len({graph, Graph.from_json(graph.to_json())}) == 1
    if "<" not in repr(graph):
        assert as_graph(repr(graph)) == graph
        assert eval(repr(graph), {name: getattr(lb, name) for name in lb.__all__}) == graph


def test_order_of_heads_has_a_meaning_and_that_of_lengths_has_none():
    a, b = lb.Window(1), lb.Full()
    assert lb.PerHead([a, b]) != lb.PerHead([b, a])
    assert lb.ByLength({4: a, 8: b}, a) == lb.ByLength({8: b, 4: a}, a)


def test_reseed_reaches_inside():
    assert lb.PerHead([lb.bigbird(4), "Full"]).reseed(3) == lb.PerHead(
        [lb.bigbird(4, seed=3), lb.Full()]
    )
    assert lb.ByLength({4: lb.ErdosRenyi(0.5)}, lb.bigbird(4)).reseed(3) == lb.ByLength(
        {4: lb.ErdosRenyi(0.5, seed=3)}, lb.bigbird(4, seed=3)
    )


def test_long_reprs_are_short():
    graph = lb.PerHead([lb.bigbird(seed=head % 3) for head in range(96)])
    assert repr(graph) == "PerHead(<96 graphs, 3 different>)"
    assert repr(lb.GlobalTokens(range(5000))) == "GlobalTokens(<5000 positions>)"
    assert repr(lb.GlobalTokens(range(3))) == "GlobalTokens(positions=(0, 1, 2))"


def test_pictures_show_the_graph_of_the_head_and_of_the_length():
    graph = lb.ByLength({50: "Full"}, lb.PerHead([lb.Window(2), lb.GlobalTokens([3])]))
    assert list(picture(graph, 60, heads=2, head=0).layers) == ["window"]
    drawn = picture(graph, 60, heads=2, head=1)
    assert list(drawn.layers) == ["global"]
    assert (drawn.layers["global"] == lb.GlobalTokens([3]).mask(60)[0]).all()
    assert picture(graph, 50, heads=2).layers["window"].all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: lb.PerHead([]), ValueError, "needs a graph for each head, received none"),
        (lambda: lb.PerHead("Full"), TypeError, "sequence of graphs, .* received 'Full'"),
        (lambda: lb.PerHead(lb.Full()), TypeError, "sequence of graphs"),
        (lambda: lb.PerHead(3), TypeError, r"received 3 \(int\)"),
        (lambda: lb.PerHead([lb.Full(), 3]), TypeError, "graph must be a graph .* received 3"),
        (lambda: lb.PerHead(["Ful"]), ValueError, r"Did you mean Full\?"),
        (lambda: lb.ByLength({}, "Full"), ValueError, "one length or more"),
        (lambda: lb.ByLength(3, "Full"), TypeError, "dictionary from lengths to graphs"),
        (lambda: lb.ByLength([3], "Full"), TypeError, "dictionary from lengths to graphs"),
        (lambda: lb.ByLength({-1: "Full"}, "Full"), ValueError, "each length of ByLength"),
        (lambda: lb.ByLength({"a": "Full"}, "Full"), TypeError, "each length of ByLength"),
        (lambda: lb.ByLength([(3, "Full"), (3, "Full")], "Full"), ValueError, "each once"),
        (lambda: lb.ByLength({3: "Full"}, 7), TypeError, "graph must be a graph"),
        (lambda: lb.Edges([(0, 1)], clip=1), TypeError, "clip must be True or False"),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_clipped_edges_are_those_that_exist():
    pairs = np.random.default_rng(0).integers(0, 50, (200, 2))
    graph = lb.Edges(pairs, clip=True)
    assert graph != lb.Edges(pairs)
    assert lb.Edges(pairs, clip=False) == lb.Edges(pairs)
    assert "clip" not in lb.Edges(pairs).to_json()
    whole = lb.Edges(pairs).mask(50)[0]
    for n in (0, 1, 10, 49, 50, 60):
        expected = np.zeros((n, n), bool)
        m = min(n, 50)
        expected[:m, :m] = whole[:m, :m]
        assert (graph.mask(n)[0] == expected).all()
        assert (graph.layout(n).dense()[0] == expected).all()
    with pytest.raises(ValueError, match=r"does not exist in a sequence of 20 .*clip=True"):
        lb.Edges(pairs).layout(20)
    q = torch.randn(2, 1, 50, 8, generator=torch.Generator().manual_seed(0))
    ragged = lb.attention(q, q, q, graph, lengths=torch.tensor([10, 50]))
    alone = lb.attention(q[:1, :, :10], q[:1, :, :10], q[:1, :, :10], graph)
    torch.testing.assert_close(ragged[:1, :, :10], alone)
    causal = graph & lb.Causal()
    assert (stream(causal).sees(np.arange(50)[:, None], np.arange(50)) == causal.mask(50)[0]).all()


def test_one_graph_is_not_called_graphs():
    with pytest.raises(ValueError, match="has 1 graph, one for each head"):
        lb.PerHead(["Full"]).mask(3, heads=2)
