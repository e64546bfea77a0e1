"""Pictures of graphs: a row for each query, a column for each key, a colour for each kind of edge.

A picture is computed from the tiles of the layout, in time proportional to the tiles and memory
proportional to the pixels. If a layout would take too long, a graph that is defined by a rule is
sampled instead.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from rich.console import Console

from longbird.analysis.rendering import COLOURS, Picture
from longbird.core.graph.arguments import integer
from longbird.core.graph.base import Graph
from longbird.core.graph.combinations import Intersection, Union
from longbird.core.graph.globals import GlobalPiece
from longbird.core.graph.random import below
from longbird.core.graph.rules import Positions, edges_between, spans_of_tiles
from longbird.core.layout.compile import pieces as all_pieces
from longbird.core.layout.layout import Layout, estimate
from longbird.core.layout.tiles import ranges, unpack
from longbird.core.layout.tiling import Tiling
from longbird.core.machine import in_words, many
from longbird.errors import InvalidValueError

# Half the width of a saved picture, so that no line is lost between two of its pixels.
MOST_PIXELS = 512
NOTEBOOK_PIXELS = 160
# Maximum width in characters: it fits into 80 columns, and half as many lines fit most screens.
WIDEST = 72
USUAL_TOKENS = 1024


# Number of edges that are unpacked at a time.
CHUNK = 1 << 22
# Maximum number of edges that are unpacked for a picture: a few seconds of work if the graph could
# be sampled instead, and half a minute if it could not.
WORK_BEFORE_SAMPLING = 1 << 28
MOST_WORK = 1 << 31
# Number of queries sampled in a row of pixels, and of keys of one query sampled in a pixel.
SAMPLES = 4
# If a smaller share of the sampled pairs are edges, most pixels would be wrong.
FEWEST_HITS = 1 / 64


def picture(
    graph: Graph,
    n: int,
    *,
    heads: int = 1,
    head: int = 0,
    pixels: int = MOST_PIXELS,
    name: str | None = None,
) -> Picture:
    """Return the adjacency picture of one head of a graph over n tokens.

    Args:
        graph: Graph to draw. The pieces of a union have the colours of their kinds.
        n: Number of tokens, at least 1.
        heads: Number of heads of the layout.
        head: Head to draw.
        pixels: Maximum number of pixels per side; at most one for each token.
        name: Title; by default the expression of the graph.

    Raises:
        ValueError: An argument is out of range, or drawing would take too long.

    Examples:
        >>> from longbird.core.graph import Causal, GlobalTokens, Window
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
    n, heads = integer(n, "n of a picture", least=1), integer(heads, "heads", least=1)
    if integer(head, "head") >= heads:
        raise InvalidValueError(
            f"head must be less than the number of heads ({heads}), received {head}"
        )
    pixels = min(pixels, n)
    title = name or repr(graph)
    whole, of_head = graph.at(n), graph.at(n).for_head(head)
    parts = pieces(of_head)
    by_rule = all(type(piece).edge is not Graph.edge for piece in all_pieces(of_head))
    if _fits(whole, n, heads, pixels, by_rule):
        shares = [coverage(part.layout(n, heads), head, pixels) for part in parts]
        line = statistics(whole.layout(n, heads))
    else:
        shares = [sampled(part, n, pixels) for part in parts]
        line = _guessed(of_head, n, heads, pixels)
    found: dict[str, npt.NDArray[np.float64]] = {}
    for part, share in zip(parts, shares, strict=True):
        kind = kind_of(part)
        found[kind] = np.maximum(found[kind], share) if kind in found else share
    return Picture((title, line), n, {kind: found[kind] for kind in _in_order(found)})


def show(graph: Graph, n: int | None = None, heads: int | None = None, head: int = 0) -> None:
    """Draw a graph as `Graph.show` documents: as a picture in notebooks, else as characters."""
    n = max(USUAL_TOKENS, graph.least_tokens) if n is None else n
    heads = graph.least_heads if heads is None else heads
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if hasattr(shell, "kernel"):
        from IPython.display import display  # pyright: ignore[reportMissingImports]

        display(picture(graph, n, heads=heads, head=head, pixels=NOTEBOOK_PIXELS))
        return
    console = Console()
    drawn = picture(graph, n, heads=heads, head=head, pixels=pixels_across(console))
    print_picture(console, drawn)


def pixels_across(console: Console) -> int:
    """Return the pixels in a line of a terminal: two per character, or one in plain ASCII."""
    return min(console.width, WIDEST) * (1 if console.options.ascii_only else 2)


def print_picture(console: Console, drawn: Picture) -> None:
    """Print a picture of `pixels_across` with its title and its legend."""
    ascii_only = console.options.ascii_only
    console.print(*drawn.title, sep="\n", highlight=False, markup=False)
    console.print(drawn.text(ascii_only=ascii_only), end="")
    console.print(drawn.legend(ascii_only=ascii_only))


def notebook_picture(graph: Graph) -> str | None:
    """Return a graph as SVG for a notebook, or None if it cannot be drawn."""
    try:
        n = max(USUAL_TOKENS, graph.least_tokens)
        return picture(graph, n, heads=graph.least_heads, pixels=NOTEBOOK_PIXELS)._repr_svg_()
    except Exception:  # showing a graph in a notebook must never fail
        return None


def pieces(graph: Graph) -> list[Graph]:
    """The pieces of a union, also of one that is cut by an intersection; else the graph itself.

    Examples:
        >>> from longbird.core.graph import Causal, GlobalTokens, Window
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


def kind_of(graph: Graph) -> str:
    """What the edges of a graph are called: of several kinds, the last of the legend."""
    kinds = {piece.kind or type(piece).__name__ for piece in all_pieces(graph)}
    return _in_order(kinds)[-1]


def _in_order(kinds: Iterable[str]) -> list[str]:
    known = list(COLOURS)
    return sorted(kinds, key=lambda kind: (known.index(kind) if kind in known else 99, kind))


def statistics(layout: Layout) -> str:
    """Edges, density and tiles of a layout, in one line."""
    parts = [
        _counted(layout.queries.tokens, "token"),
        *([_counted(layout.heads, "head")] if layout.heads > 1 else []),
        _counted(layout.edges(), "edge"),
        f"density {100 * layout.density:.3g}%",
        f"{_counted(layout.entries, 'tile')} of {layout.size} x {layout.size}",
    ]
    if len(layout.global_tokens):
        parts.append(_counted(len(layout.global_tokens), "global token"))
    return ", ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# From tiles.


def _fits(graph: Graph, n: int, heads: int, pixels: int, by_rule: bool) -> bool:
    """Return whether to draw from the layout; raise a ValueError if nothing else is possible."""
    tiles, size, needed = estimate(graph, n, heads)
    cut = min(1.0, 2 * size * pixels / n)  # share of tiles that lie in several pixels
    work = tiles * (64 + cut * size**2) + 64 * n
    if by_rule:
        return work <= WORK_BEFORE_SAMPLING
    if work > MOST_WORK:
        raise InvalidValueError(
            f"a picture of {graph!r:.200} over {n:,} tokens needs its layout, which would have "
            f"about {many(tiles)} tiles and take {in_words(needed)}; draw fewer tokens"
        )
    return True


def coverage(layout: Layout, head: int, pixels: int) -> npt.NDArray[np.float64]:
    """Return the share of pairs under each pixel that are edges: float [pixels, pixels]."""
    n = layout.keys.tokens
    is_global = np.zeros(n, bool)
    is_global[layout.global_tokens] = True
    pointers = layout.row_ptr[head if len(layout.row_ptr) > 1 else 0]
    entries = slice(pointers[0], pointers[-1])
    rows = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
    columns, mask_ids = layout.columns[entries], layout.mask_ids[entries]
    edges = np.zeros(pixels * pixels)

    # A tile within one pixel adds the number of its edges to it.
    (row_pixel, row_simple), (column_pixel, column_simple) = (
        _simple(tiling, is_global, n, pixels) for tiling in (layout.queries, layout.keys)
    )
    row_length, column_length = layout.queries.lengths[rows], layout.keys.lengths[columns]
    whole = np.minimum(row_length, column_length) == layout.size
    simple = row_simple[rows] & column_simple[columns] & (whole | (mask_ids < 0))
    inside = unpack(layout.masks, layout.size).sum(axis=(1, 2))
    weights = np.where(mask_ids < 0, row_length * column_length, np.append(inside, 0)[mask_ids])
    index = row_pixel[rows] * pixels + column_pixel[columns]
    edges += np.bincount(index[simple], weights[simple], minlength=pixels * pixels)

    # The edges of other tiles are added one by one.
    left = np.flatnonzero(~simple)
    (query_token, query_exists), (key_token, key_exists) = layout.queries.slots, layout.keys.slots
    step = max(1, CHUNK // layout.size**2)
    for start in range(0, len(left), step):
        chunk = left[start : start + step]
        i, j = query_token[rows[chunk]], key_token[columns[chunk]]
        counted = (query_exists[rows[chunk]] & ~is_global[i])[:, None, :]
        counted = counted & (key_exists[columns[chunk]] & ~is_global[j])[:, :, None]
        masked = np.flatnonzero(mask_ids[chunk] >= 0)
        counted[masked] &= unpack(layout.masks[mask_ids[chunk[masked]]], layout.size)
        index = (i * pixels // n)[:, None, :] * pixels + (j * pixels // n)[:, :, None]
        edges += np.bincount(index[counted], minlength=pixels * pixels)

    tokens = np.diff(_pixel_starts(n, pixels))
    globals_ = np.bincount(layout.global_tokens.astype(np.int64) * pixels // n, minlength=pixels)
    others = tokens - globals_
    pairs = np.outer(tokens, tokens)
    global_pairs = pairs - np.outer(others, others)
    return np.minimum(1.0, (edges.reshape(pixels, pixels) + global_pairs) / pairs)


def _simple(
    tiling: Tiling, is_global: npt.NDArray[np.bool_], n: int, pixels: int
) -> tuple[Positions, npt.NDArray[np.bool_]]:
    """Return the pixel of each tile, and whether it has all its tokens, none of them global."""
    pixel = tiling.first * pixels // n
    marked = is_global if tiling.order is None else is_global[tiling.order]
    marked = np.add.reduceat(marked, tiling.starts[:-1], dtype=np.int64)
    return pixel, (pixel == tiling.last * pixels // n) & (marked == 0)


def _pixel_starts(n: int, pixels: int) -> Positions:
    """Return the first token of each pixel, and n."""
    return -(-np.arange(pixels + 1) * n // pixels)


# By samples.


def _breaks(graph: Graph, n: int) -> Positions:
    """Return where queries begin to see other keys than those before them, if that is rare."""
    if isinstance(graph, GlobalPiece):
        low, high = graph.flagged(n)
        return np.unique(np.hstack([low, high + 1]))
    return np.unique(np.concatenate([_breaks(part, n) for part in graph.combines] or [[0]]))


def sampled(graph: Graph, n: int, pixels: int) -> npt.NDArray[np.float64]:
    """Estimate `coverage` from a few queries in each row of pixels and a few of their keys.

    The rule is only evaluated for keys within the spans of a query, so that a thin line is found
    in a long sequence.
    """
    starts = _pixel_starts(n, pixels)
    rows = np.union1d(starts, np.clip(_breaks(graph, n), 0, n))
    query, _, query_weight = _samples(rows[:-1], np.diff(rows))
    # If a query has too many spans, those of a whole tile may be fewer.
    for width in (1, 128):
        low, _ = spans_of_tiles(graph, query[:1, None], query[:1, None] + width - 1, n)
        if low.size * len(query) <= CHUNK:
            break
    else:
        raise InvalidValueError(_too_thin(graph, n))
    edges = np.zeros(pixels * pixels)
    hits = asks = 0
    for part in np.array_split(np.arange(len(query)), max(1, 8 * len(query) * pixels // CHUNK)):
        i = query[part, None]
        low, high = _apart(*spans_of_tiles(graph, i, i + width - 1, n), n)
        # Spans are cut at the borders of pixels.
        first, last = low * pixels // n, np.maximum(high, low) * pixels // n
        length = np.where(low <= high, last - first + 1, 0)
        column = ranges(first, length)
        span = np.repeat(np.arange(low.size), length.reshape(-1))
        begin = np.maximum(low.reshape(-1)[span], starts[column])
        end = np.minimum(high.reshape(-1)[span] + 1, starts[column + 1])
        key, cut, key_weight = _samples(begin, end - begin)
        asked = part[span // low.shape[1]][cut]
        seen = edges_between(graph, query[asked], key, n)
        index = (query[asked] * pixels // n) * pixels + column[cut]
        weights = (query_weight[asked] * key_weight)[seen]
        edges += np.bincount(index[seen], weights, minlength=pixels * pixels)
        hits, asks = hits + int(seen.sum()), asks + len(seen)
    if hits < asks * FEWEST_HITS:
        raise InvalidValueError(_too_thin(graph, n))
    tokens = np.diff(starts).astype(np.float64)
    return np.minimum(1.0, edges.reshape(pixels, pixels) / np.outer(tokens, tokens))


def _too_thin(graph: Graph, n: int) -> str:
    return (
        f"{graph!r:.200} is too thin for a picture of {n:,} tokens: where it might have edges, "
        "samples find too few; draw fewer tokens"
    )


def _samples(
    start: Positions, length: Positions
) -> tuple[Positions, Positions, npt.NDArray[np.float64]]:
    """Return a few numbers of each range, their range, and how many numbers each represents.

    One from each of `SAMPLES` equal parts; where in the part is a hash, because evenly spaced ones
    would meet all edges of a dilated window or none.
    """
    count = np.minimum(length, SAMPLES)
    number = ranges(0 * count, count)
    which = np.repeat(np.arange(len(start)), count)
    begin = number * length[which] // count[which]
    end = (number + 1) * length[which] // count[which]
    at = start[which] + begin + below(end - begin, which, number)
    return at, which, length[which] / count[which]


def _apart(low: Positions, high: Positions, n: int) -> tuple[Positions, Positions]:
    """Return the spans within the sequence; those of a row no longer overlap."""
    low, high = np.maximum(low, 0), np.minimum(high, n - 1)
    order = np.argsort(low, axis=1)
    low, high = np.take_along_axis(low, order, 1), np.take_along_axis(high, order, 1)
    before = np.maximum.accumulate(high, axis=1)[:, :-1] + 1
    low[:, 1:] = np.maximum(low[:, 1:], before)
    return low, high


def _guessed(graph: Graph, n: int, heads: int, pixels: int) -> str:
    """Estimate `statistics` from samples."""
    tokens = np.diff(_pixel_starts(n, pixels)).astype(np.float64)
    edges = float((sampled(graph, n, pixels) * np.outer(tokens, tokens)).sum())
    tiles, size, _ = estimate(graph, n)
    parts = [
        _counted(n, "token"),
        *([_counted(heads, "head")] if heads > 1 else []),
        f"about {edges:.3g} edges{' a head' if heads > 1 else ''}",
        f"density about {100 * edges / n / n:.3g}%",
        f"about {tiles:.3g} tiles of {size} x {size}",
    ]
    return ", ".join(parts)
