"""What graphs say of arguments that they cannot take, before any memory is taken."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

import longbird as lb
from longbird.core.graph import as_graph, edges

LONG = 5000 * "9"  # more digits than Python reads


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Window(radus=1)", r"Window has no argument 'radus' \(did you mean radius\?\)"),
        ("Window(1, dilatoin=2)", r"'dilatoin' \(did you mean dilation\?\); it takes \(radius, "),
        ("Full(x=1)", "Full has no argument 'x'; it takes none"),
        ("Window", r"missing a required argument: 'radius'; it takes \(radius"),
        ('{"type": "Full", "x": 1}', "JSON of Full is wrong: Full has no argument 'x'; it takes"),
        ('{"type": "Window", "radus": 1}', r"Window has no argument 'radus' \(did you mean radi"),
        ('{"type": "Window"}', "JSON of Window is wrong: Window: missing a required argument"),
        ('{"type": "Edges", "pair": []}', r"Edges has no argument 'pair' \(did you mean pairs"),
        ('{"type": "Union", "x": 1}', "Union has no argument 'x'"),
        (f"Window({LONG})", "^the graph has a number of thousands of digits$"),
        (f'{{"type": "Window", "radius": {LONG}}}', "^the graph has a number of thousands of"),
        ({"type": "Window", "radius": 10**5000}, "^the graph has a number of thousands of"),
        (f"Window(0x{5000 * 'f'})", "received <an integer of 20000 bits>"),
    ],
)
def test_wrong_arguments_are_named(text, message):
    with pytest.raises(ValueError, match=message) as raised:
        as_graph(text)
    assert "__init__" not in str(raised.value)
    assert "sys." not in str(raised.value)


@pytest.mark.parametrize("text", [300 * "x", 300 * "x" + "(", "-" + 300 * "x", f"{'x' * 300}(1)"])
def test_long_text_is_cut_inside_its_quotes(text):
    with pytest.raises(ValueError, match=r"^'[^']{60,80}' is not a graph[.:]"):
        as_graph(text)


def test_numbers_that_python_does_not_write_out():
    with pytest.raises(ValueError, match=r"radius must be .* <an integer of 16610 bits>"):
        lb.Window(10**5000)
    with pytest.raises(ValueError, match=r"Edges positions .* <an integer of 16610 bits>"):
        lb.Edges([(0, 10**5000)])


@pytest.mark.parametrize("positions", [range(10**9), itertools.count(), itertools.repeat(0)])
def test_too_many_global_tokens(positions, monkeypatch):
    monkeypatch.setattr("longbird.core.graph.globals.MOST_POSITIONS", 1000)
    assert len(lb.GlobalTokens(range(1000)).positions) == 1000
    with pytest.raises(ValueError, match="up to 1,000 positions, received more"):
        lb.GlobalTokens(positions)


def test_too_many_edges_of_an_iterator(monkeypatch):
    monkeypatch.setattr("longbird.core.graph.edges.available_bytes", lambda: 10 * edges.PAIR_BYTES)
    ten = [(i, 0) for i in range(10)]
    assert lb.Edges(iter(ten)) == lb.Edges(ten)
    for pairs in (itertools.repeat((0, 1)), range(10**9), iter([*ten, (10, 0)])):
        with pytest.raises(ValueError, match="more than 10 pairs"):
            lb.Edges(pairs)


@dataclass(frozen=True)
class WrongShape(lb.Graph):
    """Gives whatever it is told to."""

    what: str

    def edge(self, i, j, n):
        return {"few": np.ones(3, bool), "ragged": [[True], [True, False]]}[self.what]


@pytest.mark.parametrize("what", ["few", "ragged"])
@pytest.mark.parametrize("use", [lambda g: g.mask(10), lambda g: (g | lb.Window(1)).layout(100)])
def test_a_piece_of_a_wrong_shape_is_named(what, use):
    with pytest.raises(ValueError, match="edge of WrongShape must give a bool for each pair"):
        use(WrongShape(what))
