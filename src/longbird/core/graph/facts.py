"""Comparison of what a piece declares with its rule.

Layouts and decoders trust `reach`, `spans`, `period` and `streams`: if one of them is false, edges
are silently lost. Here, each is compared with the result of `edge`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import MOST_TOKENS
from longbird.core.graph.base import Graph
from longbird.core.graph.fields import fields_of, graphs_in
from longbird.core.graph.random import below
from longbird.core.graph.reach import Reach
from longbird.core.graph.rules import Positions, edges_between, spans_of_tiles

# Pairs of positions for which a rule is evaluated at a time: all pairs of 2,048 tokens.
MOST_PAIRS = 2**22
# Sizes of the tiles whose spans are checked, besides the size that the piece prefers.
TILE_SIZES = (1, 16, 64, 128)
# Multiple of the length up to which a streaming piece is checked.
LONGER = 4
# Exceptions that a rule may raise for a length that it is not made for.
REFUSED = (ValueError, IndexError)

Mask = npt.NDArray[np.bool_]


class FalseFact(NamedTuple):
    """A declaration of a piece that its rule contradicts."""

    piece: Graph
    fact: str
    """Name of the attribute or method."""
    reason: str
    """The declaration, and an edge that contradicts it."""

    def __str__(self) -> str:
        """Return the piece, the fact and the reason in one line."""
        return f"{self.piece!r:.200}: {self.fact} is false: {self.reason}"


def false_facts(graph: Graph, n: int, heads: int = 1) -> list[FalseFact]:
    """Return the false facts of every piece of a graph over `n` tokens, with a witness for each.

    Up to 2,048 tokens, every pair of positions is checked; beyond that, some of the queries with
    all keys.

    Args:
        graph: Graph to check; if it depends on the length, its graph at `n`.
        n: Number of tokens.
        heads: Number of heads.

    Examples:
        >>> from longbird.core.graph import Causal, Window
        >>> false_facts(Window(3, dilation=2) & Causal(), 100)
        []
    """
    found: list[FalseFact] = []
    for piece in dict.fromkeys(pieces(graph.at(n))):
        reasons = dict(_contradictions(piece, n, heads))
        # The facts of a piece that streams have to hold for longer sequences as well.
        if piece.streams and _has_rule(piece):
            with contextlib.suppress(*REFUSED):
                reasons = dict(_contradictions(piece, LONGER * n, heads)) | reasons
        found += [FalseFact(piece, fact, reason) for fact, reason in reasons.items()]
    return found


def pieces(graph: Graph) -> Iterator[Graph]:
    """Yield every piece of a graph, including those in the fields of other pieces."""
    if not graph.combines:
        yield graph
    for part in graphs_in(fields_of(graph)):
        yield from pieces(part)


def _has_rule(piece: Graph) -> bool:
    return type(piece).edge is not Graph.edge


def _contradictions(piece: Graph, n: int, heads: int) -> Iterator[tuple[str, str]]:
    """Yield the names of false facts over `n` tokens, and the evidence."""
    rows = _rows(n)
    if _has_rule(piece):
        seen = edges_between(piece, rows[:, None], np.arange(n), n)[None]
    elif len(rows) == n or piece.streams:  # listed or drawn edges are only available as a whole
        rows = np.arange(n)
        seen = (piece.edge_counts(n, heads) > 0).reshape(-1, n, n)
    else:
        return
    if n * n <= MOST_PAIRS:
        yield from _tile_count(piece, seen, n)
    seen = np.asarray(seen.any(axis=0))  # in any head: [rows, n]
    yield from _reach(piece, rows, seen, n)
    yield from _spans(piece, rows, seen, n)
    yield from _period(piece, rows, seen, n)
    yield from _streams(piece, rows, seen, n)


def _rows(n: int) -> Positions:
    """Return all queries, or one from each of equal parts, and both ends."""
    count = max(MOST_PAIRS // n, 1)
    if n <= count:
        return np.arange(n)
    # Positions in the parts are hashed: evenly spaced ones would see one phase of a period.
    start = np.arange(count + 1) * n // count
    drawn = start[:-1] + below(np.diff(start), n, np.arange(count))
    return np.unique(np.concatenate([[0], drawn, [n - 1]]))


def _reach(piece: Graph, rows: Positions, seen: Mask, n: int) -> Iterator[tuple[str, str]]:
    key = np.arange(n)
    # A decoder uses the reach of the longest sequence.
    for length in (n, MOST_TOKENS) if piece.streams else (n,):
        reach = piece.reach(length)
        if not isinstance(reach, Reach):
            return  # a layout raises an error that says what it is
        back = rows[:, None] - key
        inside = ((back <= reach.behind) | (key < reach.sinks)) & (-back <= reach.ahead)
        edge = _first(seen & ~inside, rows)
        if edge is not None:
            yield "reach", f"reach({length}) is {reach}, but {_sees(*edge, n)}"
            return


def _spans(piece: Graph, rows: Positions, seen: Mask, n: int) -> Iterator[tuple[str, str]]:
    if type(piece).spans is Graph.spans:
        return  # they are derived from the reach
    for size in sorted({*TILE_SIZES, piece.tile_size or 64}):
        tiles, tile = np.unique(rows // size, return_inverse=True)
        first = tiles[:, None] * size
        last = np.minimum(first + size, n) - 1
        low, high = spans_of_tiles(piece, first, last, n)
        low, high = np.clip(low, 0, n), np.clip(high + 1, 0, n)
        # +1 where a span begins and -1 after its end, so that sums are above 0 within spans.
        change = np.zeros((len(tiles), n + 1), np.int32)
        number = np.broadcast_to(np.arange(len(tiles))[:, None], low.shape)
        some = low < high
        np.add.at(change, (number[some], low[some]), 1)
        np.add.at(change, (number[some], high[some]), -1)
        inside = np.cumsum(change[:, :-1], axis=1, dtype=np.int32) > 0
        edge = _first(seen & ~inside[tile], rows)
        if edge is not None:
            begin = edge[0] // size * size
            yield (
                "spans",
                f"no span of the queries {begin} to {min(begin + size, n) - 1} has the key "
                f"{edge[1]}, but {_sees(*edge, n)}",
            )
            return


def _period(piece: Graph, rows: Positions, seen: Mask, n: int) -> Iterator[tuple[str, str]]:
    if piece.period is None:
        return
    key = np.arange(n)
    # Moved by one period, and to the beginning, as layouts move tiles; keys may then be negative.
    there = rows + piece.period < n
    for some, step in (
        (there, np.full((int(there.sum()), 1), piece.period)),
        (np.ones(len(rows), bool), -(rows // piece.period * piece.period)[:, None]),
    ):
        queries = rows[some]
        moved = edges_between(piece, queries[:, None] + step, key + step, n)
        differs = moved != seen[some]
        edge = _first(differs & (key + step < n), queries)
        if edge is not None:
            i, j = edge
            by = int(step[np.searchsorted(queries, i), 0])
            has = bool(seen[np.searchsorted(rows, i), j])
            yield (
                "period",
                f"period is {piece.period}, but {_sees(i, j, n, has)}, and query {i + by} "
                f"{'does not see' if has else 'sees'} key {j + by}",
            )
            return


def _streams(piece: Graph, rows: Positions, seen: Mask, n: int) -> Iterator[tuple[str, str]]:
    if not piece.streams:
        return
    # A decoder evaluates the rule at the longest length; listed edges do not depend on it.
    longer = [n + 1, 2 * n, 2 * n + 1, MOST_TOKENS] if _has_rule(piece) else []
    for length in [n - 1, n // 2, *longer]:
        if length < max(piece.least_tokens, 1):
            continue
        few = min(length, n)
        queries = rows[rows < few]
        try:
            if _has_rule(piece):
                other = edges_between(piece, queries[:, None], np.arange(few), length)
            else:
                other = (piece.edge_counts(length, 1) > 0).reshape(length, length)
        except REFUSED:
            continue
        edge = _first(other != seen[: len(queries), :few], rows)
        if edge is not None:
            has = bool(seen[np.searchsorted(rows, edge[0]), edge[1]])
            yield (
                "streams",
                f"{_sees(*edge, n, has)}, and {'does not' if has else 'does'} in one of {length}",
            )
            return


def _tile_count(piece: Graph, seen: Mask, n: int) -> Iterator[tuple[str, str]]:
    """Check an estimate that may be high; if it is far too low, memory runs out."""
    if type(piece).tile_count is Graph.tile_count:
        return  # it is derived from the spans
    size = piece.tile_size or 64
    starts = np.arange(0, n, size)
    tiles = np.logical_or.reduceat(np.logical_or.reduceat(seen, starts, axis=1), starts, axis=2)
    count, stated = float(tiles.sum()) / len(seen), piece.tile_count(n, size)
    if not count <= 2 * stated + len(starts):
        i, j = np.argwhere(seen)[-1, 1:].tolist()
        yield (
            "tile_count",
            f"tile_count({n}, {size}) is {stated:g}, but {count:g} tiles have an edge; the last "
            f"edge is from query {i} to key {j}",
        )


def _first(wrong: Mask, rows: Positions) -> tuple[int, int] | None:
    """Return the first pair (query, key) that is wrong, or None."""
    if not wrong.any():
        return None
    row, column = divmod(int(np.argmax(wrong)), wrong.shape[1])
    return int(rows[row]), column


def _sees(i: int, j: int, n: int, has: bool = True) -> str:
    return f"query {i} {'sees' if has else 'does not see'} key {j} in a sequence of {n} tokens"
