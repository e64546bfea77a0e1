"""Compilation of graphs to tiles: by their rule, or by a function for a family of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce, singledispatch
from math import gcd
from operator import or_

import numpy as np
import numpy.typing as npt

from longbird.core.graph.base import Graph
from longbird.core.graph.choices import PerHead
from longbird.core.graph.combinations import Intersection, Union
from longbird.core.graph.edges import EdgeList
from longbird.core.graph.globals import GlobalPiece
from longbird.core.graph.legacy import LegacyBigBird
from longbird.core.graph.random import RandomBlocks
from longbird.core.graph.rules import edges_between, spans_of_tiles
from longbird.core.graph.windows import Full
from longbird.core.layout.blocks import of_blocks
from longbird.core.layout.tiles import (
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
from longbird.core.layout.tiling import Tiling
from longbird.core.machine import many
from longbird.errors import InvalidValueError

# Maximum number of pairs for which a rule is evaluated, which takes some minutes.
MOST_PAIRS = 2**35


def compile_tiles(
    graph: Graph, grid: Grid, limit: TileSet | None = None, level: int = 1
) -> TileSet:
    """Return the edges that the graph has at least `level` times, as tiles of the grid.

    With a `limit`, only the tiles of that set are examined; an intersection uses it to skip tiles
    that its smallest part does not have.
    """
    if level > 1 and not graph.multiset:
        return TileSet.empty(grid)
    return tiles_of(graph, grid, limit, level)


# Rules on positions, of this package and of users. With a period, the mask of a tile depends on
# the distance between its queries and keys and their place in the period: a few masks serve a
# sequence of any length. Without one, the rule is evaluated for every tile within its spans.


@singledispatch
def tiles_of(graph: Graph, grid: Grid, limit: TileSet | None, _level: int) -> TileSet:
    """Return the tiles of a piece; by default, by evaluating its rule."""
    if graph.period is None:
        _check_pairs(graph, grid, limit)
    codes, heads = (limit.codes, limit.heads) if limit is not None else (reachable(graph, grid), 1)
    n = grid.keys.tokens
    row, column = grid.place(codes)
    query, key = grid.queries.first[row], grid.keys.first[column]
    within_tile = np.arange(grid.size) * grid.keys.step
    chunk = max(1, CHUNK // grid.size**2)
    masks = [no_masks(grid.size)]
    if graph.period is not None:
        signature = (query - key) * graph.period + query % graph.period
        signatures, ids = np.unique(signature, return_inverse=True)
        distance, phase = split(signatures, graph.period)
        for part in range(0, len(signatures), chunk):
            i = phase[part : part + chunk, None, None] + within_tile[None, None, :]
            j = (phase - distance)[part : part + chunk, None, None] + within_tile[None, :, None]
            masks.append(pack(edges_between(graph, i, j, n)))
        return TileSet.of_masks(grid, heads, codes, ids, np.concatenate(masks))
    found = [np.zeros(0, np.int64)]
    known = 0
    for part in range(0, len(codes), chunk):
        # There are no tokens beyond the end, and bits there have no meaning.
        i = np.minimum(query[part : part + chunk, None, None] + within_tile[None, None, :], n - 1)
        j = np.minimum(key[part : part + chunk, None, None] + within_tile[None, :, None], n - 1)
        packed = pack(edges_between(graph, i, j, n))
        example, kind = distinct(packed)
        masks.append(packed[example])
        found.append(known + kind)
        known += len(example)
    return TileSet.of_masks(grid, heads, codes, np.concatenate(found), np.concatenate(masks))


def _check_pairs(graph: Graph, grid: Grid, limit: TileSet | None) -> None:
    """Raise a ValueError if a rule would be evaluated for too many pairs of tokens."""
    if limit is not None:
        tiles = len(limit)
    elif grid.cells * grid.size**2 <= MOST_PAIRS:
        return
    else:
        n = grid.keys.tokens
        tiles = graph.tile_count(n, grid.size) * grid.queries.tokens / n
    if tiles * grid.size**2 > MOST_PAIRS:
        raise InvalidValueError(
            f"{graph!r:.200} would be evaluated for {many(tiles * grid.size**2)} pairs of tokens, "
            "because it does not declare where its edges are: define its reach, spans or period "
            "(docs/graphs.md), or take the intersection with a graph that is sparse"
        )


@tiles_of.register
def _(_graph: Full, grid: Grid, limit: TileSet | None, _level: int) -> TileSet:
    if limit is not None:
        return TileSet.full(grid, limit.codes, limit.heads)
    return TileSet.full(grid, np.arange(grid.cells))


def reachable(graph: Graph, grid: Grid) -> Codes:
    """Return the sorted codes of the tiles within the spans of a rule."""
    n, step = grid.keys.tokens, grid.keys.step
    if step > 1 and graph.sort_modulus != step:  # the tokens are not in the order of the spans
        return np.arange(grid.cells)
    low, high = spans_of_tiles(graph, grid.queries.first[:, None], grid.queries.last[:, None], n)
    residue = (grid.queries.first % step)[:, None]
    low = np.maximum(low, residue)
    high = np.minimum(high, residue + (n - 1 - residue) // step * step)
    before = residue * (n // step) + np.minimum(residue, n % step)  # tokens of lower residues
    first = np.searchsorted(grid.keys.starts, before + low // step, side="right") - 1
    last = np.searchsorted(grid.keys.starts, before + high // step, side="right") - 1
    length = np.where(low <= high, last - first + 1, 0)
    codes = ranges(grid.code(np.arange(grid.queries.count)[:, None], first), length)
    return codes if length.shape[1] == 1 else np.unique(codes)


# Combinations.


@tiles_of.register
def _(graph: Union, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    found = [compile_tiles(part, grid, limit, level) for part in graph.parts]
    # Tiles that all heads share come first, so that they are combined only once.
    return reduce(or_, sorted(found, key=lambda tiles: tiles.heads))


@tiles_of.register
def _(graph: Intersection, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    n, size = grid.keys.tokens, grid.size
    first, *others = sorted(graph.parts, key=lambda part: part.tile_count(n, size))
    tiles = compile_tiles(first, grid, limit, level)
    for other in others:
        tiles = tiles & compile_tiles(other, grid, tiles, level)
    return tiles


@tiles_of.register
def _(graph: PerHead, grid: Grid, limit: TileSet | None, level: int) -> TileSet:
    graphs = graph.of_heads(grid.heads)
    found: dict[Graph, TileSet] = {}
    of_heads: list[TileSet] = []
    for head, part in enumerate(graphs):
        if limit is not None:
            tiles = compile_tiles(part, grid, limit.of_head(head), level)
        else:
            if part not in found:
                found[part] = compile_tiles(part, grid, None, level)
            tiles = found[part]
        of_heads.append(tiles.of_head(head))
    return TileSet.of_heads(grid, of_heads)


# Global tokens. The mask of a tile depends on which of its queries and keys are global.


@tiles_of.register
def _(graph: GlobalPiece, grid: Grid, limit: TileSet | None, _level: int) -> TileSet:
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
    """Return the different patterns of flags in tiles, bool [kinds, size], and that of each tile.

    Kind 0 has no flag. A ragged tile with a flag on each of its tokens counts as fully flagged.
    """
    spread = tiling.spread(flags)
    flagged = spread.sum(axis=1)
    spread[flagged == tiling.lengths] = True
    some = np.flatnonzero(flagged)
    example, kind = distinct(spread[some])
    of_tile = np.zeros(tiling.count, np.int64)
    of_tile[some] = kind + 1
    return np.concatenate([np.zeros((1, tiling.size), bool), spread[some[example]]]), of_tile


# Lists of block pairs; single edges are pairs of blocks of one token.


@tiles_of.register
def _(graph: EdgeList, grid: Grid, limit: TileSet | None, _level: int) -> TileSet:
    edges = graph.edges(grid.keys.tokens)
    if grid.queries.tokens < grid.keys.tokens:
        start, stop = grid.queries.extent
        edges = edges[np.searchsorted(edges[:, 0], start) : np.searchsorted(edges[:, 0], stop)]
    return of_blocks(grid, 1, 1, 0, edges[:, 0], edges[:, 1]).within(limit)


@tiles_of.register
def _(graph: RandomBlocks, grid: Grid, limit: TileSet | None, _level: int) -> TileSet:
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


# Sizes of tiles, and orders of tokens, that suit a graph.


def pieces(graph: Graph) -> Iterator[Graph]:
    """Yield the pieces that a graph is combined from."""
    if not graph.combines:
        yield graph
    for part in graph.combines:
        yield from pieces(part)


def tile_size(graph: Graph) -> int:
    """Return a tile size that cuts few blocks of the graph; 64 unless the pieces agree."""
    preferred = {piece.tile_size for piece in pieces(graph) if piece.tile_size}
    size = gcd(*preferred)
    return size if 16 <= size <= 128 else 64


def common_stride(graph: Graph, n: int) -> int:
    """Return the dilation by which sorting makes all windows contiguous, or 1."""
    stride = graph.sort_modulus or 1
    return stride if n // stride >= 16 else 1
