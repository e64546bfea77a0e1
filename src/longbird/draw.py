"""Pictures of graphs: queries down, keys across, a colour for each kind of edge.

A picture is computed from the tiles of the layout, so that it takes time in proportion to the
edges and memory in proportion to the pixels, however long the sequence is.
"""

from __future__ import annotations

import functools
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.text import Text

from longbird.graph.base import Graph, Intersection, Union
from longbird.graph.edges import Edges
from longbird.graph.globals import GlobalBlocks, GlobalTokens
from longbird.graph.legacy import LegacyBigBird
from longbird.graph.random import ErdosRenyi, RandomBlocks, WattsStrogatz
from longbird.layout.layout import Layout
from longbird.layout.tiling import Tiling

MOST_PIXELS = 1024

# Painted in this order, later over earlier. Colours that colour-blind eyes tell apart (Okabe-Ito).
COLOURS = {
    "window": "#0072b2",
    "random": "#e69f00",
    "legacy plan": "#e69f00",
    "edges": "#cc79a7",
    "global": "#009e73",
}

# Edges that are unpacked at a time.
CHUNK = 1 << 22


@dataclass(frozen=True)
class Picture:
    """One head of a graph, as what share of the pairs under each pixel are edges.

    Attributes:
        title: What is drawn, then edges, density and tiles.
        n: Tokens.
        layers: For each kind of edge (see `COLOURS`), in painting order, the shares: float
            [pixels, pixels] from 0 to 1, queries down and keys across.
    """

    title: tuple[str, str]
    n: int
    layers: dict[str, npt.NDArray[np.float64]]

    def save(self, path: str | Path) -> None:
        """Writes a PNG, SVG or PDF file, by the ending of its name."""
        # Loading matplotlib takes a second that only those who save a picture should wait.
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        if Path(path).suffix not in (".png", ".svg", ".pdf"):
            raise ValueError(
                f"received {str(path)!r} to write a picture to, expected a name that ends in "
                ".png, .svg or .pdf"
            )
        figure = Figure(figsize=(7, 7.8), layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(self._painted(), extent=(0, self.n, self.n, 0), interpolation="nearest")
        axes.set_title("\n".join([textwrap.shorten(self.title[0], 90), self.title[1]]), fontsize=9)
        axes.set_xlabel("key token")
        axes.set_ylabel("query token")
        patches = [Patch(facecolor=COLOURS[kind], label=kind) for kind in self.layers]
        figure.legend(handles=patches, loc="outside lower center", ncols=5, frameon=False)
        figure.savefig(path, dpi=160)

    def _painted(self) -> npt.NDArray[np.float64]:
        from matplotlib.colors import to_rgb

        painted = np.ones((*next(iter(self.layers.values())).shape, 3))
        for kind, shares in self.layers.items():
            # The root keeps a thin line visible when many tokens share a pixel.
            opacity = np.sqrt(shares)[..., None]
            painted = (1 - opacity) * painted + opacity * np.array(to_rgb(COLOURS[kind]))
        return painted

    def text(self, *, ascii_only: bool = False) -> Text:
        """The picture in characters: a dot is drawn where there is any edge.

        Colours tell the kinds apart where the terminal has them; without, the dots remain.

        Args:
            ascii_only: Draw with `#` instead of braille characters, four times as coarse.
        """
        kinds = list(self.layers)
        shares = np.stack([self.layers[kind] for kind in kinds])
        down, across = (2, 1) if ascii_only else (4, 2)
        shares = np.pad(
            shares,
            ((0, 0), (0, -shares.shape[1] % down), (0, -shares.shape[2] % across)),
        )
        cells = shares.reshape(
            len(kinds), shares.shape[1] // down, down, shares.shape[2] // across, across
        ).transpose(1, 3, 0, 2, 4)
        dots = (cells > 0).any(axis=2)
        # Of the kinds in a character, the one that is painted last, as in the saved picture.
        present = (cells > 0).any(axis=(3, 4))
        colour = len(kinds) - 1 - np.argmax(present[..., ::-1], axis=-1)
        drawn = Text()
        for row in range(len(dots)):
            for column in range(len(dots[row])):
                if ascii_only:
                    character = "#" if dots[row, column].any() else "."
                else:
                    character = chr(0x2800 + int((dots[row, column] * BRAILLE).sum()))
                style = COLOURS[kinds[colour[row, column]]] if dots[row, column].any() else ""
                drawn.append(character, style)
            drawn.append("\n")
        return drawn

    def legend(self, *, ascii_only: bool = False) -> Text:
        """The kinds of edges in their colours."""
        mark = "#" if ascii_only else "■"
        return Text("  ").join(Text(f"{mark} {kind}", COLOURS[kind]) for kind in self.layers)


# Which bit of a braille character is which dot.
BRAILLE = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


def picture(
    graph: Graph,
    n: int,
    *,
    heads: int = 1,
    head: int = 0,
    pixels: int = MOST_PIXELS,
    name: str | None = None,
) -> Picture:
    """The adjacency picture of one head of a graph over n tokens.

    Args:
        graph: What to draw. The pieces of a union get the colours of their kinds.
        n: Tokens, at least 1.
        heads: Heads that the graph is laid out for.
        head: The head to draw.
        pixels: Most pixels a side; a token has one if n is smaller.
        name: What to call the graph; by default as it is written.

    Examples:
        >>> from longbird.graph import Causal, GlobalTokens, Window
        >>> drawn = picture((Window(2) | GlobalTokens([0])) & Causal(), 12)
        >>> drawn.title[1]
        '12 tokens, 42 edges, density 29.2%, 1 tile of 64 x 64'
        >>> print(drawn.text(ascii_only=True), end="")
        #...........
        ####........
        #.####......
        #...####....
        #.....####..
        #.......####
    """
    if n < 1:
        raise ValueError(f"received n = {n}, expected at least 1 token to draw")
    if not 0 <= head < heads:
        raise ValueError(f"received head {head}, expected one of the {heads} heads, from 0 on")
    pixels = min(pixels, n)
    found: dict[str, npt.NDArray[np.float64]] = {}
    for piece in pieces(graph):
        shares = coverage(piece.layout(n, heads), head, pixels)
        kind = kind_of(piece)
        found[kind] = np.maximum(found[kind], shares) if kind in found else shares
    layers = {kind: found[kind] for kind in COLOURS if kind in found}
    return Picture((name or repr(graph), statistics(graph.layout(n, heads))), n, layers)


def pieces(graph: Graph) -> list[Graph]:
    """The pieces of a union, also of one that is cut by an intersection; else the graph itself.

    Examples:
        >>> from longbird.graph import Causal, GlobalTokens, Window
        >>> pieces((Window(2) | GlobalTokens([0])) & Causal())
        [Causal() & GlobalTokens(positions=(0,)), Causal() & Window(radius=2, dilation=1)]
    """
    if isinstance(graph, Union):
        return [piece for part in graph.parts for piece in pieces(part)]
    if isinstance(graph, Intersection):
        for number, part in enumerate(graph.parts):
            if isinstance(part, Union):
                others = graph.parts[:number] + graph.parts[number + 1 :]
                return [
                    small
                    for piece in part.parts
                    for small in pieces(functools.reduce(Graph.__and__, others, piece))
                ]
    return [graph]


def kind_of(piece: Graph) -> str:
    """Which of `COLOURS` a piece is drawn in."""
    match piece:
        case Union() | Intersection():
            kinds = {kind_of(part) for part in piece.parts}
            return next(kind for kind in reversed(COLOURS) if kind in kinds)
        case GlobalTokens() | GlobalBlocks():
            return "global"
        case RandomBlocks() | ErdosRenyi() | WattsStrogatz():
            return "random"
        case LegacyBigBird():
            return "legacy plan"
        case Edges():
            return "edges"
        case _:
            return "window"


def statistics(layout: Layout) -> str:
    """Edges, density and tiles of a layout, in one line."""

    def counted(number: int, what: str) -> str:
        return f"{number:,} {what}{'' if number == 1 else 's'}"

    parts = [
        counted(layout.queries.tokens, "token"),
        *([counted(layout.heads, "head")] if layout.heads > 1 else []),
        counted(layout.edges(), "edge"),
        f"density {100 * layout.density:.3g}%",
        f"{counted(layout.entries, 'tile')} of {layout.size} x {layout.size}",
    ]
    if len(layout.global_tokens):
        parts.append(counted(len(layout.global_tokens), "global token"))
    return ", ".join(parts)


def coverage(layout: Layout, head: int, pixels: int) -> npt.NDArray[np.float64]:
    """The share of the pairs under each pixel that are edges: float [pixels, pixels], 0 to 1."""
    n = layout.queries.tokens
    pixel_of = np.arange(n) * pixels // n
    is_global = np.zeros(n, bool)
    is_global[layout.global_tokens] = True
    query_pixels, query_counts = _tile_pixels(layout.queries, pixel_of, ~is_global)
    key_pixels, key_counts = _tile_pixels(layout.keys, pixel_of, ~is_global)

    pointers = layout.row_ptr[head if len(layout.row_ptr) > 1 else 0]
    rows = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
    columns = layout.columns[pointers[0] : pointers[-1]]
    mask_ids = layout.mask_ids[pointers[0] : pointers[-1]]

    edges = np.zeros(pixels * pixels)
    step = max(1, CHUNK // layout.size**2)
    for start in range(0, len(rows), step):
        chunk = slice(start, start + step)
        row, column, mask_id = rows[chunk], columns[chunk], mask_ids[chunk]
        weights = query_counts[row][:, None, :] * key_counts[column][:, :, None]
        weights = weights * _unpacked(layout, mask_id)
        index = query_pixels[row][:, None, :] * pixels + key_pixels[column][:, :, None]
        edges += np.bincount(index.ravel(), weights.ravel(), minlength=pixels * pixels)

    tokens = np.bincount(pixel_of, minlength=pixels)
    globals_ = np.bincount(pixel_of[is_global], minlength=pixels)
    others = tokens - globals_
    pairs = np.outer(tokens, tokens)
    global_pairs = pairs - np.outer(others, others)
    return np.minimum(1.0, (edges.reshape(pixels, pixels) + global_pairs) / pairs)


def _tile_pixels(
    tiling: Tiling, pixel_of: npt.NDArray[Any], counted: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The pixel of each token of each tile, [tiles, size], and 1 where it counts, else 0."""
    token, exists = tiling.slots
    return pixel_of[token], (exists & counted[token]).astype(np.float64)


def _unpacked(layout: Layout, mask_id: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """The edges of some entries: bool [entries, keys, queries]."""
    size = layout.size
    edges = np.ones((len(mask_id), size, size), bool)
    masked = np.flatnonzero(mask_id >= 0)
    if len(masked):
        bits = np.unpackbits(layout.masks[mask_id[masked]], axis=2, bitorder="little")
        edges[masked] = bits[:, :, :size]
    return edges
