"""Tokens that see all tokens and are seen by all tokens."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import MOST_TOKENS, integer, shown, tile_for
from longbird.core.graph.base import Graph
from longbird.core.graph.reach import Reach
from longbird.core.graph.rules import Positions
from longbird.errors import InvalidTypeError, InvalidValueError

# Number of positions up to which repr lists them.
FEW = 100
# A position takes more than a hundred bytes, besides a row and a column of edges.
MOST_POSITIONS = 2**22


class GlobalPiece(Graph, abstract=True):
    """A piece that is defined by its global tokens: (i, j) is an edge if `i` or `j` is global."""

    kind = "global"

    @abstractmethod
    def flagged(self, n: int) -> tuple[Positions, Positions]:
        """Return the first and last tokens of ranges of global tokens among `n`: [1, ranges]."""

    def flags(self, n: int) -> npt.NDArray[np.bool_]:
        """Return which of `n` tokens are global: bool [n]."""
        flags = np.zeros(n, bool)
        for first, last in np.hstack([side.T for side in self.flagged(n)]).tolist():
            flags[first : last + 1] = True
        return flags

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return whether the query or the key is global."""
        flags = self.flags(n)
        return flags[:, None] | flags[None, :]

    def spans(self, first: Positions, last: Positions, n: int) -> tuple[Positions, Positions]:
        """Return the global tokens, and all tokens for tiles with a global query."""
        low, high = self.flagged(n)
        within = ((low <= last) & (high >= first)).any(axis=1, keepdims=True)
        rows = len(first), low.shape[1]
        return (
            np.hstack([0 * first, np.broadcast_to(low, rows)]),
            np.hstack([np.where(within, n - 1, -1), np.broadcast_to(high, rows)]),
        )


@dataclass(frozen=True, init=False)
class GlobalTokens(GlobalPiece):
    """The tokens at these positions attend to every token and every token attends to them.

    Args:
        positions: Positions of the global tokens; negative positions count from the end. A
            position that does not exist at a length raises a ValueError at that length.

    Examples:
        >>> GlobalTokens([0, -1]).mask(4)[0].astype(int)
        array([[1, 1, 1, 1],
               [1, 0, 0, 1],
               [1, 0, 0, 1],
               [1, 1, 1, 1]])
    """

    positions: tuple[int, ...]

    advice = "count its positions from the beginning"

    def __init__(self, positions: Iterable[int]) -> None:
        """Check and sort the positions; their order and repetition do not matter."""
        try:
            if isinstance(positions, (str, bytes, Mapping)):
                raise TypeError
            given = list(itertools.islice(positions, MOST_POSITIONS + 1))
        except TypeError:
            raise InvalidTypeError(
                f"GlobalTokens positions must be a sequence of integers, received "
                f"{shown(positions)} ({type(positions).__name__})"
            ) from None
        if len(given) > MOST_POSITIONS:
            raise InvalidValueError(
                f"GlobalTokens takes up to {MOST_POSITIONS:,} positions, received more: "
                f"{shown(positions)}; where so many tokens see everything, take Full()"
            )
        name = "each of the GlobalTokens positions"
        checked = {integer(position, name, least=-MOST_TOKENS) for position in given}
        self._set(
            positions=tuple(sorted(checked)),
            streams=min(checked, default=0) >= 0,
            least_tokens=max((max(p + 1, -p) for p in checked), default=1),
        )
        super().__post_init__()

    def flagged(self, n: int) -> tuple[Positions, Positions]:
        """Return each token as a range; raise a ValueError if a position does not exist."""
        missing = [p for p in self.positions if not -n <= p < n]
        if missing:
            raise InvalidValueError(
                f"GlobalTokens position {missing[0]} does not exist in a sequence of {n} tokens"
            )
        token = np.array([self.positions], np.int64).reshape(1, -1) % max(n, 1)
        return token, token

    def flags(self, n: int) -> npt.NDArray[np.bool_]:
        """Return which of `n` tokens are global: bool [n]."""
        flags = np.zeros(n, bool)
        flags[self.flagged(n)[0]] = True
        return flags

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return whether `i` or `j` is one of the positions."""
        wanted = (position + n if position < 0 else position for position in self.positions)
        found = ((i == token) | (j == token) for token in wanted)
        return functools.reduce(operator.or_, found, (i < j) & (i > j))

    def reach(self, n: int) -> Reach:
        """Return a reach in which the keys before the last global query are sinks."""
        if not self.streams:
            return Reach()
        last = max(self.positions, default=-1)
        return Reach(0, math.inf if self.positions else 0, last + 1)

    def tile_count(self, n: int, size: int) -> float:
        """Return the number of tiles in the rows and columns of global tokens."""
        rows = -(-n // size)
        return rows * min(rows, 2 * len(self.positions))

    def __repr__(self) -> str:
        """Return the expression, with the number of positions if they are many."""
        if len(self.positions) <= FEW:
            return super().__repr__()
        return f"GlobalTokens(<{len(self.positions)} positions>)"


@dataclass(frozen=True)
class GlobalBlocks(GlobalPiece):
    """The tokens of the first and last blocks attend to all and are attended to by all.

    Args:
        first: Number of global blocks at the beginning.
        last: Number of global blocks at the end. The last block may be ragged: with blocks of 64,
            the last block of 70 tokens has 6.
        block: Number of tokens in a block. If a sequence has fewer blocks, all of them are global.

    Examples:
        >>> GlobalBlocks(first=1, last=0, block=2).mask(4)[0].astype(int)
        array([[1, 1, 1, 1],
               [1, 1, 1, 1],
               [1, 1, 0, 0],
               [1, 1, 0, 0]])
    """

    first: int = 1
    last: int = 1
    block: int = 64

    advice = "set its last=0 (of bigbird: global_last=0, and random=0)"

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            first=integer(self.first, "GlobalBlocks first"),
            last=integer(self.last, "GlobalBlocks last"),
            block=integer(self.block, "GlobalBlocks block", least=1),
        )
        self._set(streams=self.last == 0, tile_size=tile_for(self.block))
        super().__post_init__()

    def flagged(self, n: int) -> tuple[Positions, Positions]:
        """Return the ranges at the beginning and at the end."""
        blocks = -(-n // self.block)
        head = min(self.first * self.block, n)
        tail = min(max(blocks - self.last, 0) * self.block, n)
        return np.array([[0, tail]]), np.array([[head - 1, n - 1]])

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return whether `i` or `j` is in one of the blocks."""
        (_, tail), (head, _) = (side[0].tolist() for side in self.flagged(n))
        found = (i <= head) | (j <= head)
        return found | (i >= tail) | (j >= tail) if self.last else found

    def reach(self, n: int) -> Reach:
        """Return a reach in which the keys before the last global query are sinks."""
        if not self.streams:
            return Reach()
        return Reach(0, math.inf if self.first else 0, self.first * self.block)

    def tile_count(self, n: int, size: int) -> float:
        """Return the number of tiles in the rows and columns of global tokens."""
        rows = -(-n // size)
        return rows * min(rows, 2 * (self.first + self.last) * (1 + self.block / size))
