"""Patterns that a rule on the two positions defines: full, causal, windows of tokens or blocks."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.graph.arguments import integer
from longbird.graph.base import Graph

Positions = npt.NDArray[np.int64]


class _Rule(Graph):
    """A graph defined by `edge(i, j)`, which broadcasts over integer arrays.

    The rule does not change when both positions move by a multiple of `period`; layouts use that
    to compute a mask once however long the sequence is.
    """

    @abstractmethod
    def edge(self, i: Positions, j: Positions) -> npt.NDArray[np.bool_]:
        """Whether query `i` attends to key `j`."""

    @property
    def period(self) -> int:
        """How far both positions can move without changing the rule."""
        return 1

    def _counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        positions = np.arange(n)
        return self.edge(positions[:, None], positions[None, :])


@dataclass(frozen=True, eq=False)
class Full(_Rule):
    """Every query attends to every key.

    Examples:
        >>> Full().mask(2)
        array([[[ True,  True],
                [ True,  True]]])
    """

    def edge(self, i: Positions, j: Positions) -> npt.NDArray[np.bool_]:
        """Always."""
        return np.ones(np.broadcast(i, j).shape, bool)


@dataclass(frozen=True, eq=False)
class Causal(_Rule):
    """Every query attends to the keys up to its own position: `j <= i`.

    Examples:
        >>> Causal().mask(3)[0].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])
    """

    def edge(self, i: Positions, j: Positions) -> npt.NDArray[np.bool_]:
        """`j <= i`."""
        return j <= i


@dataclass(frozen=True, eq=False)
class Window(_Rule):
    """Every query attends to `radius` keys on each side and to itself, `dilation` apart.

    A dilated window costs what a plain one with the same number of keys costs.

    Args:
        radius: Keys on each side, 0 or more.
        dilation: Distance between neighbouring keys, 1 or more.

    Examples:
        >>> Window(1, dilation=2).mask(5)[0].astype(int)
        array([[1, 0, 1, 0, 0],
               [0, 1, 0, 1, 0],
               [1, 0, 1, 0, 1],
               [0, 1, 0, 1, 0],
               [0, 0, 1, 0, 1]])
    """

    radius: int
    dilation: int = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            radius=integer(self.radius, "Window radius"),
            dilation=integer(self.dilation, "Window dilation", least=1),
        )
        super().__post_init__()

    def edge(self, i: Positions, j: Positions) -> npt.NDArray[np.bool_]:
        """`|i - j| <= radius * dilation` and `(i - j) % dilation == 0`."""
        near = abs(i - j) <= self.radius * self.dilation
        return near if self.dilation == 1 else near & ((i - j) % self.dilation == 0)


@dataclass(frozen=True, eq=False)
class BlockWindow(_Rule):
    """Every block of queries attends to its own block and to `width // 2` blocks on each side.

    Args:
        width: Blocks in the window, an odd number.
        block: Tokens in a block; the last block may have fewer.

    Examples:
        >>> BlockWindow(width=3, block=2).mask(6)[0].astype(int)
        array([[1, 1, 1, 1, 0, 0],
               [1, 1, 1, 1, 0, 0],
               [1, 1, 1, 1, 1, 1],
               [1, 1, 1, 1, 1, 1],
               [0, 0, 1, 1, 1, 1],
               [0, 0, 1, 1, 1, 1]])
    """

    width: int = 3
    block: int = 64

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            width=integer(self.width, "BlockWindow width", least=1),
            block=integer(self.block, "BlockWindow block", least=1),
        )
        if self.width % 2 == 0:
            raise ValueError(
                f"BlockWindow width must be odd (the own block and as many on each side), "
                f"received {self.width}"
            )
        super().__post_init__()

    @property
    def period(self) -> int:
        """One block."""
        return self.block

    def edge(self, i: Positions, j: Positions) -> npt.NDArray[np.bool_]:
        """`|i // block - j // block| <= width // 2`."""
        return abs(i // self.block - j // self.block) <= self.width // 2
