"""How each piece of a graph becomes tiles: one short function for each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce, singledispatch
from math import gcd
from operator import or_

import numpy as np
import numpy.typing as npt

from longbird.graph.base import Graph, Intersection, Union
from longbird.graph.edges import Edges, _Pairs
from longbird.graph.globals import GlobalBlocks, GlobalTokens, _Global
from longbird.graph.legacy import LegacyBigBird
from longbird.graph.random import ErdosRenyi, RandomBlocks, WattsStrogatz
from longbird.graph.windows import BlockWindow, Causal, Full, Window, _Rule
from longbird.layout.blocks import of_blocks
from longbird.layout.tiles import (
    CHUNK,
    FULL,
    Codes,
    Grid,
    TileSet,
    distinct,
    no_masks,
    pack,
    ranges,
    split,
)
from longbird.layout.tiling import Tiling


def compile_tiles(
    graph: Graph, grid: Grid, limit: TileSet | None = None, level: int = 1
) -> TileSet:
    """The edges that the graph has at least `level` times, as tiles of the grid.

    With a `limit`, only in the tiles of that set; so an intersection never looks at tiles that
    its smallest part does not have.
    """
    if level > 1 and not isinstance(graph, (Union, Intersection, LegacyBigBird)):
        return TileSet.empty(grid)
    return tiles_of(graph, grid, limit, level)


@singledispatch
def tiles_of(graph: Graph, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    """What `compile_tiles` does for a certain piece."""
    raise TypeError(f"a layout of {type(graph).__name__} is not defined; register one in tiles_of")


@tiles_of.register
def _(graph: Union, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    found = [compile_tiles(part, grid, limit, level) for part in graph.parts]
    # What all heads share first, so that it is only combined once.
    return reduce(or_, sorted(found, key=lambda tiles: tiles.heads))


@tiles_of.register
def _(graph: Intersection, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    first, *others = sorted(graph.parts, key=lambda part: bound(part, grid.keys.tokens))
    tiles = compile_tiles(first, grid, limit, level)
    for other in others:
        tiles = tiles & compile_tiles(other, grid, tiles, level)
    return tiles


def bound(graph: Graph, n: int) -> float:
    """About how many edges the graph can have, to begin an intersection with the smallest."""
    match graph:
        case Union():
            return sum(bound(part, n) for part in graph.parts)
        case Intersection():
            return min(bound(part, n) for part in graph.parts)
        case Window():
            keys = 2 * graph.radius + 1
        case BlockWindow():
            keys = graph.width * graph.block
        case GlobalTokens():
            keys = 2 * len(graph.positions)
        case GlobalBlocks():
            keys = 2 * (graph.first + graph.last) * graph.block
        case RandomBlocks():
            keys = graph.count * graph.block
        case LegacyBigBird():
            keys = n if graph.is_full(n) else (9 + graph.random) * graph.block
        case ErdosRenyi():
            keys = graph.p * n
        case WattsStrogatz():
            keys = graph.k + 1
        case Edges():
            return len(graph.pairs)
        case _:
            keys = n
    return n * min(keys, n)


# Rules on positions. A tile's mask depends on how far its queries are from its keys, and on where
# they are in the period of the rule, so a handful of masks serves a sequence of any length.


@tiles_of.register
def _(graph: _Rule, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    codes, heads = (limit.codes, limit.heads) if limit is not None else (reachable(graph, grid), 1)
    row, column = grid.place(codes)
    query, key = grid.queries.first[row], grid.keys.first[column]
    signature = (query - key) * graph.period + query % graph.period
    signatures, ids = np.unique(signature, return_inverse=True)
    distance, phase = split(signatures, graph.period)
    within_tile = np.arange(grid.size) * grid.keys.step
    masks = [no_masks(grid.size)]
    chunk = max(1, CHUNK // grid.size**2)
    for part in range(0, len(signatures), chunk):
        i = phase[part : part + chunk, None, None] + within_tile[None, None, :]
        j = (phase - distance)[part : part + chunk, None, None] + within_tile[None, :, None]
        masks.append(pack(graph.edge(i, j)))
    return TileSet.of_masks(grid, heads, codes, ids, np.concatenate(masks))


@tiles_of.register
def _(graph: Full, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    if limit is not None:
        return TileSet.full(grid, limit.codes, limit.heads)
    return TileSet.full(grid, np.arange(grid.cells))


@singledispatch
def reachable(graph: _Rule, grid: Grid) -> Codes:
    """Sorted codes of the tiles that can have an edge of the rule, and few others."""
    return np.arange(grid.cells)


@reachable.register
def _(graph: Causal, grid: Grid) -> Codes:
    last = grid.queries.last[:, None]
    return np.arange(grid.cells) if grid.keys.step > 1 else _spans(grid, 0 * last, last)


@reachable.register
def _(graph: BlockWindow, grid: Grid) -> Codes:
    block, side = graph.block, graph.width // 2
    first, last = grid.queries.first[:, None] // block, grid.queries.last[:, None] // block
    return _spans(grid, (first - side) * block, (last + side + 1) * block - 1)


@reachable.register
def _(graph: Window, grid: Grid) -> Codes:
    step, n = graph.dilation, grid.keys.tokens
    radius = min(graph.radius, n // step)
    if step == grid.keys.step or step <= grid.size:
        nearest, farthest = np.array([-radius * step]), np.array([radius * step])
    else:  # the keys of a tile are far apart: look for each of them alone
        nearest = farthest = np.arange(-radius, radius + 1) * step
    first, last = grid.queries.first[:, None], grid.queries.last[:, None]
    return _spans(grid, first + nearest, last + farthest)


def _spans(grid: Grid, first: Codes, last: Codes) -> Codes:
    """Codes of the tiles with a key from first[row, k] to last[row, k], for any k."""
    n, step = grid.keys.tokens, grid.keys.step
    residue = (grid.queries.first % step)[:, None]
    first = np.maximum(first, residue)
    last = np.minimum(last, residue + (n - 1 - residue) // step * step)
    before = residue * (n // step) + np.minimum(residue, n % step)  # tokens of lower residues
    low = np.searchsorted(grid.keys.starts, before + first // step, side="right") - 1
    high = np.searchsorted(grid.keys.starts, before + last // step, side="right") - 1
    length = np.where(first <= last, high - low + 1, 0)
    codes = ranges(grid.code(np.arange(grid.queries.count)[:, None], low), length)
    return codes if length.shape[1] == 1 else np.unique(codes)


# Globals. A tile's mask depends on which of its queries and which of its keys are global.


@tiles_of.register
def _(graph: _Global, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    flags = graph.flags(grid.keys.tokens)
    query_kinds, query_kind = _kinds(grid.queries, flags)
    key_kinds, key_kind = query_kinds, query_kind
    if grid.keys is not grid.queries:
        key_kinds, key_kind = _kinds(grid.keys, flags)
    if limit is not None:
        heads = limit.heads
        row, column = grid.place(limit.codes)
        codes = limit.codes[(query_kind[row] > 0) | (key_kind[column] > 0)]
    else:
        heads = 1
        rows, others = np.flatnonzero(query_kind > 0), np.flatnonzero(query_kind == 0)
        every = grid.code(rows[:, None], np.arange(grid.keys.count))
        some = grid.code(others[:, None], np.flatnonzero(key_kind > 0))
        codes = np.sort(np.concatenate([every, some], axis=None))
    row, column = grid.place(codes)
    pair = query_kind[row] * len(key_kinds) + key_kind[column]
    met, ids = np.unique(pair, return_inverse=True)
    of_query, of_key = split(met, len(key_kinds))
    masks = [no_masks(grid.size)]
    chunk = max(1, CHUNK // grid.size**2)
    for part in range(0, len(met), chunk):
        queries = query_kinds[of_query[part : part + chunk], None, :]
        keys = key_kinds[of_key[part : part + chunk], :, None]
        masks.append(pack(queries | keys))
    return TileSet.of_masks(grid, heads, codes, ids, np.concatenate(masks))


def _kinds(
    tiling: Tiling, flags: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """The different ways tiles are flagged, bool [kinds, size], and the kind of each tile.

    Kind 0 has no flag. A ragged tile with a flag on each of its tokens counts as flagged fully.
    """
    spread = tiling.spread(flags)
    flagged = spread.sum(axis=1)
    spread[flagged == tiling.lengths] = True
    some = np.flatnonzero(flagged)
    example, kind = distinct(spread[some])
    of_tile = np.zeros(tiling.count, np.int64)
    of_tile[some] = kind + 1
    return np.concatenate([np.zeros((1, tiling.size), bool), spread[some[example]]]), of_tile


# Lists of block pairs, of which single edges are the case of blocks of one token.


@tiles_of.register
def _(graph: _Pairs, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    edges = graph.edges(grid.keys.tokens)
    if grid.queries.tokens < grid.keys.tokens:
        start, stop = grid.queries.extent
        edges = edges[np.searchsorted(edges[:, 0], start) : np.searchsorted(edges[:, 0], stop)]
    return of_blocks(grid, 1, 1, 0, edges[:, 0], edges[:, 1]).within(limit)


@tiles_of.register
def _(graph: RandomBlocks, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    n, block, heads = grid.keys.tokens, graph.block, grid.heads
    blocks = -(-n // block)
    start, stop = grid.queries.extent
    rows = range(start // block, -(-stop // block))
    covered = np.zeros(0, np.int64)
    if graph.avoid is not None:
        queries = Tiling.contiguous(min(rows.stop * block, n), block, rows.start * block)
        avoid = compile_tiles(graph.avoid, Grid(queries, Tiling.contiguous(n, block), heads))
        avoid = avoid.trimmed().for_heads(heads)
        covered = avoid.codes[avoid.mask_ids == FULL]
    if not blocks:
        return TileSet.empty(grid)
    line, column = split(graph.drawn(blocks, heads, rows, covered), blocks)
    head, row = split(line, max(len(rows), 1))
    return of_blocks(grid, block, heads, head, row + rows.start, column).within(limit)


@tiles_of.register
def _(graph: LegacyBigBird, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    n, heads = grid.keys.tokens, grid.heads if graph.per_head else 1
    if graph.is_full(n):
        return compile_tiles(Full(), grid, limit, level)
    blocks = -(-n // graph.block)
    codes, counts = graph.blocks(n, heads)
    line, column = split(codes[counts >= level], blocks)
    head, row = split(line, blocks)
    start, stop = grid.queries.extent
    here = ((row + 1) * graph.block > start) & (row * graph.block < stop)
    return of_blocks(grid, graph.block, heads, head[here], row[here], column[here]).within(limit)


# Which tiles suit a graph.


def pieces(graph: Graph) -> Iterator[Graph]:
    """The pieces that a graph is combined from."""
    if isinstance(graph, (Union, Intersection)):
        for part in graph.parts:
            yield from pieces(part)
    else:
        yield graph


def tile_size(graph: Graph) -> int:
    """A tile size that cuts few blocks of the graph: 64 if nothing speaks for another."""
    preferred = set()
    for piece in pieces(graph):
        if isinstance(piece, _Pairs):
            preferred.add(16)
        elif isinstance(piece, (BlockWindow, GlobalBlocks, RandomBlocks, LegacyBigBird)):
            preferred.add(_size_for_block(piece.block))
    size = gcd(*preferred)
    return size if size >= 16 else 64


def _size_for_block(block: int) -> int:
    if block < 16:
        return block * round(64 / block)
    return max((size for size in range(16, 129) if block % size == 0), default=64)


def common_dilation(graph: Graph, n: int) -> int:
    """The dilation by which tokens can be sorted so that all windows become plain, or 1.

    That is possible when every part of the union is a window of this dilation, alone or
    restricted by others or to the causal half.
    """
    found = set()
    for part in graph.parts if isinstance(graph, Union) else (graph,):
        factors = part.parts if isinstance(part, Intersection) else (part,)
        windows = {factor.dilation for factor in factors if isinstance(factor, Window)}
        if not windows or not all(isinstance(f, (Window, Causal, Full)) for f in factors):
            return 1
        found |= windows
    dilation = found.pop() if len(found) == 1 else 1
    return dilation if n // dilation >= 16 else 1
