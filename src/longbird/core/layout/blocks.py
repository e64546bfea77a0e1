"""Conversion of lists of block pairs to tiles, for any sizes of blocks and tiles.

Single edges are pairs of blocks of one token.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from longbird.core.graph.random import draw
from longbird.core.layout.tiles import (
    CHUNK,
    Codes,
    Grid,
    Masks,
    TileSet,
    no_masks,
    pack,
    ranges,
    split,
)
from longbird.errors import InvalidValueError


def of_blocks(grid: Grid, block: int, heads: int, head: Any, row: Codes, column: Codes) -> TileSet:
    """Return the tiles of distinct block pairs (head, row, column), each with all its edges.

    Takes O(pairs log pairs). If tiles contain several pairs or parts of pairs, hashes of their
    contents tell which masks are equal, and only different masks are built.

    Args:
        grid: Grid of the tiles, with tokens in the order of the sequence.
        block: Number of tokens in a block.
        heads: Number of heads, or 1 if all heads share the pairs.
        head: Head of each pair, or 0.
        row: Query block of each pair; each has a query of the grid.
        column: Key block of each pair.
    """
    if not len(row):
        return TileSet.empty(grid)
    size = grid.size
    start, stop = grid.queries.extent
    query, key = row * block - start, column * block  # where each pair begins
    if size % block == 0 and start % block == 0:  # no block is cut
        row_tile, column_tile = query // size, key // size
    else:
        row_tile, high = _first_and_last_tile(query, block, stop - start, size)
        column_tile, wide = _first_and_last_tile(key, block, grid.keys.tokens, size)
        high, wide = high - row_tile + 1, wide - column_tile + 1
        pair = np.repeat(np.arange(len(row)), high * wide)
        across, down = np.divmod(ranges(0 * high, high * wide), high[pair])
        query, key, head = query[pair], key[pair], np.broadcast_to(head, row.shape)[pair]
        row_tile, column_tile = row_tile[pair] + down, column_tile[pair] + across
    codes = grid.code(row_tile, column_tile, head)
    if block % size == 0 and start % size == 0:
        return TileSet.full(grid, np.sort(codes), heads)
    local = _local(query - row_tile * size, block, size)
    local = local * (2 * size) + _local(key - column_tile * size, block, size)
    kinds = (2 * size) ** 2
    if heads * grid.cells * kinds >= 2**63:
        raise InvalidValueError(
            f"{grid.keys.tokens} tokens are too many for blocks of {block} in tiles of {size} "
            f"and {heads} heads; choose a tile size that divides the block"
        )
    codes *= kinds  # in place, because there can be tens of millions
    codes += local
    codes.sort()
    codes, local = split(codes, kinds)
    first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
    length = np.diff(first, append=len(codes))
    example, ids = _distinct_sets(local, first, length, kinds)
    number = np.repeat(np.arange(len(example)), length[example])
    rows, columns = split(local[ranges(first[example], length[example])], 2 * size)
    masks = _painted(number, rows, columns, block, size)
    return TileSet.of_masks(grid, heads, codes[first], ids, masks)


def _first_and_last_tile(start: Codes, block: int, stop: int, size: int) -> tuple[Codes, Codes]:
    """Return the first and last tile of the positions `start` to `start + block - 1`."""
    return np.maximum(start, 0) // size, (np.minimum(start + block, stop) - 1) // size


# On one axis, the part of a block that lies in a tile is one of 2 * size intervals: it begins in
# the tile (its number is where), or before the tile (its number is size + where it ends).


def _local(offset: Codes, block: int, size: int) -> Codes:
    return np.where(offset >= 0, offset, size - 1 + np.minimum(offset + block, size))


def _interval(local: Codes, block: int, size: int) -> tuple[Codes, Codes]:
    begin = np.where(local < size, local, 0)
    return begin, np.where(local < size, np.minimum(local + block, size), local - size + 1)


def _distinct_sets(local: Codes, first: Codes, length: Codes, kinds: int) -> tuple[Codes, Codes]:
    """Find which of the sets local[first[k] : first[k] + length[k]] are equal.

    Returns:
        Number of one set of each kind, and the kind of each set.
    """
    # Sets of one element, of which there can be millions, are distinguished by it.
    alone, several = np.flatnonzero(length == 1), np.flatnonzero(length > 1)
    example = np.full(kinds, -1)
    example[local[first[alone]]] = alone
    used = example >= 0
    kind = np.empty(len(first), np.int64)
    kind[alone] = (np.cumsum(used) - 1)[local[first[alone]]]
    if not len(several):
        return example[used], kind
    elements = local[ranges(first[several], length[several])]
    begin = np.cumsum(length[several]) - length[several]
    example_of, kind_of = _distinct_by_hash(elements, begin, kinds)
    kind[several] = used.sum() + kind_of
    return np.concatenate([example[used], several[example_of]]), kind


def _distinct_by_hash(local: Codes, first: Codes, kinds: int) -> tuple[Codes, Codes]:
    """Do the same for sets that are stored one after the other."""
    for salt in count():
        bits = draw(salt, np.arange(2)[:, None], np.arange(kinds))
        a, b = (np.add.reduceat(side[local], first) for side in bits)
        _, example, kind = np.unique(a, return_index=True, return_inverse=True)
        if np.array_equal(b[example][kind], b):  # else two different sets have the same hash `a`
            return example, kind
    raise AssertionError("some salt distinguishes all sets")


def _painted(number: Codes, rows: Codes, columns: Codes, block: int, size: int) -> Masks:
    """Return masks that are unions of disjoint rectangles; `number` ascends from 0."""
    masks = int(number[-1]) + 1
    painted = [no_masks(size)]
    chunk = max(1, CHUNK // (size + 1) ** 2)
    for begin in range(0, masks, chunk):
        end = min(begin + chunk, masks)
        part = slice(*np.searchsorted(number, [begin, end]))
        # Cumulative sums of these corners along both axes are rectangles.
        corners = np.zeros((end - begin, size + 1, size + 1), np.int8)
        mask = number[part] - begin
        top, bottom = _interval(rows[part], block, size)
        left, right = _interval(columns[part], block, size)
        np.add.at(corners, (mask, left, top), np.int8(1))
        np.add.at(corners, (mask, left, bottom), np.int8(-1))
        np.add.at(corners, (mask, right, top), np.int8(-1))
        np.add.at(corners, (mask, right, bottom), np.int8(1))
        inside = corners.cumsum(axis=1, dtype=np.int8).cumsum(axis=2, dtype=np.int8)
        painted.append(pack(inside[:, :size, :size] > 0))
    return np.concatenate(painted)
