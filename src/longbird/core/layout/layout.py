"""Layouts, and the cache of compiled layouts."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import integer
from longbird.core.graph.base import Graph
from longbird.core.graph.combinations import Union
from longbird.core.graph.globals import GlobalTokens
from longbird.core.graph.rules import LARGEST_TILE
from longbird.core.layout.compile import common_stride, compile_tiles, tile_size
from longbird.core.layout.memory import check_memory, estimated_bytes, estimated_tiles
from longbird.core.layout.tiles import Grid, Masks, TileSet, pooled, split, unpack
from longbird.core.layout.tiling import Tiling
from longbird.core.machine import in_words
from longbird.errors import InvalidTypeError, InvalidValueError

CACHED_BYTES = 1 << 29
Number = TypeVar("Number", np.int64, np.int32, np.uint8)
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1)  # of each byte


@dataclass(frozen=True, eq=False)
class Layout:
    """For each head and tile of queries, the tiles of keys that it attends to.

    All arrays are C-contiguous and read-only.

    Attributes:
        queries: Tiling of the queries, which are the rows.
        keys: Tiling of the keys, which are the columns.
        heads: Number of heads.
        row_ptr: int64 [H, rows + 1], where H is 1 if all heads share the entries, else `heads`.
            The entries of row r of head h are row_ptr[h, r] to row_ptr[h, r + 1] - 1.
        columns: int32 [entries], the key tile of each entry, ascending in a row. A tile listed
            twice counts twice.
        mask_ids: int32 [entries], index into `masks`; -1 if every query of the tile sees every
            key of the tile.
        masks: uint8 [masks, size, ceil(size / 8)]; bit i % 8 of masks[m, j, i // 8] is set if
            query i of the tile sees key j. Bits beyond the tokens of a ragged tile are undefined.
        global_tokens: int32 [g], ascending: tokens that see all and are seen by all, in addition
            to the entries. An edge that is both in an entry and global counts once.
        multiset: Whether some tile is listed twice in a row.

    Examples:
        >>> from longbird.core.graph import Window
        >>> layout = Window(64).layout(256)
        >>> layout.queries.starts
        array([  0,  64, 128, 192, 256], dtype=int32)
        >>> layout.columns
        array([0, 1, 0, 1, 2, 1, 2, 3, 2, 3], dtype=int32)
        >>> layout.mask_ids
        array([-1,  1,  0, -1,  1,  0, -1,  1,  0, -1], dtype=int32)
    """

    queries: Tiling
    keys: Tiling
    heads: int
    row_ptr: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    mask_ids: npt.NDArray[np.int32]
    masks: Masks
    global_tokens: npt.NDArray[np.int32]
    multiset: bool

    def __repr__(self) -> str:
        """Return its size in one line."""
        queries, keys = self.queries.tokens, self.keys.tokens
        tokens = f"{keys:,} tokens" if queries == keys else f"{queries:,} of {keys:,} tokens"
        return (
            f"<Layout of {tokens}, heads={self.heads}: {self.entries:,} tiles of "
            f"{self.size} x {self.size}, {in_words(self.nbytes)}>"
        )

    @property
    def size(self) -> int:
        """Maximum number of tokens in a tile."""
        return self.queries.size

    @property
    def entries(self) -> int:
        """Number of entries; entries that all heads share count once."""
        return len(self.columns)

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        arrays = (self.row_ptr, self.columns, self.mask_ids, self.masks, self.global_tokens)
        tilings = {id(tiling): tiling.nbytes for tiling in (self.queries, self.keys)}
        return sum(array.nbytes for array in arrays) + sum(tilings.values())

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """Row of each entry."""
        lengths = np.diff(self.row_ptr, axis=1).reshape(-1)
        return np.repeat(np.tile(np.arange(self.queries.count), len(self.row_ptr)), lengths)

    def edges(self) -> int:
        """Return the number of edges in all heads; an edge that counts twice is two edges."""
        flags = np.zeros(self.keys.tokens, bool)
        flags[self.global_tokens] = True
        queries, keys = self.queries.spread(~flags), self.keys.spread(~flags)
        rows, columns = self.rows, self.columns
        # Entries only count edges without global tokens, whose rows and columns are added below.
        found = int((queries.sum(1)[rows] * keys.sum(1)[columns])[self.mask_ids < 0].sum())
        partial = np.flatnonzero(self.mask_ids >= 0)
        whole = np.all(queries, 1)[rows[partial]] & np.all(keys, 1)[columns[partial]]
        bits = _BITS[self.masks].sum(axis=(1, 2), dtype=np.int64)
        found += int(bits[self.mask_ids[partial[whole]]].sum())
        rest = partial[~whole]
        for begin in range(0, len(rest), 1024):
            some = rest[begin : begin + 1024]
            inside = unpack(self.masks[self.mask_ids[some]], self.size)
            inside = inside & queries[rows[some], None, :] & keys[columns[some], :, None]
            found += int(inside.sum())
        found *= self.heads // len(self.row_ptr)
        global_queries = self.queries.tokens - int(queries.sum())
        here = global_queries * self.keys.tokens
        there = (self.queries.tokens - global_queries) * len(self.global_tokens)
        return found + self.heads * (here + there)

    @property
    def density(self) -> float:
        """Share of the edges of full attention."""
        return self.edges() / max(self.heads * self.queries.tokens * self.keys.tokens, 1)

    def dense(self, heads: int | None = None) -> npt.NDArray[np.int32]:
        """Return how often each query attends to each key: int32 [heads, queries, keys].

        Meant for tests. Queries and keys are in the order of the sequence.
        """
        size, shared = self.size, len(self.row_ptr)
        counts = np.zeros((shared, self.queries.count, size, self.keys.count, size), np.int32)
        masks = unpack(self.masks, size)
        head = np.repeat(np.arange(shared), np.diff(self.row_ptr[:, [0, -1]], axis=1)[:, 0])
        for h, r, c, m in zip(head, self.rows, self.columns, self.mask_ids, strict=True):
            counts[h, r, :, c, :] += 1 if m < 0 else masks[m].T
        everyone = np.ones(self.keys.tokens, bool)
        counts = counts[:, self.queries.spread(everyone)][:, :, self.keys.spread(everyone)]
        row_token, column_token = _tokens(self.queries), _tokens(self.keys)
        counts[:, np.isin(row_token, self.global_tokens)] |= 1
        counts[:, :, np.isin(column_token, self.global_tokens)] |= 1
        counts = counts[:, np.argsort(row_token)][:, :, np.argsort(column_token)]
        heads = self.heads if heads is None else heads
        return np.broadcast_to(counts, (heads, *counts.shape[1:])).copy()


def _tokens(tiling: Tiling) -> npt.NDArray[np.integer]:
    return np.arange(tiling.tokens) if tiling.order is None else tiling.order


def compile_layout(
    graph: Graph,
    n: int,
    heads: int = 1,
    block: int | None = None,
    *,
    rows: tuple[int, int] | None = None,
) -> Layout:
    """Return the layout of a graph over `n` tokens; `Graph.layout` documents the arguments.

    The most recently used layouts, up to CACHED_BYTES, are cached. Several threads may compile
    layouts at once.
    """
    if not isinstance(graph, Graph):
        raise InvalidTypeError(
            f"a layout needs a graph, received {graph!r} ({type(graph).__name__})"
        )
    n, heads = integer(n, "n"), integer(heads, "heads", least=1)
    if block is not None:
        block = integer(block, "the block of a layout", least=1, most=LARGEST_TILE)
    try:
        start, stop = (0, n) if rows is None else rows
    except (TypeError, ValueError) as error:
        raise type(error)(f"rows must be (first, end), received {rows!r:.80}") from None
    start, stop = integer(start, "the first of rows"), integer(stop, "the end of rows")
    if not start <= stop <= n:
        raise InvalidValueError(
            f"rows must be within 0 and n={n} in this order, received {rows!r}"
        )
    key = (graph, n, heads, block, start, stop)
    layout = _cache.get(key)
    if layout is None:
        here = graph.at(n)
        if here == graph:
            layout = _compiled(*key)
        else:  # the length selects another graph, whose layout may be cached
            layout = compile_layout(here, n, heads, block, rows=rows)
        _cache.put(key, layout)
    return layout


class _Cache:
    """The most recently used layouts, up to a number of bytes.

    Every length of a document and every seed of a layer has its own layout. These are thousands of
    small ones, which a limit on their number would evict before they are used again.
    """

    def __init__(self) -> None:
        self._layouts: OrderedDict[tuple[object, ...], Layout] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: tuple[object, ...]) -> Layout | None:
        with self._lock:
            if key in self._layouts:
                self._layouts.move_to_end(key)
            return self._layouts.get(key)

    def put(self, key: tuple[object, ...], layout: Layout) -> None:
        with self._lock:
            if key in self._layouts:  # another thread was faster
                return
            self._layouts[key] = layout
            self._bytes += layout.nbytes
            while self._bytes > CACHED_BYTES and len(self._layouts) > 1:
                self._bytes -= self._layouts.popitem(last=False)[1].nbytes


_cache = _Cache()


def estimate(graph: Graph, n: int, heads: int = 1) -> tuple[float, int, float]:
    """Estimate a layout: its tiles, their size, and the bytes to build it."""
    rest, _ = _without_globals(graph.at(n), n)
    size, step = _cut(rest, n)
    tiles = estimated_tiles(rest, n, heads, size, step)
    return tiles, size, estimated_bytes(tiles, n, size, step)


def _compiled(
    graph: Graph, n: int, heads: int, block: int | None, start: int, stop: int
) -> Layout:
    rest, global_tokens = _without_globals(graph, n)
    suited, step = _cut(rest, n)
    size = block or suited
    check_memory(rest, n, heads, size, step, stop - start)
    if step > 1:
        keys = Tiling.strided(n, size, step)
        queries = keys if stop - start == n else Tiling.strided(stop, size, step, start)
    else:
        keys = Tiling.contiguous(n, size)
        queries = keys if stop - start == n else Tiling.contiguous(stop, size, start)
    grid = Grid(queries, keys, heads)
    levels = _levels(rest, grid) if rest else [TileSet.empty(grid)]
    return _assembled(grid, levels, global_tokens)


def _cut(graph: Graph | None, n: int) -> tuple[int, int]:
    """Return the size of tiles, and the distance between their tokens, that suit a graph."""
    return (tile_size(graph), common_stride(graph, n)) if graph else (64, 1)


def _without_globals(graph: Graph, n: int) -> tuple[Graph | None, npt.NDArray[np.int32]]:
    """Separate the global tokens from a union, because they are cheaper than as tiles.

    A multiset keeps them, since a global edge counts only once.
    """
    if graph.multiset:
        return graph, np.zeros(0, np.int32)
    parts = graph.parts if isinstance(graph, Union) else (graph,)
    tokens = [part.flagged(n)[0][0] for part in parts if isinstance(part, GlobalTokens)]
    if not tokens:
        return graph, np.zeros(0, np.int32)
    rest = [part for part in parts if not isinstance(part, GlobalTokens)]
    found = np.unique(np.concatenate(tokens)).astype(np.int32)
    return Union.of(rest) if rest else None, found


def _levels(graph: Graph, grid: Grid) -> list[TileSet]:
    """Return the edges that the graph has at least once, at least twice, and so on."""
    levels = [compile_tiles(graph, grid).trimmed()]
    if graph.multiset:
        for level in count(2):
            tiles = compile_tiles(graph, grid, level=level).trimmed()
            if not len(tiles):
                break
            levels.append(tiles)
    return levels


def _assembled(grid: Grid, levels: list[TileSet], global_tokens: npt.NDArray[np.int32]) -> Layout:
    heads = max(level.heads for level in levels)
    levels = [level.for_heads(heads) for level in levels]
    codes = np.concatenate([level.codes for level in levels])
    mask_ids, masks = pooled(levels, grid.size)
    if len(levels) > 1:
        order = np.argsort(codes, kind="stable")
        codes, mask_ids = codes[order], mask_ids[order]
    lines, columns = split(codes, max(grid.keys.count, 1))
    rows = grid.queries.count
    ends = np.cumsum(np.bincount(lines, minlength=heads * rows))
    starts = np.arange(heads)[:, None] * rows + np.arange(rows + 1)
    return Layout(
        queries=grid.queries,
        keys=grid.keys,
        heads=grid.heads,
        row_ptr=_frozen(np.append(0, ends)[starts], np.int64),
        columns=_frozen(columns, np.int32),
        mask_ids=_frozen(mask_ids, np.int32),
        masks=_frozen(masks, np.uint8),
        global_tokens=_frozen(global_tokens, np.int32),
        multiset=len(levels) > 1,
    )


def _frozen(values: npt.NDArray[Any], dtype: type[Number]) -> npt.NDArray[Number]:
    array = np.ascontiguousarray(values, dtype=dtype)
    array.flags.writeable = False
    return array
