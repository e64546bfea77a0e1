"""Sets of edges as sorted tiles with deduplicated bit masks, and their union and intersection.

Time and memory are proportional to the tiles that have an edge, never to tokens x tokens, and each
pair of masks is combined only once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.core.layout.tiling import Tiling

Codes = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint8]

FULL = -1

# Number of unpacked mask elements that are in memory at a time while masks are computed.
CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid of tiles: rows of queries, columns of keys, and a number of heads."""

    queries: Tiling
    keys: Tiling
    heads: int

    @property
    def size(self) -> int:
        """Maximum number of tokens in a tile."""
        return self.queries.size

    @property
    def cells(self) -> int:
        """Number of tiles of one head, with and without edges."""
        return self.queries.count * self.keys.count

    def code(self, row: Any, column: Any, head: Any = 0) -> Codes:
        """Return the number of a tile, in the order head, row, column."""
        return (head * self.queries.count + row) * self.keys.count + column

    def place(self, codes: Codes) -> tuple[Codes, Codes]:
        """Return the row and column of each tile."""
        lines, columns = split(codes, max(self.keys.count, 1))
        return split(lines, max(self.queries.count, 1))[1], columns


@dataclass(frozen=True, eq=False)
class TileSet:
    """The tiles of a grid that have an edge.

    Attributes:
        grid: Grid of the tiles.
        heads: Number of heads, or 1 if all heads of the grid share the tiles.
        codes: int64 [tiles], ascending and distinct; see `Grid.code`.
        mask_ids: int64 [tiles], index into `masks`, or -1 if every query sees every key.
        masks: uint8 [masks, size, bytes]; bit i % 8 of [m, j, i // 8]: query i sees key j.
    """

    grid: Grid
    heads: int
    codes: Codes
    mask_ids: Codes
    masks: Masks

    @staticmethod
    def full(grid: Grid, codes: Codes, heads: int = 1) -> TileSet:
        """Return tiles with all their edges."""
        ids = np.full(len(codes), FULL, np.int64)
        return TileSet(grid, heads, codes, ids, no_masks(grid.size))

    @staticmethod
    def empty(grid: Grid) -> TileSet:
        """Return the empty set."""
        return TileSet.full(grid, np.zeros(0, np.int64))

    @staticmethod
    def of_masks(grid: Grid, heads: int, codes: Codes, ids: Codes, masks: Masks) -> TileSet:
        """Return tiles with the given masks; full and empty tiles are recognised."""
        return TileSet(grid, heads, codes, ids, masks)._recognised(0)

    def __len__(self) -> int:
        """Return the number of tiles."""
        return len(self.codes)

    def _keep(self, kept: npt.NDArray[np.bool_]) -> TileSet:
        return replace(self, codes=self.codes[kept], mask_ids=self.mask_ids[kept])

    def _compact(self, blank: npt.NDArray[np.bool_]) -> TileSet:
        """Remove the tiles of blank masks, and the masks that no tile uses."""
        kept = self._keep(~np.append(blank, False)[self.mask_ids]) if blank.any() else self
        used = np.zeros(len(self.masks) + 1, bool)
        used[kept.mask_ids] = True
        used[FULL] = False
        if used[:-1].all():
            return kept
        number = np.append(np.cumsum(used[:-1]) - 1, FULL)
        return replace(kept, mask_ids=number[kept.mask_ids], masks=self.masks[used[:-1]])

    def for_heads(self, heads: int) -> TileSet:
        """Return the same tiles for each head, if all heads share them so far."""
        if self.heads == heads:
            return self
        shift = np.arange(heads)[:, None] * self.grid.cells
        codes = (shift + self.codes).reshape(-1)
        return replace(self, heads=heads, codes=codes, mask_ids=np.tile(self.mask_ids, heads))

    def of_head(self, head: int) -> TileSet:
        """Return the tiles of one head as a set that all heads share."""
        if self.heads == 1:
            return self
        cells = self.grid.cells
        begin, end = np.searchsorted(self.codes, [head * cells, (head + 1) * cells])
        codes, ids = self.codes[begin:end] - head * cells, self.mask_ids[begin:end]
        return replace(self, heads=1, codes=codes, mask_ids=ids)

    @staticmethod
    def of_heads(grid: Grid, sets: list[TileSet]) -> TileSet:
        """Return the set that consists of a set of tiles for each head."""
        codes = [tiles.codes + head * grid.cells for head, tiles in enumerate(sets)]
        mask_ids, masks = pooled(sets, grid.size)
        return TileSet(grid, len(sets), np.concatenate(codes), mask_ids, masks)._compact(
            np.zeros(len(masks), bool)
        )

    def within(self, limit: TileSet | None) -> TileSet:
        """Return only the tiles that `limit` also has, regardless of its masks."""
        if limit is None:
            return self
        heads = max(self.heads, limit.heads)
        tiles, limit = self.for_heads(heads), limit.for_heads(heads)
        return tiles._keep(_find(limit.codes, tiles.codes)[1])

    def __or__(self, other: TileSet) -> TileSet:
        """Return the edges of either set."""
        if not len(self) or not len(other):
            return self if len(self) else other
        heads = max(self.heads, other.heads)
        a, b = self.for_heads(heads), other.for_heads(heads)
        masks = np.concatenate([a.masks, b.masks])
        a_ids = a.mask_ids.copy()
        b_ids = np.where(b.mask_ids < 0, FULL, b.mask_ids + len(a.masks))
        at, met = _find(a.codes, b.codes)
        a_ids[at[met]], masks = _combine(masks, a_ids[at[met]], b_ids[met], np.bitwise_or)
        new = ~met
        united = replace(
            a,
            codes=np.insert(a.codes, at[new], b.codes[new]),
            mask_ids=np.insert(a_ids, at[new], b_ids[new]),
            masks=masks,
        )
        return united._recognised(len(a.masks) + len(b.masks))

    def __and__(self, other: TileSet) -> TileSet:
        """Return the edges of both sets."""
        heads = max(self.heads, other.heads)
        a, b = self.for_heads(heads), other.for_heads(heads)
        masks = np.concatenate([a.masks, b.masks])
        at, met = _find(a.codes, b.codes)
        a_ids = a.mask_ids[at[met]]
        b_ids = np.where(b.mask_ids < 0, FULL, b.mask_ids + len(a.masks))[met]
        ids, masks = _combine(masks, a_ids, b_ids, np.bitwise_and)
        shared = TileSet(a.grid, heads, b.codes[met], ids, masks)
        return shared._recognised(len(a.masks) + len(b.masks))

    def _recognised(self, known: int) -> TileSet:
        """Replace solid masks by full tiles and remove blank ones, from mask `known` on."""
        if not len(self.masks):
            return self
        new = self.masks[known:]
        blank, solid = (np.zeros(len(self.masks) + 1, bool) for _ in range(2))
        blank[known:-1] = ~new.any(axis=(1, 2))
        solid[known:-1] = (new == pack(np.ones((1, *[self.grid.size] * 2), bool))).all(axis=(1, 2))
        ids = np.where(solid[self.mask_ids], FULL, self.mask_ids)
        return replace(self, mask_ids=ids)._compact(blank[:-1])

    def trimmed(self) -> TileSet:
        """Recognise ragged tiles that are full or empty if only existing tokens count."""
        if not len(self.masks):
            return self
        rows, columns = self.grid.place(self.codes)
        queries, keys = self.grid.queries.lengths[rows], self.grid.keys.lengths[columns]
        ragged = (queries < self.grid.size) | (keys < self.grid.size)
        partial = np.flatnonzero(ragged & (self.mask_ids >= 0))
        if not len(partial):
            return self
        ids, lost = self.mask_ids.copy(), np.zeros(len(self), bool)
        shape = queries[partial] * (self.grid.size + 1) + keys[partial]
        for one in np.unique(shape):
            here = partial[shape == one]
            used, inverse = np.unique(ids[here], return_inverse=True)
            bits = unpack(self.masks[used], self.grid.size)
            bits = bits[:, : keys[here[0]], : queries[here[0]]]
            ids[here[np.all(bits, axis=(1, 2))[inverse]]] = FULL
            lost[here[~np.any(bits, axis=(1, 2))[inverse]]] = True
        return replace(self, mask_ids=ids)._keep(~lost)._compact(np.zeros(len(self.masks), bool))


def pooled(sets: list[TileSet], size: int) -> tuple[Codes, Masks]:
    """Return the mask ids of all sets, one after the other, for one pool of different masks."""
    offset, ids = 0, []
    for tiles in sets:
        ids.append(np.where(tiles.mask_ids < 0, FULL, tiles.mask_ids + offset))
        offset += len(tiles.masks)
    mask_ids = np.concatenate(ids)
    if not offset:
        return mask_ids, no_masks(size)
    masks = np.concatenate([tiles.masks for tiles in sets])
    example, number = distinct(masks)
    return np.append(number, FULL)[mask_ids], masks[example]


def _find(codes: Codes, wanted: Codes) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """Return the place of each wanted code among sorted codes, and whether it is present."""
    at = np.searchsorted(codes, wanted)
    return at, np.append(codes, -1)[at] == wanted


def _combine(masks: Masks, a: Codes, b: Codes, operate: np.ufunc) -> tuple[Codes, Masks]:
    """Combine the masks a[k] and b[k] for all k, each pair of masks once.

    Returns:
        Ids of the results, and the masks with new masks appended.
    """
    ids = np.where(a == b, a, FULL) if operate is np.bitwise_or else np.where(a == FULL, b, a)
    mixed = np.flatnonzero((a != b) & (a != FULL) & (b != FULL))
    if not len(mixed):
        return ids, masks
    pairs, inverse = np.unique(a[mixed] * len(masks) + b[mixed], return_inverse=True)
    left, right = split(pairs, len(masks))
    ids[mixed] = len(masks) + inverse
    return ids, np.concatenate([masks, operate(masks[left], masks[right])])


def split(numbers: Codes, by: int) -> tuple[Codes, Codes]:
    """Return quotient and remainder of non-negative numbers, faster than np.divmod."""
    quotient = numbers // by
    return quotient, numbers - quotient * by


def ranges(start: Codes, length: Codes) -> Codes:
    """Return the ranges of `length` numbers from `start`, one after the other."""
    start, length = start.reshape(-1), length.reshape(-1)
    end = np.cumsum(length)
    return np.arange(length.sum()) + np.repeat(start - (end - length), length)


def distinct(rows: npt.NDArray[Any]) -> tuple[Codes, Codes]:
    """Return the index of one row of each kind, and the kind of each row, compared bytewise."""
    width = prod(rows.shape[1:]) * rows.itemsize
    words = np.ascontiguousarray(rows).reshape(-1).view(np.dtype((np.void, width)))
    _, example, kind = np.unique(words, return_index=True, return_inverse=True)
    return example, kind.reshape(-1)


def no_masks(size: int) -> Masks:
    """Return an empty pool of masks."""
    return np.zeros((0, size, -(-size // 8)), np.uint8)


def pack(bits: npt.NDArray[np.bool_]) -> Masks:
    """Return the masks of bools [masks, key, query]."""
    return np.packbits(bits, axis=2, bitorder="little")


def unpack(masks: Masks, size: int) -> npt.NDArray[np.bool_]:
    """Return the bools [masks, key, query] of masks."""
    return np.unpackbits(masks, axis=2, bitorder="little", count=size).view(bool)
