from __future__ import annotations

import re
import subprocess
import sys
import time
import types
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import longbird as lb
from longbird.analysis.drawing import (
    COLOURS,
    Picture,
    coverage,
    picture,
    pieces,
    sampled,
)
from longbird.analysis.rendering import FAINTEST
from longbird.core.graph import as_graph

GRAPHS = [
    lb.Full(),
    lb.Causal(),
    lb.Window(3),
    lb.Window(3, dilation=5),
    lb.GlobalTokens([0, 7, -1]),
    lb.Window(2) | lb.GlobalTokens([3]),
    lb.bigbird(block=16),
    lb.bigbird(block=7) & lb.Causal(),
    lb.Window(2, dilation=3) | lb.GlobalTokens([5]) | lb.RandomBlocks(2, block=8),
    lb.ErdosRenyi(0.05),
    lb.Edges([(0, 1), (5, 100)]),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
@pytest.mark.parametrize("head", [0, 1])
def test_with_a_pixel_for_each_token_the_picture_is_the_mask(graph: lb.Graph, head: int) -> None:
    n = 130
    shares = coverage(graph.layout(n, heads=2), head, n)
    np.testing.assert_array_equal(shares, graph.mask(n, heads=2)[head])


@pytest.mark.parametrize("graph", GRAPHS, ids=repr)
def test_a_pixel_of_many_tokens_is_their_mean(graph: lb.Graph) -> None:
    n, pixels = 120, 24
    shares = coverage(graph.layout(n), 0, pixels)
    mean = graph.mask(n)[0].reshape(pixels, 5, pixels, 5).mean(axis=(1, 3))
    np.testing.assert_allclose(shares, mean, atol=1e-12)


def test_the_layers_of_a_picture_are_the_graph() -> None:
    graph = lb.bigbird(block=16) & lb.Causal()
    drawn = picture(graph, 100)
    assert list(drawn.layers) == ["window", "random", "global"]
    np.testing.assert_array_equal(
        np.maximum.reduce(list(drawn.layers.values())), graph.mask(100)[0]
    )


def test_pieces_of_nested_unions_are_found() -> None:
    a, b, c, d = lb.Window(1), lb.Window(2), lb.GlobalTokens([0]), lb.Causal()
    cut = ((a | b) & d) | c
    assert set(pieces(cut)) == {a & d, b & d, c}
    assert set(pieces((a | c) & (b | d))) == {a & b, a & d, c & b, c & d}


def test_a_long_sequence_is_drawn_from_its_tiles() -> None:
    drawn = picture(lb.bigbird(), 300_000, pixels=64)
    assert all(layer.shape == (64, 64) for layer in drawn.layers.values())
    assert drawn.title[1].startswith("300,000 tokens, ")


def test_text_has_a_dot_for_each_edge() -> None:
    text = picture(lb.Window(0), 8).text().plain
    assert text == "⠑⢄⠀⠀\n⠀⠀⠑⢄\n"


def test_ascii_text_for_terminals_without_braille() -> None:
    assert picture(lb.Window(0), 4).text(ascii_only=True).plain == "##..\n..##\n"


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_save(tmp_path, ending: str, magic: bytes) -> None:
    path = tmp_path / f"picture.{ending}"
    picture(lb.bigbird(block=16), 200, name="bigbird").save(path)
    assert path.read_bytes().startswith(magic)


def test_bad_arguments_say_what_is_wrong(tmp_path) -> None:
    with pytest.raises(ValueError, match=r"picture\.jpeg.*expected a name that ends in \.png"):
        picture(lb.Full(), 4).save(tmp_path / "picture.jpeg")
    with pytest.raises(ValueError, match=r"less than the number of heads \(2\), received 2"):
        picture(lb.Full(), 4, heads=2, head=2)
    with pytest.raises(ValueError, match="n of a picture must be an integer >= 1, received 0"):
        picture(lb.Full(), 0)


def test_every_kind_has_a_colour() -> None:
    everything = lb.bigbird() | lb.Edges([(0, 1)]) | lb.ErdosRenyi(0.5)
    assert set(picture(everything, 100).layers) < set(COLOURS)


REGULAR = [
    lb.Full(),
    lb.Causal(),
    lb.Window(900),
    lb.Window(30, dilation=7),
    lb.BlockWindow(5, 84),
    lb.GlobalTokens([0, 700, 701, -1]),
    lb.GlobalBlocks(2, 1, 100),
    lb.GlobalTokens([3, 5000]) & lb.Causal(),
    (lb.Window(100) | lb.GlobalBlocks(1, 1)) & lb.Causal(),
    lb.Window(100) | lb.Window(20) | lb.GlobalTokens([9]),
]


@pytest.mark.parametrize("graph", REGULAR, ids=repr)
def test_samples_are_close_to_the_layout(graph: lb.Graph) -> None:
    n, pixels = 9001, 30
    exact, guessed = coverage(graph.layout(n), 0, pixels), sampled(graph, n, pixels)
    assert ((exact > 0) == (guessed > 0)).mean() > 0.97
    assert guessed.sum() == pytest.approx(exact.sum(), rel=0.05)
    assert np.abs(exact - guessed).max() < 0.5


@pytest.mark.parametrize("n", [1_000_000, 2_000_000_000])
@pytest.mark.parametrize(
    ("text", "density"),
    [
        ("Full", 1.0),
        ("Causal", 0.5),
        ("Window(100000)", None),
        ("longformer(512, dilation=8)", None),
        ("GlobalTokens([0, -1, 77])", None),
        ("(Window(64) | GlobalBlocks(1, 0)) & Causal", None),
        ("PerHead([Causal])", 0.5),
        ("ByLength({512: Full}, otherwise=Causal)", 0.5),
    ],
)
def test_any_length_is_drawn_or_refused_within_seconds(text, density, n) -> None:
    start = time.perf_counter()
    drawn = picture(as_graph(text), n, pixels=64)
    assert time.perf_counter() - start < 10
    assert drawn.title[1].startswith(f"{n:,} tokens, ")
    assert all((layer > 0).any() for layer in drawn.layers.values())
    if density is not None:
        assert sum(layer.mean() for layer in drawn.layers.values()) == pytest.approx(density, 0.01)


@pytest.mark.parametrize(
    "text", ["bigbird", "ErdosRenyi(0.1)", "WattsStrogatz(4, 0.1)", "LegacyBigBird('google')"]
)
def test_what_cannot_be_sampled_is_refused_with_its_size(text) -> None:
    start = time.perf_counter()
    with pytest.raises(
        ValueError, match=r"would have about [\d.]+ \w+illion tiles and take [\d.]+ [GTP]B"
    ):
        picture(as_graph(text), 2_000_000_000)
    with pytest.raises(ValueError, match="too thin for a picture of 2,000,000,000 tokens"):
        picture(lb.Window(100_000, dilation=20_000), 2_000_000_000, pixels=64)
    assert time.perf_counter() - start < 5


def test_show_prints_text_in_a_terminal(capsys) -> None:
    (lb.Window(2) | lb.GlobalTokens([0])).show(40)
    printed = capsys.readouterr().out
    assert "GlobalTokens(positions=(0,)) | Window(radius=2, dilation=1)" in printed
    assert "40 tokens, " in printed
    assert "global" in printed
    lb.PerHead(["Window(1)", "Full"]).show(head=1)
    assert "1,024 tokens, 2 heads" in capsys.readouterr().out
    lb.Edges([(0, 3000)]).show()
    assert "3,001 tokens, 1 edge" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"less than the number of heads \(1\)"):
        lb.Full().show(10, head=3)


def test_show_displays_a_picture_in_a_notebook(monkeypatch, capsys) -> None:
    shown: list[object] = []
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    display.display = shown.append
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    lb.Window(2).show(40)
    assert capsys.readouterr().out == ""
    assert isinstance(shown[0], Picture)
    assert repr(shown[0]).startswith("Window(radius=2, dilation=1)\n40 tokens, 194 edges")
    ElementTree.fromstring(shown[0]._repr_svg_())


@pytest.mark.parametrize("graph", [*GRAPHS, lb.PerHead(["Full", "Causal"])], ids=repr)
def test_a_notebook_shows_a_picture_of_every_graph(graph: lb.Graph) -> None:
    svg = graph._repr_svg_()
    assert svg is not None
    assert len(svg) < 300_000
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "".join(root.itertext()).count("■") >= 1


def test_the_runs_of_a_notebook_picture_are_its_pixels() -> None:
    drawn = picture(lb.Window(1) | lb.GlobalTokens([3]), 12)
    painted = np.zeros((12, 12), bool)
    for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)", drawn._repr_svg_()):
        painted[int(y), int(x) : int(x) + int(width)] = True
    np.testing.assert_array_equal(painted, (lb.Window(1) | lb.GlobalTokens([3])).mask(12)[0])


def test_a_notebook_falls_back_to_text() -> None:
    assert lb.Edges([(0, 2_000_000_000)])._repr_svg_() is None
    never = lb.LegacyBigBird("google", block=512, full_up_to=0)
    with pytest.raises(ValueError):
        never.layout(1024)
    assert never._repr_svg_() is None


def test_drawing_needs_matplotlib_only_to_save() -> None:
    script = (
        "import sys, longbird as lb; lb.bigbird()._repr_svg_(); lb.Window(3).show(20); "
        "assert not {'matplotlib', 'torch', 'IPython'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def colours_of(path, drawn: Picture) -> dict[str, int]:
    """How many pixels of a saved picture, its legend left out, are nearest to each colour."""
    image = np.asarray(Image.open(path).convert("RGB"), float)
    image = image[: int(0.93 * len(image))]
    names = list(drawn.layers)
    rgb = np.array([[int(drawn.colours[k][at : at + 2], 16) for at in (1, 3, 5)] for k in names])
    # Half of the way from white to the colour is enough to tell.
    faint = 255 - (255 - rgb) * FAINTEST
    found = {}
    for name, strong, weak in zip(names, rgb, faint, strict=True):
        way = (strong - weak).astype(float)
        along = np.clip(((image - weak) @ way) / (way @ way), 0, 1)
        distance = np.abs(image - (weak + along[..., None] * way)).max(axis=-1)
        found[name] = int((distance < 3).sum())
    return found


THIN = [
    ("Window(2) | GlobalTokens([0])", 8192),
    ("Window(2) | GlobalTokens([-1])", 8000),
    ("Causal | GlobalTokens([4001])", 8192),
    ("Full | Edges([(0, 5000), (4000, 1)])", 8192),
    ("Window(50) | GlobalTokens([7]) | Edges([(0, 5000), (1, 2)])", 5001),
    ("GlobalTokens([0, 64, 128, 192, 256, 320, 384]) | Window(1)", 512),
]


@pytest.mark.slow  # draws
@pytest.mark.parametrize(("text", "n"), THIN)
def test_every_kind_is_seen_in_a_saved_picture(tmp_path, text: str, n: int) -> None:
    drawn = picture(as_graph(text), n)
    drawn.save(tmp_path / "picture.png")
    seen = colours_of(tmp_path / "picture.png", drawn)
    assert min(seen.values()) > 100, seen


@pytest.mark.parametrize(("text", "n"), THIN)
def test_every_kind_is_seen_in_a_notebook_and_a_terminal(text: str, n: int) -> None:
    drawn = picture(as_graph(text), n, pixels=144)
    svg = drawn._repr_svg_()
    assert min(float(each) for each in re.findall('fill-opacity="([^"]*)"', svg)) >= FAINTEST
    styles = {str(span.style) for span in drawn.text().spans}
    for colour in drawn.colours.values():
        assert f'<path fill="{colour}"' in svg
        assert colour in styles


def test_a_denser_pixel_is_darker() -> None:
    shares = [0.0, 1e-6, 0.01, 0.2, 0.6, 1.0]
    cells = Picture(("", ""), 6, {"window": np.tile(shares, (6, 1))})._painted()
    brightness = cells[0].sum(axis=-1)
    assert brightness[0] == 3
    assert brightness[0] - brightness[1] > 0.5
    assert (np.diff(brightness) < -0.05).all()


def test_a_few_edges_are_large_dots_within_the_picture() -> None:
    _, opacity = picture(lb.Edges([(0, 5000), (2500, 2500)]), 5001, pixels=160)._cells()
    assert opacity[:3, -3:].min() == 1
    assert opacity[78:81, 78:81].min() == 1
    assert (opacity > 0).sum() == 18
    exact = picture(lb.Edges([(0, 50), (20, 7)]), 60)._cells()[1]
    assert (exact > 0).sum() == 2
