"""Tilings: how a sequence is cut into tiles, the rows and columns of a layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Slots(NamedTuple):
    """Tiles padded to the same size; both arrays have the shape [tiles, size]."""

    token: npt.NDArray[np.int64]
    """Token in each slot; any token if the slot is empty."""
    exists: npt.NDArray[np.bool_]
    """Whether there is a token in the slot."""


@dataclass(frozen=True, eq=False)
class Tiling:
    """Tokens in some order, cut into tiles of at most `size`.

    Attributes:
        size: Maximum number of tokens in a tile.
        starts: int32 [tiles + 1]; tile t has the positions starts[t] to starts[t + 1] - 1.
        order: int32 [tokens], the token at each position; None if position p is token p.
        step: Distance between the tokens of a tile.

    Examples:
        >>> tiling = Tiling.contiguous(10, size=4)
        >>> tiling.starts
        array([ 0,  4,  8, 10], dtype=int32)
        >>> Tiling.strided(7, size=2, step=3).order
        array([0, 3, 6, 1, 4, 2, 5], dtype=int32)
    """

    size: int
    starts: npt.NDArray[np.int32]
    order: npt.NDArray[np.int32] | None = None
    step: int = 1

    @staticmethod
    def contiguous(stop: int, size: int, start: int = 0) -> Tiling:
        """Return a tiling of the tokens `start` to `stop - 1` in the order of the sequence."""
        tokens = stop - start
        starts = np.minimum(np.arange(-(-tokens // size) + 1) * size, tokens)
        order = np.arange(start, stop, dtype=np.int32) if start else None
        return Tiling(size, _frozen(starts), None if order is None else _frozen(order))

    @staticmethod
    def strided(stop: int, size: int, step: int, start: int = 0) -> Tiling:
        """Return a tiling of the same tokens sorted by `i % step`; no tile spans two residues.

        A window with this dilation is then a contiguous window of positions.
        """
        tokens = np.arange(start, stop)
        order = np.argsort(tokens % step, kind="stable")
        length = np.bincount(tokens % step, minlength=step)
        tiles = -(-length // size)
        first = np.cumsum(length) - length
        number = np.arange(tiles.sum()) - np.repeat(np.cumsum(tiles) - tiles, tiles)
        starts = np.append(np.repeat(first, tiles) + number * size, len(tokens))
        return Tiling(size, _frozen(starts), _frozen(tokens[order]), step)

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return int(self.starts[-1])

    @property
    def count(self) -> int:
        """Number of tiles."""
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Number of tokens in each tile."""
        return np.diff(self.starts).astype(np.int64)

    @cached_property
    def first(self) -> npt.NDArray[np.int64]:
        """First token of each tile; the others follow at distance `step`."""
        starts = self.starts[:-1]
        return (starts if self.order is None else self.order[starts]).astype(np.int64)

    @cached_property
    def last(self) -> npt.NDArray[np.int64]:
        """Last token of each tile."""
        return self.first + (self.lengths - 1) * self.step

    @property
    def extent(self) -> tuple[int, int]:
        """First token, and the one after the last, if tokens are in the order of the sequence."""
        start = int(self.first[0]) if self.count else 0
        return start, start + self.tokens

    @property
    def slots(self) -> Slots:
        """Tiles padded to the same size: the token in each slot, and whether there is one.

        Examples:
            >>> Tiling.contiguous(5, size=3).slots.token
            array([[0, 1, 2],
                   [3, 4, 4]])
            >>> Tiling.contiguous(5, size=3).slots.exists
            array([[ True,  True,  True],
                   [ True,  True, False]])
        """
        position = self.starts[:-1, None].astype(np.int64) + np.arange(self.size)
        exists = position < self.starts[1:, None]
        position = np.minimum(position, self.tokens - 1)
        token = position if self.order is None else self.order[position].astype(np.int64)
        return Slots(token, exists)

    def spread(self, values: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Arrange one flag for each token of the sequence by tiles: bool [tiles, size]."""
        slots = self.slots
        return values[slots.token] & slots.exists

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        return self.starts.nbytes + (0 if self.order is None else self.order.nbytes)


def _frozen(values: npt.NDArray[np.integer]) -> npt.NDArray[np.int32]:
    array = np.ascontiguousarray(values, dtype=np.int32)
    array.flags.writeable = False
    return array
