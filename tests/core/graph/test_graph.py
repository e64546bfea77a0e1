"""Graphs: the definitions against plain loops, the algebra, JSON, and what is refused."""

import base64
import hashlib
import json
import pickle
import random
import subprocess
import sys
import zlib
from pathlib import Path

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings

import longbird.core.graph
from longbird.core.graph import (
    BlockWindow,
    ByLength,
    Causal,
    Edges,
    ErdosRenyi,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Graph,
    Intersection,
    LegacyBigBird,
    PerHead,
    RandomBlocks,
    Union,
    WattsStrogatz,
    Window,
    bigbird,
    longformer,
)

PIECES = [
    Full(),
    Causal(),
    Window(3),
    Window(2, dilation=3),
    BlockWindow(3, 4),
    GlobalTokens([0, -1]),
    GlobalTokens([]),
    GlobalBlocks(1, 1, 4),
    RandomBlocks(2, 4, seed=5),
    RandomBlocks(1, 4, avoid=BlockWindow(3, 4)),
    ErdosRenyi(0.3, seed=2),
    WattsStrogatz(4, 0.5),
    Edges([(0, 1), (3, 2)]),
    Edges([]),
    LegacyBigBird("google", block=4, random=1, full_up_to=8),
    LegacyBigBird("huggingface_eval", block=4, random=1),
    bigbird(4),
    longformer(6, dilation=2),
    Window(2) & Causal(),
    (Window(2) | GlobalTokens([0])) & Causal() & Window(5),
]
NAMES = {name: value for name, value in globals().items() if not name.startswith("_")}


# The definitions of the design, one plain `if` each.


def in_window(i, j, radius, dilation):
    return abs(i - j) <= radius * dilation and (i - j) % dilation == 0


def in_global_blocks(i, n, first, last, block):
    blocks = [range(start, min(start + block, n)) for start in range(0, n, block)]
    chosen = blocks[:first] + (blocks[-last:] if last else [])
    return any(i in tokens for tokens in chosen)


@pytest.mark.parametrize("n", [0, 1, 2, 7, 12, 13])
@pytest.mark.parametrize(
    ("graph", "edge"),
    [
        (Full(), lambda i, j, n: True),
        (Causal(), lambda i, j, n: j <= i),
        (Window(0), lambda i, j, n: i == j),
        (Window(2), lambda i, j, n: in_window(i, j, 2, 1)),
        (Window(2, 3), lambda i, j, n: in_window(i, j, 2, 3)),
        (Window(10**9, 10**9), lambda i, j, n: in_window(i, j, 10**9, 10**9)),
        (BlockWindow(1, 3), lambda i, j, n: i // 3 == j // 3),
        (BlockWindow(3, 2), lambda i, j, n: abs(i // 2 - j // 2) <= 1),
        (longformer(4), lambda i, j, n: abs(i - j) <= 2),
        *(
            (
                GlobalBlocks(first, last, block),
                lambda i, j, n, a=(first, last, block): (
                    in_global_blocks(i, n, *a) or in_global_blocks(j, n, *a)
                ),
            )
            for first, last, block in [(1, 1, 3), (0, 1, 5), (2, 0, 2), (0, 0, 4), (9, 9, 2)]
        ),
    ],
    ids=lambda value: repr(value) if isinstance(value, Graph) else None,
)
def test_definitions(graph, edge, n):
    expected = np.array([[edge(i, j, n) for j in range(n)] for i in range(n)], bool)
    mask = graph.mask(n, heads=2)
    assert mask.dtype == bool
    assert mask.shape == (2, n, n)
    assert (mask == expected.reshape(n, n)).all()
    counts = graph.counts(n, heads=2)
    assert counts.dtype == np.int32
    assert (counts == mask).all()


def test_global_tokens_count_from_the_end():
    mask = GlobalTokens([1, -2]).mask(6)[0]
    expected = [[i in (1, 4) or j in (1, 4) for j in range(6)] for i in range(6)]
    assert (mask == expected).all()


@pytest.mark.parametrize("position", [3, -4, 100])
@pytest.mark.parametrize("method", ["mask", "counts", "layout"])
def test_position_that_does_not_exist(position, method):
    for graph in (GlobalTokens([position]), GlobalTokens([position]) & Causal()):
        with pytest.raises(ValueError, match=f"position {position} does not exist .* 3 tokens"):
            getattr(graph, method)(3)
    if position > 0:
        graph = Window(1) | Edges([(0, position)])
        with pytest.raises(ValueError, match=f"position {position} does not exist .* 3 tokens"):
            getattr(graph, method)(3)


def test_edges_are_any_digraph():
    rng = random.Random(0)
    pairs = [(rng.randrange(20), rng.randrange(20)) for _ in range(60)]
    graph = Edges(pairs)
    assert graph == Edges(np.array(pairs[::-1] + pairs, np.uint8))
    assert [tuple(pair) for pair in graph.pairs.tolist()] == sorted(set(pairs))
    assert {tuple(edge) for edge in np.argwhere(graph.mask(20)[0]).tolist()} == set(pairs)
    with pytest.raises(ValueError, match="read-only"):
        graph.pairs[0] = 1


@pytest.mark.parametrize("kind", [set, iter, tuple, np.array, torch.tensor, nx.DiGraph])
def test_edges_come_in_any_container(kind):
    pairs = [(0, 1), (2, 2)]
    given = kind(pairs)
    assert Edges(given.edges if kind is nx.DiGraph else given) == Edges(pairs)


def test_algebra_is_that_of_sets():
    a, b, c = Window(2), GlobalTokens([0]), Causal()
    assert (a | b) | c == c | (b | a)
    assert (a & b) & c == c & (b & a)
    assert a | a == a
    assert a & a == a
    assert (a | b) | a == a | b
    assert isinstance(a | b, Union)
    assert isinstance(a & b, Intersection)
    assert a | b != a & b
    assert len({a | b, b | a, a & b, b & a}) == 2
    assert a != "Window"
    assert ((a | b).mask(9) == (a.mask(9) | b.mask(9))).all()
    assert ((a & b).mask(9) == (a.mask(9) & b.mask(9))).all()


def test_multiplicities_combine_by_maximum_and_minimum():
    legacy = LegacyBigBird("huggingface_eval", block=2, random=2, full_up_to=0)
    window = Window(3)
    a, b = legacy.counts(20), window.counts(20)
    assert a.max() == 3
    assert ((legacy | window).counts(20) == np.maximum(a, b)).all()
    assert ((legacy & window).counts(20) == np.minimum(a, b)).all()
    assert ((legacy | window).mask(20) == (np.maximum(a, b) > 0)).all()


@pytest.mark.parametrize("graph", PIECES, ids=repr)
def test_text_forms(graph):
    assert Graph.from_json(graph.to_json()) == graph
    assert json.dumps(json.loads(graph.to_json())) == graph.to_json()
    assert Graph.from_key(graph.key) == graph
    assert eval(repr(graph), dict(NAMES)) == graph
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert hash(Graph.from_json(graph.to_json())) == hash(graph)
    assert "key" in vars(graph)
    assert (Graph.from_json(graph.to_json()).counts(40, 2) == graph.counts(40, 2)).all()


def test_graphs_are_immutable():
    with pytest.raises(AttributeError):
        Window(3).radius = 4  # type: ignore[misc]


def test_equal_graphs_have_one_key():
    assert len({graph.key for graph in PIECES}) == len(PIECES)
    assert Window(np.int32(3)).key == Window(3).key
    assert GlobalTokens([3, 1, 3]) == GlobalTokens(np.array([1, 3]))
    assert ErdosRenyi(1) == ErdosRenyi(1.0)


def test_large_graphs_have_a_short_key():
    pairs = np.random.default_rng(0).integers(0, 10**6, (50_000, 2))
    graph = Edges(pairs)
    assert graph.key.startswith("sha256:")
    assert Graph.from_key(graph.key) is graph
    assert Graph.from_json(graph.to_json()) == graph
    assert (Graph.from_json(graph.to_json()).pairs == graph.pairs).all()
    assert repr(graph) == f"Edges(<{len(graph.pairs)} edges>)"
    both = graph | Causal()
    assert Graph.from_key(both.key) is both
    key = graph.key
    del graph, both
    with pytest.raises(ValueError, match="no graph of this process has the key sha256"):
        Graph.from_key(key)


def test_reseed():
    graph = bigbird(4, seed=1)
    assert graph.reseed(2) == bigbird(4, seed=3)
    assert graph.reseed(0) == graph
    assert Window(2).reseed(3) == Window(2)
    assert (ErdosRenyi(0.5) & Causal()).reseed(1) == ErdosRenyi(0.5, seed=1) & Causal()
    assert WattsStrogatz(2, 0.5, 1).reseed(1).seed == 2
    nested = RandomBlocks(1, 4, avoid=RandomBlocks(1, 4, seed=7))
    assert nested.reseed(1) == RandomBlocks(1, 4, seed=1, avoid=RandomBlocks(1, 4, seed=8))


def test_per_head():
    assert not (Window(2) | ErdosRenyi(0.1)).per_head
    assert bigbird().per_head
    assert (bigbird() & Causal()).per_head
    assert not bigbird(random=0).per_head


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Window(-1), ValueError, "Window radius must be an integer >= 0, received -1"),
        (lambda: Window(True), TypeError, r"integer >= 0, received True \(bool\)"),
        (lambda: Window(1.0), TypeError, r"received 1.0 \(float\)"),
        (lambda: Window("3"), TypeError, r"received '3' \(str\)"),
        (lambda: Window(None), TypeError, "received None"),
        (lambda: Window(np.array([1, 2])), TypeError, "Window radius"),
        (lambda: Window(2**40), ValueError, "at most"),
        (lambda: Window(1, 0), ValueError, "Window dilation must be an integer >= 1, received 0"),
        (lambda: BlockWindow(2, 64), ValueError, "odd .* received 2"),
        (lambda: BlockWindow(3, 0), ValueError, "block must be an integer >= 1"),
        (lambda: GlobalBlocks(-1), ValueError, "GlobalBlocks first"),
        (lambda: GlobalTokens(3), TypeError, "sequence of integers, received 3"),
        (lambda: GlobalTokens("abc"), TypeError, "sequence of integers"),
        (lambda: GlobalTokens([0, 1.5]), TypeError, "received 1.5"),
        (lambda: GlobalTokens([float("nan")]), TypeError, "received nan"),
        (lambda: RandomBlocks(-1), ValueError, "RandomBlocks count"),
        (lambda: RandomBlocks(1, seed=-1), ValueError, "RandomBlocks seed"),
        (lambda: RandomBlocks(1, seed=2**63), ValueError, "RandomBlocks seed"),
        (lambda: RandomBlocks(1, avoid=3), TypeError, "avoid must be a graph or None"),
        (lambda: ErdosRenyi(1.5), ValueError, "from 0 to 1, received 1.5"),
        (lambda: ErdosRenyi(float("nan")), ValueError, "received nan"),
        (lambda: ErdosRenyi("0.5"), TypeError, "received '0.5'"),
        (lambda: WattsStrogatz(3, 0.1), ValueError, "even .* received 3"),
        (lambda: WattsStrogatz(2, -0.1), ValueError, "WattsStrogatz beta"),
        (lambda: Edges([1, 2]), ValueError, r"shape \(edges, 2\), .* received the shape \(2,\)"),
        (lambda: Edges([(1, 2, 3)]), ValueError, r"received the shape \(1, 3\)"),
        (lambda: Edges([(1, 2), (3,)]), ValueError, r"\(query, key\), received a row \(3,\)"),
        (lambda: Edges([(1, 2), 3]), ValueError, "received a row 3"),
        (lambda: Edges({(1, 2), (3, 4, 5)}), ValueError, r"received a row \(3, 4, 5\)"),
        (lambda: Edges(np.eye(3).nonzero()), ValueError, r"np.argwhere\(mask\)"),
        (lambda: Edges({1: 2}), TypeError, r"received {1: 2} \(dict\)"),
        (lambda: Edges(None), TypeError, r"received None \(NoneType\)"),
        (lambda: Edges("ab"), TypeError, r"received 'ab' \(str\)"),
        (lambda: Edges([(0, 10**30)]), ValueError, f"from 0 to 2147483647, received {10**30}"),
        (lambda: Edges(torch.ones(1, 2, device="meta")), TypeError, "Edges pairs .*: .*meta"),
        (lambda: Edges([(0.0, 1.0)]), TypeError, "integers .* received the dtype float64"),
        (lambda: Edges([(True, False)]), TypeError, "dtype bool"),
        (lambda: Edges([(0, -1)]), ValueError, "from -1 to 0"),
        (lambda: Edges([(0, 2**31)]), ValueError, "2147483648"),
        (lambda: Edges([(0, float("nan"))]), TypeError, "dtype float64"),
        (lambda: LegacyBigBird("meta"), ValueError, "google, huggingface, huggingface_eval"),
        (lambda: LegacyBigBird("google", seed=2**32), ValueError, "LegacyBigBird seed"),
        (lambda: longformer(511), ValueError, "even .* received 511"),
        (lambda: Window(1).mask(-1), ValueError, "n must be an integer >= 0, received -1"),
        (lambda: Window(1).mask(4.0), TypeError, "n must be an integer"),
        (lambda: Window(1).mask(4, heads=0), ValueError, "heads must be an integer >= 1"),
        (lambda: Window(1).layout(-1), ValueError, "n must be an integer >= 0, received -1"),
        (lambda: Window(1).layout(4, 0), ValueError, "heads must be"),
        (lambda: Window(1).layout(4, 1, 129), ValueError, "block of a layout .* received 129"),
        (lambda: Window(1).layout(4, rows=(3, 5)), ValueError, "rows must be within"),
        (lambda: Window(1).layout(4, rows=(3, 2)), ValueError, "rows must be within"),
        (lambda: Window(1) | 3, TypeError, "unsupported operand"),
        (lambda: Union((Window(1),)), ValueError, "two different parts"),
        (lambda: Union((Window(1), 3)), TypeError, "must be graphs, received 3"),
        (lambda: bigbird(window=4), ValueError, "odd"),
        (lambda: bigbird().reseed("a"), TypeError, r"offset of reseed .* received 'a' \(str\)"),
        (lambda: Window(1).reseed(1.0), TypeError, r"offset of reseed .* received 1.0 \(float\)"),
        (lambda: LegacyBigBird("google").reseed(None), TypeError, "offset of reseed"),
        (lambda: bigbird().reseed(-5), ValueError, "reseed adds -5 to the seed 0, but .* -5"),
        (lambda: LegacyBigBird("google").reseed(-1), ValueError, "reseed adds -1 to the seed 0"),
        (lambda: bigbird().reseed(2**63), ValueError, "offset of reseed"),
        (
            lambda: Window(1).mask(10**6),
            ValueError,
            r"mask\(1000000, heads=1\) would take 9 TB of the",
        ),
        (lambda: Full().counts(10**6, 2), ValueError, r"counts\(1000000, heads=2\) would take 16"),
        (
            lambda: Full().mask(10, 10**9),
            ValueError,
            r"mask\(10, heads=1000000000\) would take 100",
        ),
        (
            lambda: Window(1).layout(4, rows=3),
            TypeError,
            r"rows must be \(first, end\), received 3",
        ),
        (lambda: Window(1).layout(4, rows=(1, 2, 3)), ValueError, r"rows must be \(first, end\)"),
        (lambda: Window(1).show("a"), TypeError, "n of a picture .* received 'a'"),
        (
            lambda: Window(1).show(8, head="a"),
            TypeError,
            "head must be an integer .* received 'a'",
        ),
        (lambda: Window(1).show(8, heads=0), ValueError, "heads must be an integer >= 1"),
        (lambda: GlobalTokens({0: 1}), TypeError, r"sequence of integers, received {0: 1} \(dict"),
        (lambda: GlobalTokens(np.array(3)), TypeError, r"sequence of integers, .* \(ndarray"),
        (lambda: PerHead({Full(), Causal()}), TypeError, r"sequence of graphs, .* \(set\)"),
        (lambda: PerHead([Full()]).for_head(1), ValueError, "head of PerHead .* received 1"),
        (lambda: ByLength({5: "Full"}, "Causal").at("a"), TypeError, "n must be .* received 'a'"),
    ],
)
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("nonsense", "not valid JSON"),
        ("3", "object with a type"),
        ("[]", "object with a type"),
        ("{}", "unknown graph type None"),
        ('{"type": "Widow", "radius": 3}', "unknown graph type 'Widow'; known .* BlockWindow"),
        ('{"type": "Graph"}', "unknown graph type 'Graph'"),
        ('{"type": "_Rule"}', "unknown graph type '_Rule'"),
        ('{"type": ["Window"], "radius": 3}', "unknown graph type"),
        ('{"type": "Window"}', "Window is wrong: .*radius"),
        ('{"type": "Window", "radius": 3, "colour": 1}', "Window is wrong: .*colour"),
        ('{"type": "Window", "radius": "3"}', "Window radius .* received '3'"),
        ('{"type": "Window", "radius": -3}', "Window radius .* received -3"),
        ('{"type": "Window", "radius": true}', "Window radius"),
        ('{"type": "Window", "radius": 1e2}', "Window radius"),
        ('{"type": "Window", "radius": {"type": "Full"}}', "Window radius"),
        ('{"type": "Union", "parts": []}', "at least one part"),
        ('{"type": "Union", "parts": 3}', "Union is wrong: .*parts"),
        ('{"type": "Union"}', "Union is wrong: .*parts"),
        ('{"type": "Union", "parts": [3]}', "must be graphs, received 3"),
        ('{"type": "ErdosRenyi", "p": NaN}', "received nan"),
        ('{"type": "Edges", "pairs": [[1, 2], [3]]}', "Edges"),
        ('{"type": "Edges", "pairs": [["a", "b"]]}', "integers"),
        ('{"type": "Edges", "count": 3, "zlib": "!"}', "damaged"),
        ('{"type": "Edges", "count": 3, "zlib": 5}', "Edges is wrong"),
        ('{"type": "Edges", "count": 3, "zlib": "AAAA"}', "damaged"),
        ('{"type": "GlobalTokens", "positions": [0, null]}', "received None"),
        ("[" * 100_000, "nested too deeply|not valid JSON"),
        ('{"type": "Union", "parts": [' * 5_000, "nested too deeply|not valid JSON"),
        (
            '{"type": "RandomBlocks", "avoid": ' * 5_000 + '{"type": "Full"}' + "}" * 5_000,
            "nested too deeply",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_hostile_json(text, message):
    with pytest.raises(ValueError, match=message):
        Graph.from_json(text)


def test_packed_edges_do_not_inflate_beyond_their_count():
    bomb = base64.b64encode(zlib.compress(bytes(10**7))).decode()
    with pytest.raises(ValueError, match="not 1001 edges"):
        Graph.from_json(json.dumps({"type": "Edges", "count": 1001, "zlib": bomb}))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5), st.randoms())
def test_order_and_repetition_have_no_meaning(parts, rng):
    shuffled = parts + parts[:2]
    rng.shuffle(shuffled)
    assert Union.of(parts) == Union.of(shuffled)
    assert Intersection.of(parts) == Intersection.of(shuffled)
    assert Graph.from_json(Union.of(parts).to_json()) == Union.of(shuffled)


def test_random_state_is_untouched():
    before = np.random.get_state()
    python = random.getstate()
    for graph in PIECES:
        graph.mask(40, 2)
        graph.layout(41, 2)
    after = np.random.get_state()
    assert before[0] == after[0]
    assert (before[1] == after[1]).all()
    assert before[2:] == after[2:]
    assert python == random.getstate()


def test_graph_package_does_not_import_torch():
    # Without the package around it, which imports the operator and so torch.
    code = (
        "import sys, types; package = types.ModuleType('longbird'); "
        f"package.__path__ = [{str(Path(longbird.core.graph.__file__).parents[1])!r}]; "
        "sys.modules['longbird'] = package; import longbird.core.graph; "
        "longbird.core.graph.bigbird().layout(1024, 2); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_edges_are_written_out_below_ten():
    pairs = [[k, k + 1] for k in range(10)]
    assert repr(Edges(pairs[:9])) == f"Edges({pairs[:9]})"
    assert repr(Edges(pairs)) == "Edges(<10 edges>)"
    assert repr(Edges(pairs, clip=True)) == "Edges(<10 edges>, clip=True)"
    assert json.loads(Edges(pairs).to_json())["pairs"] == pairs


def test_keys_that_files_and_compiled_programs_hold():
    assert Edges([(3, 2), (0, 1)]).key == '{"type": "Edges", "pairs": [[0, 1], [3, 2]]}'
    assert Graph.from_json('{"type": "Edges", "pairs": [[0, 1]]}') == Edges([(0, 1)])
    assert (Window(2) & Causal()).key == (
        '{"type": "Intersection", "parts": [{"type": "Causal"}, '
        '{"type": "Window", "radius": 2, "dilation": 1}]}'
    )
    whole = "|".join(graph.key for graph in PIECES)
    assert hashlib.sha256(whole.encode()).hexdigest() == (
        "86a04955460b87d8ec9908976bea1b76dfc4ce34c228165d25238bc4edf3dca7"
    )


@pytest.mark.parametrize(
    ("graph", "text"),
    [
        (bigbird(), "bigbird()"),
        (bigbird(block=16, seed=3), "bigbird(block=16, seed=3)"),
        (bigbird(window=5, random=0, global_last=0), "bigbird(window=5, random=0, global_last=0)"),
        (bigbird() & Causal(), "Causal() & bigbird()"),
        (bigbird().reseed(4), "bigbird(seed=4)"),
    ],
)
def test_a_preset_is_written_as_one(graph, text):
    assert repr(graph) == str(graph) == text
    assert eval(text, dict(NAMES)) == graph
    assert "BlockWindow" in graph.key
    assert "bigbird" not in graph.to_json()


def test_what_is_almost_a_preset_is_written_out():
    base = BlockWindow(3, 64) | GlobalBlocks(1, 1, 64)
    for graph in (
        base,
        base | RandomBlocks(3, 64),
        base | RandomBlocks(3, 64, avoid=BlockWindow(3, 64)),
        base | RandomBlocks(3, 32, avoid=base),
        BlockWindow(3, 32) | GlobalBlocks(1, 1, 64) | RandomBlocks(3, 64, avoid=base),
        bigbird() | BlockWindow(5, 64),
    ):
        assert repr(graph).count(" | ") >= 1
        assert "bigbird" not in repr(graph)
        assert eval(repr(graph), dict(NAMES)) == graph
