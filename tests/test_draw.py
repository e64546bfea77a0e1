from __future__ import annotations

import numpy as np
import pytest

import longbird as lb
from longbird.draw import COLOURS, coverage, picture, pieces

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
    with pytest.raises(ValueError, match="received head 2, expected one of the 2 heads"):
        picture(lb.Full(), 4, heads=2, head=2)
    with pytest.raises(ValueError, match="received n = 0"):
        picture(lb.Full(), 0)


def test_every_kind_has_a_colour() -> None:
    everything = lb.bigbird() | lb.Edges([(0, 1)]) | lb.ErdosRenyi(0.5)
    assert set(picture(everything, 100).layers) < set(COLOURS)
