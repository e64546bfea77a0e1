"""Pieces that users write outside of the package, against plain loops."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import longbird as lb
from longbird.analysis.drawing import picture
from longbird.core.graph import EdgeList, Reach, as_graph, stream


@dataclass(frozen=True)
class SquareRoot(lb.Graph):
    """By its rule alone: blocks as long as the root of the sequence, and one key in each block."""

    offset: int = 0

    def edge(self, i, j, n):
        block = max(math.isqrt(n), 1)
        return (i // block == j // block) | (j % block == self.offset)


@dataclass(frozen=True)
class PowersOfTwo(lb.Graph):
    """With its tiles: every query sees itself, and the keys 1, 2, 4, 8, ... tokens before it."""

    most: int = 1024
    streams = True
    period = 1

    def edge(self, i, j, n):
        back = i - j
        return (back >= 0) & (back <= self.most) & ((back & (back - 1)) == 0)

    def reach(self, n):
        return Reach(behind=self.most, ahead=0)

    def spans(self, first, last, n):
        steps = [2**k for k in range(64) if 2**k <= min(self.most, n)]
        back = np.array([0, *steps])
        return first - back, last - back


@dataclass(frozen=True)
class Coin(lb.Graph):
    """A random piece: near keys, by a hash of the pair."""

    radius: int
    seed: int = 0

    def edge(self, i, j, n):
        coin = ((i * 7919 + j * 104729 + self.seed * 1299709) % 1009) % 2 == 0
        return coin & (abs(i - j) <= self.radius)

    def reach(self, n):
        return Reach(self.radius, self.radius)


@dataclass(frozen=True)
class Mirrored(lb.Graph):
    """A piece that takes a graph, and is checked when it is made."""

    graph: lb.Graph

    def __post_init__(self):
        object.__setattr__(self, "graph", as_graph(self.graph))
        super().__post_init__()

    def edge(self, i, j, n):
        return self.graph.edge(j, i, n)


@dataclass(frozen=True)
class Tree(EdgeList):
    """A list of edges with optional facts: every query sees itself and its parent in a tree."""

    children: int = 2

    kind = "tree"
    tile_size = 16
    streams = True

    def edges(self, n):
        child = np.arange(n)
        parents = np.stack([child, (child - 1) // self.children], 1)[1:]
        return np.unique(np.concatenate([np.stack([child, child], 1), parents]), axis=0)

    def reach(self, n):
        return Reach(behind=n, ahead=0)

    def tile_count(self, n, size):
        return 2.0 * n

    def sees(self, i, j, head):
        return (i == j) | ((i > 0) & (j == (i - 1) // self.children))


def by_loops(piece, n):
    """The rules once more, one pair at a time."""

    def edge(i, j):
        match piece:
            case SquareRoot(offset):
                block = max(math.isqrt(n), 1)
                return i // block == j // block or j % block == offset
            case PowersOfTwo(most):
                return i - j in {0, *(2**k for k in range(20) if 2**k <= most)}
            case Coin(radius, seed):
                coin = ((i * 7919 + j * 104729 + seed * 1299709) % 1009) % 2 == 0
                return coin and abs(i - j) <= radius
            case Tree(children):
                return i == j or (i > 0 and j == (i - 1) // children)
            case Mirrored():
                return j >= i  # of Causal

    return np.array([[edge(i, j) for j in range(n)] for i in range(n)], bool).reshape(n, n)


PIECES = [
    SquareRoot(),
    SquareRoot(3),
    PowersOfTwo(),
    PowersOfTwo(16),
    Coin(20),
    Coin(90, seed=5),
    Mirrored(lb.Causal()),
    Tree(),
    Tree(5),
]
ids = [repr(piece) for piece in PIECES]


@pytest.mark.parametrize("piece", PIECES, ids=ids)
@pytest.mark.parametrize("n", [0, 1, 2, 63, 65, 150])
def test_masks_and_layouts_are_the_rule(piece, n):
    expected = by_loops(piece, n)
    assert (piece.mask(n, heads=2) == expected).all()
    for block in (None, 16, 50):
        layout = piece.layout(n, 2, block)
        assert (layout.dense() == expected).all()
        assert layout.edges() == 2 * expected.sum()
    rows = piece.layout(n, rows=(n // 3, n))
    assert (rows.dense()[0] == expected[n // 3 :]).all()


@pytest.mark.parametrize("piece", PIECES, ids=ids)
@pytest.mark.parametrize(
    "other",
    [
        lb.Causal(),
        lb.Window(3, 2),
        lb.GlobalTokens([0, -1]),
        lb.bigbird(16),
        lb.LegacyBigBird("huggingface_eval", 8, 1, full_up_to=0),
        SquareRoot(1),
    ],
    ids=repr,
)
def test_combined_with_others(piece, other):
    n, own = 100, by_loops(piece, 100)
    counts = other.counts(n, 2)
    for combined, expected in (
        (piece | other, np.maximum(counts, own)),
        (piece & other, np.minimum(counts, own)),
    ):
        if piece == other:
            continue
        assert (combined.counts(n, 2) == expected).all()
        assert (combined.layout(n, 2).dense() == expected).all()


@pytest.mark.parametrize("piece", PIECES, ids=ids)
@pytest.mark.parametrize("impl", ["reference", "gather", "native"])
def test_every_implementation_runs_it(piece, impl):
    n = 90
    q, k, v = torch.randn(3, 1, 2, n, 8, generator=torch.Generator().manual_seed(0)).unbind()
    mask = torch.from_numpy(by_loops(piece, n))
    seen = mask.any(1)
    dense = torch.nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), mask
    )
    found = lb.attention(q, k, v, piece, impl=impl).double()
    torch.testing.assert_close(found[:, :, seen], dense[:, :, seen], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("piece", PIECES, ids=ids)
def test_text_forms(piece):
    assert lb.Graph.from_json(piece.to_json()) == piece
    assert as_graph(repr(piece)) == piece
    assert pickle.loads(pickle.dumps(piece)) == piece
    assert copy.deepcopy(piece | lb.Window(1)) == piece | lb.Window(1)
    assert hash(lb.Graph.from_key(piece.key)) == hash(piece)
    assert len({piece, lb.Graph.from_json(piece.to_json()), lb.Window(1)}) == 2


def test_expressions_name_it():
    assert as_graph("PowersOfTwo(16) & Window(8)") == PowersOfTwo(16) & lb.Window(8)
    assert as_graph("Mirrored(Window(8) | SquareRoot)").graph == lb.Window(8) | SquareRoot()
    with pytest.raises(ValueError, match=r"Did you mean PowersOfTwo\?"):
        as_graph("PowerOfTwo(16)")
    with pytest.raises(ValueError, match=r"PowersOfTwo has no argument .*three"):
        as_graph("PowersOfTwo(three=3)")


def test_equality_and_fields_are_plain():
    @dataclass(frozen=True)
    class Offsets(lb.Graph):
        offsets: tuple[int, ...]

        def edge(self, i, j, n):
            return np.isin(i - j, self.offsets)

    piece = Offsets([np.int64(0), 3])  # type: ignore[arg-type]
    assert piece.offsets == (0, 3)
    assert piece == Offsets((0, 3)) == lb.Graph.from_json(piece.to_json())
    assert repr(piece) == "Offsets(offsets=(0, 3))"
    assert (piece.mask(5)[0] == np.eye(5, dtype=bool) | np.eye(5, k=-3, dtype=bool)).all()
    with pytest.raises(TypeError, match=r"a field of a graph is a number, text, .* received \{0"):
        Offsets({0, 3})  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        piece.offsets = ()  # type: ignore[misc]


def test_reseed_shifts_a_field_called_seed():
    assert Coin(4, seed=1).reseed(2) == Coin(4, seed=3)
    assert (Coin(4) | lb.Window(1)).reseed(5) == Coin(4, seed=5) | lb.Window(1)
    assert Mirrored(Coin(4)).reseed(5) == Mirrored(Coin(4, seed=5))
    assert SquareRoot(3).reseed(5) == SquareRoot(3)


def test_a_piece_with_spans_is_laid_out_at_a_million_tokens():
    layout = PowersOfTwo(2**19).layout(1_000_000)
    assert layout.entries < 700_000
    assert len(layout.masks) < 50
    assert layout.edges() == sum(1_000_000 - back for back in (0, *(2**k for k in range(20))))


def test_a_rule_that_could_be_anywhere_is_refused_where_it_would_take_hours():
    with pytest.raises(
        ValueError, match=r"SquareRoot\(offset=0\) would be evaluated .* define its re"
    ):
        SquareRoot().layout(1_000_000)
    sparse = (SquareRoot() & lb.Window(2)).layout(1_000_000)
    assert sparse.entries < 50_000


def test_streaming():
    piece = PowersOfTwo(16)
    found = stream(piece | lb.GlobalTokens([0]) & lb.Causal())
    assert (found.reach, found.sinks) == (16, 1)
    n = 60
    at = torch.arange(n)
    expected = by_loops(piece, n)
    expected[:, 0] = True
    assert (found.sees(at[:, None], at).numpy() == expected).all()
    with pytest.raises(
        ValueError, match=r"SquareRoot\(offset=0\) is not the same .* leave it out"
    ):
        stream(SquareRoot() & lb.Causal())
    with pytest.raises(ValueError, match=r"take the intersection of the graph with Causal"):
        stream(Ahead())
    assert stream(Ahead() & lb.Causal()).reach == 3


@dataclass(frozen=True)
class Ahead(lb.Graph):
    streams = True

    def edge(self, i, j, n):
        return abs(i - j) <= 3

    def reach(self, n):
        return Reach(3, 3)


def test_it_is_drawn_in_a_colour_of_its_own():
    drawn = picture(PowersOfTwo(16) | lb.Window(2), 50)
    assert list(drawn.layers) == ["window", "PowersOfTwo"]
    assert (drawn.layers["PowersOfTwo"] == by_loops(PowersOfTwo(16), 50)).all()
    assert len(set(drawn.colours.values())) == 2
    assert list(picture(PowersOfTwo(16) & lb.GlobalTokens([0]), 50).layers) == ["PowersOfTwo"]

    @dataclass(frozen=True)
    class Named(Ahead):
        kind = "global"

    assert list(picture(Named(), 50).layers) == ["global"]


def test_names_that_are_taken():
    with pytest.raises(TypeError, match=r"already is a piece called Window, in longbird"):

        @dataclass(frozen=True)
        class Window(lb.Graph):
            pass

    assert as_graph("Window(3)") == lb.Window(3)

    def again():
        @dataclass(frozen=True)
        class Again(lb.Graph):
            def edge(self, i, j, n):
                return i == j

        return Again()

    assert again().to_json() == again().to_json()  # a cell of a notebook that is run twice


def test_mistakes_say_what_to_do():
    @dataclass(frozen=True)
    class Unfinished(lb.Graph):
        step: int

        def __post_init__(self):
            pass

        def edge(self, i, j, n):
            return i % self.step == 0

    with pytest.raises(AttributeError, match=r"Unfinished.__post_init__ has to end with super"):
        Unfinished(3) | lb.Window(1)

    @dataclass(frozen=True)
    class Numbers(lb.Graph):
        def edge(self, i, j, n):
            return (i - j) % 3

    with pytest.raises(TypeError, match=r"edge of Numbers must give bools, received int64"):
        Numbers().mask(5)

    @dataclass(frozen=True)
    class Clash(lb.Graph):
        reach: int = 3  # type: ignore[assignment]

    with pytest.raises(TypeError, match=r"Clash has a field called reach, which means something"):
        Clash()

    @dataclass(frozen=True)
    class Rule(lb.Graph):
        pass

    with pytest.raises(TypeError, match=r"Rule is not defined by a rule .* edge\(self, i, j, n\)"):
        Rule().mask(5)

    class Plain(lb.Graph):
        def edge(self, i, j, n):
            return i == j

    with pytest.raises(AttributeError, match=r"Plain is not a dataclass: write @dataclass"):
        Plain().to_json()

    @dataclass
    class Changing(lb.Graph):
        step: int

    with pytest.raises(TypeError, match=r"Changing can be changed: use @dataclass\(frozen=True\)"):
        Changing(3)

    @dataclass(frozen=True)
    class Flat(Ahead):
        def spans(self, first, last, n):
            return first[:, 0], last[:, 0]

    with pytest.raises(TypeError, match=r"spans of Flat must give integers of the shape"):
        Flat().layout(100)


def test_spans_of_one_array():
    @dataclass(frozen=True)
    class Single(lb.Graph):
        def edge(self, i, j, n):
            return i == j

        def spans(self, first, last, n):
            return first[:, None]

    with pytest.raises(TypeError, match="spans of Single must give two arrays"):
        Single().layout(100)


@pytest.mark.slow  # a process
def test_another_process_finds_the_class_where_it_was_defined(tmp_path):
    (tmp_path / "own_pieces.py").write_text(
        textwrap.dedent(
            """
            from dataclasses import dataclass
            import longbird as lb

            @dataclass(frozen=True)
            class Diagonal(lb.Graph):
                shift: int

                def edge(self, i, j, n):
                    return i - j == self.shift
            """
        )
    )

    def run(code: str) -> str:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        "import pickle, longbird as lb; from own_pieces import Diagonal; "
        "g = lb.PerHead([Diagonal(1), lb.Window(3) & Diagonal(2)]); "
        "open('p', 'wb').write(pickle.dumps(g)); open('j', 'w').write(g.to_json())"
    )
    found = run("import pickle; print(repr(pickle.load(open('p', 'rb'))))")
    assert found.strip() == (
        "PerHead([Diagonal(shift=1), Diagonal(shift=2) & Window(radius=3, dilation=1)])"
    )
    message = run(
        "import longbird as lb\n"
        "try:\n    lb.Graph.from_json(open('j').read())\n"
        "except ValueError as error:\n    print(error)"
    )
    assert "unknown graph type 'Diagonal'" in message
    assert "once the module that defines them is imported" in message
    run("import own_pieces, longbird as lb; lb.Graph.from_json(open('j').read()).mask(5, 2)")


def test_a_piece_that_is_defined_again_has_its_new_rule(impl):
    """As when the cell of a notebook is run again."""

    def defined(shift: int) -> type[lb.Graph]:
        @dataclass(frozen=True)
        class DefinedAgain(lb.Graph):
            width: int = 3

            def edge(self, i, j, n):
                return abs(i - j - shift) <= self.width

        return DefinedAgain

    q, k, v = torch.randn(3, 1, 2, 90, 8, generator=torch.Generator().manual_seed(0)).unbind()
    old = defined(0)()
    before = lb.attention(q, k, v, old, impl=impl)
    new = defined(20)()
    for graph in (new, "DefinedAgain()", lb.Full() & new, lb.Graph.from_json(new.to_json())):
        out = lb.attention(q, k, v, graph, impl=impl)
        torch.testing.assert_close(out, lb.attention(q, k, v, new, impl="reference"))
    assert old != new
    assert (old | lb.Window(1)) != (new | lb.Window(1))
    assert torch.equal(lb.attention(q, k, v, old, impl=impl), before)


def test_the_rule_of_another_piece_is_not_changed():
    with pytest.raises(TypeError, match="changes the rule of Window"):

        @dataclass(frozen=True)
        class Wider(lb.Window):
            def edge(self, i, j, n):
                return super().edge(i, j, n) | (j == 80)


@pytest.mark.parametrize("fact", [{"period": 0}, {"period": "a"}, {"tile_size": 0}])
def test_facts_are_checked(fact):
    class Odd(lb.Graph):
        def edge(self, i, j, n):
            return abs(i - j) < 3

    for name, value in fact.items():
        setattr(Odd, name, value)
    with pytest.raises((TypeError, ValueError), match=f"Odd {next(iter(fact))} must be"):
        dataclass(frozen=True)(Odd)()
