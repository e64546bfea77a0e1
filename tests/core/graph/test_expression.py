"""Graphs as text: what is understood, and that everything else is a ValueError."""

import ast
import json
import sys
import time

import pytest

import longbird as lb
from longbird.core import graph as graph_package
from longbird.core.graph import Graph, as_graph
from longbird.core.graph.expression import names


def test_names_are_the_public_pieces_and_presets():
    public = {
        name
        for name in lb.__all__
        if isinstance(getattr(lb, name), type) and issubclass(getattr(lb, name), lb.Graph)
    }
    known = {name for name, value in names().items() if value.__module__.startswith("longbird.")}
    assert known == (public - {"Graph"}) | {"bigbird", "longformer"}
    assert known <= set(vars(graph_package))


@pytest.mark.parametrize(
    ("text", "graph"),
    [
        ("lb.Window(3)", lb.Window(3)),
        ("longbird.bigbird", lb.bigbird()),
        ("Edges([[0, 1]], clip=True)", lb.Edges([(0, 1)], clip=True)),
        (
            "RandomBlocks(1, avoid=Window(3) | Causal)",
            lb.RandomBlocks(1, avoid="Window(3)|Causal"),
        ),
        ("PerHead([Window(3), 'bigbird'])", lb.PerHead([lb.Window(3), lb.bigbird()])),
        ("PerHead((Full(), Causal))", lb.PerHead(["Full", "Causal"])),
        (
            "ByLength({512: Full(), 64: 'Causal'}, otherwise=bigbird(block=16))",
            lb.ByLength({64: lb.Causal(), 512: lb.Full()}, lb.bigbird(16)),
        ),
        (" | ".join(f"Window({k})" for k in range(600)), None),
        ("GlobalTokens({0, -1})", lb.GlobalTokens([0, -1])),
        ("Edges({(0, 1), (2, 2)})", lb.Edges([(0, 1), (2, 2)])),
        ("GlobalTokens([0, -1]) & Causal", lb.GlobalTokens([0, -1]) & lb.Causal()),
    ],
    ids=lambda value: str(value)[:40],
)
def test_expressions(text, graph):
    found = as_graph(text)
    assert graph is None or found == graph
    assert as_graph(found.to_json()) == found
    assert as_graph(json.loads(found.to_json())) == found


@pytest.mark.parametrize(
    "text",
    [
        lambda count: f"GlobalTokens([{', '.join(map(str, range(-count, count)))}])",
        lambda count: f"Edges([{', '.join(f'({k}, {k})' for k in range(count))}])",
        lambda count: " | ".join(f"lb.Window({k})" for k in range(count)),
        lambda count: f"PerHead([{', '.join(f'Window({k})' for k in range(count))}])",
    ],
    ids=["tokens", "edges", "union", "heads"],
)
def test_parsing_takes_linear_time(text, monkeypatch):
    searched = []
    search = ast.get_source_segment  # it reads the whole text
    monkeypatch.setattr(
        ast, "get_source_segment", lambda *given: searched.append(0) or search(*given)
    )
    lines = []
    for count in (250, 1000):
        executed = 0

        def trace(frame, event, argument):
            nonlocal executed
            executed += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            as_graph(text(count))
        finally:
            sys.settrace(before)
        lines.append(executed)
    assert not searched
    assert lines[1] < 5 * lines[0]  # 4 if it is linear, 16 if it is quadratic


def test_many_positions_are_read_in_seconds():
    start = time.process_time()
    assert len(as_graph(f"GlobalTokens([{', '.join(map(str, range(100_000)))}])").positions) == 1e5
    assert time.process_time() - start < 5


def test_text_beside_a_graph():
    assert lb.Window(3) | "GlobalTokens([0])" == lb.Window(3) | lb.GlobalTokens([0])
    assert "bigbird" & lb.Causal() == lb.bigbird() & lb.Causal()
    with pytest.raises(ValueError, match=r"'Widow' is not a graph\. Did you mean Window"):
        lb.Full() & "Widow(3)"
    with pytest.raises(TypeError, match="unsupported operand"):
        lb.Full() & 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Window(",
        "Window(3",
        "Window(radius=1, radius=2)",
        "Window(**{'radius': 3})",
        "Window(*[3])",
        "Window({[]})",
        "Window({1: 2, 1: 3})",
        "Window({**{}})",
        "Window(-'a')",
        "Window(1 + 1)",
        "Window(9" + "9" * 5000 + ")",
        "ErdosRenyi(1" + "0" * 400 + ")",
        "PerHead([[Full()]])",
        "PerHead([" * 3000 + "])" * 3000,
        "RandomBlocks(avoid=" * 150 + "Full" + ")" * 150,
        "(" * 5000 + "Full" + ")" * 5000,
        "-" * 50_000 + "1",
        "Full" + " | Full" * 50_000 + " | (",
        "__import__('os')",
        "Full.edge(1, 2, 3)",
        "(lambda: Full())()",
        "Full if 1 else Causal",
        "[Full() for _ in range(3)]",
        "Graph()",
        "Union((Full(), Causal()))",
        "stream(Full())",
        "Full\0",
        "\ud800",
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_what_is_not_a_graph_is_a_value_error(text):
    with pytest.raises(ValueError):
        as_graph(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Window(10**9)", r"'10\*\*9' cannot be an argument: nothing is calculated here"),
        ("ErdosRenyi(p=1 / 3)", "'1 / 3' cannot be an argument"),
        ("GlobalTokens([0, 2 - 1])", "'2 - 1' cannot be an argument"),
        ("Window(--3)", "'--3' cannot be an argument"),
        ("Window(-'a')", "is not a number"),
        ("Full()()", r"'Full\(\)' is a graph already, and a graph cannot be called"),
        ("bigbird(16)(32)", r"'bigbird\(16\)' is a graph already"),
        ("Widow(3)()", r"'Widow' is not a graph\. Did you mean Window"),
        ("Window()", r"^Window: missing a required argument: 'radius'; it takes \(radius, dil"),
        ("Causal(3)", r"^Causal: too many positional arguments; it takes none"),
        ("bigbird(blocks=3)", r"^bigbird has no argument 'blocks' .*; it takes \(block=64, w"),
        ("Window('a')", "^Window radius must be an integer >= 0, received 'a'"),
        ("bigbird(block='a')", "^bigbird: BlockWindow block must be an integer"),
    ],
)
def test_messages(text, message):
    with pytest.raises(ValueError, match=message):
        as_graph(text)


def nested(depth):
    graph = lb.Full()
    for k in range(depth):
        graph = lb.RandomBlocks(1, block=k + 1, avoid=graph)
    return graph


def test_graphs_have_a_depth_that_everything_can_follow():
    deep = nested(99)
    assert Graph.from_json(deep.to_json()) == deep
    assert deep.layout(5).edges() == deep.counts(5).sum()
    deep.reseed(1)
    with pytest.raises(ValueError, match="nested too deeply: more than 100 levels"):
        nested(100)
    with pytest.raises(ValueError, match="nested too deeply"):
        as_graph({"type": "RandomBlocks", "avoid": json.loads(deep.to_json())})
    value: object = {"type": "Full"}
    for _ in range(sys.getrecursionlimit() * 2):
        value = {"type": "RandomBlocks", "avoid": value}
    with pytest.raises(ValueError, match="nested too deeply"):
        as_graph(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "Window", "radius": 3, "radius": 4}',
        '{"type": "Full", "type": "Causal"}',
        '{"type": "Union", "parts": [{"type": "Full"}, {"type": "Full", "type": "Causal"}]}',
        '{"type": "RandomBlocks", "avoid": {"type": "Window", "radius": 1, "radius": 1}}',
        '{"type": "PerHead", "graphs": [{"type": "Window", "radius": 1, "radius": 1}]}',
        '{"type": "ByLength", "up_to": [[3, {"type": "Full", "type": "Full"}]], '
        '"otherwise": {"type": "Full"}}',
    ],
)
def test_a_field_that_is_there_twice_is_refused(text):
    with pytest.raises(ValueError, match="twice in one object"):
        Graph.from_json(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "PerHead"}', "PerHead is wrong: .*graphs"),
        ('{"type": "PerHead", "graphs": 3}', "PerHead is wrong: .*sequence of graphs"),
        ('{"type": "PerHead", "graphs": [3]}', "PerHead is wrong: .*received 3"),
        ('{"type": "PerHead", "graphs": []}', "received none"),
        ('{"type": "ByLength", "up_to": [[1]], "otherwise": {"type": "Full"}}', "dictionary"),
        ('{"type": "ByLength", "up_to": [], "otherwise": {"type": "Full"}}', "one length"),
        ('{"type": "ByLength", "up_to": {"512": 3}, "otherwise": {"type": "Full"}}', "type None"),
        ('{"type": "Edges", "pairs": [[0, 1]], "clip": "yes"}', "clip must be True or False"),
        ('{"type": "Edges", "clip": true}', "Edges is wrong: .*pairs"),
        ('{"type": "ErdosRenyi", "p": 1' + "0" * 400 + "}", "too large for a float"),
    ],
)
def test_hostile_json(text, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_json(text)
