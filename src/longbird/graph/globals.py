"""Tokens that see everything and are seen by everything."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.graph.arguments import MOST_TOKENS, integer
from longbird.graph.base import Graph


class _Global(Graph):
    """A graph defined by `flags(n)`: an edge (i, j) where `i` or `j` is flagged."""

    @abstractmethod
    def flags(self, n: int) -> npt.NDArray[np.bool_]:
        """Which of `n` tokens are global: bool [n]."""

    def _counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        flags = self.flags(n)
        return flags[:, None] | flags[None, :]


@dataclass(frozen=True, eq=False, init=False)
class GlobalTokens(_Global):
    """The tokens at these positions attend to every token and every token attends to them.

    Args:
        positions: Positions of the global tokens; a negative one counts from the end. One that
            does not exist at a length is a ValueError at that length.

    Examples:
        >>> GlobalTokens([0, -1]).mask(4)[0].astype(int)
        array([[1, 1, 1, 1],
               [1, 0, 0, 1],
               [1, 0, 0, 1],
               [1, 1, 1, 1]])
    """

    positions: tuple[int, ...]

    def __init__(self, positions: Iterable[int]) -> None:
        """Check and sort the positions; their order and repetition have no meaning."""
        if isinstance(positions, (str, bytes)) or not isinstance(positions, Iterable):
            raise TypeError(
                f"GlobalTokens positions must be a sequence of integers, received "
                f"{positions!r} ({type(positions).__name__})"
            )
        name = "each of the GlobalTokens positions"
        checked = {integer(position, name, least=-MOST_TOKENS) for position in positions}
        self._set(positions=tuple(sorted(checked)))
        super().__post_init__()

    def flags(self, n: int) -> npt.NDArray[np.bool_]:
        """Which of `n` tokens are global: bool [n]."""
        missing = [p for p in self.positions if not -n <= p < n]
        if missing:
            raise ValueError(
                f"GlobalTokens position {missing[0]} does not exist in a sequence of {n} tokens"
            )
        flags = np.zeros(n, bool)
        flags[list(self.positions)] = True
        return flags


@dataclass(frozen=True, eq=False)
class GlobalBlocks(_Global):
    """The tokens of the first and last blocks attend to all and are attended to by all.

    Args:
        first: Number of global blocks at the beginning.
        last: Number of global blocks at the end. The very last block may be ragged: with blocks
            of 64, the last one of 70 tokens has 6.
        block: Tokens in a block. In a sequence of fewer blocks than asked for, all are global.

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

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            first=integer(self.first, "GlobalBlocks first"),
            last=integer(self.last, "GlobalBlocks last"),
            block=integer(self.block, "GlobalBlocks block", least=1),
        )
        super().__post_init__()

    def flags(self, n: int) -> npt.NDArray[np.bool_]:
        """Which of `n` tokens are global: bool [n]."""
        block_of_token = np.arange(n) // self.block
        blocks = -(-n // self.block)
        return (block_of_token < self.first) | (block_of_token >= blocks - self.last)
