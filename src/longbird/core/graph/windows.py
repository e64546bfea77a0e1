"""Patterns that are rules on the two positions: full, causal, windows of tokens or blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import integer, tile_for
from longbird.core.graph.base import Graph
from longbird.core.graph.reach import Reach
from longbird.core.graph.rules import Positions
from longbird.errors import InvalidValueError

# Number of spans beyond which listing them separately takes more memory than it saves.
MOST_SPANS = 2**24


@dataclass(frozen=True)
class Full(Graph):
    """Every query attends to every key.

    Examples:
        >>> Full().mask(2)
        array([[[ True,  True],
                [ True,  True]]])
    """

    kind, streams, period, sort_modulus = "window", True, 1, None

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return True for every pair."""
        return (i <= j) | (i > j)

    def tile_count(self, n: int, size: int) -> float:
        """Return the number of all tiles."""
        return float(-(-n // size)) ** 2


@dataclass(frozen=True)
class Causal(Graph):
    """Every query attends to the keys up to its own position: `j <= i`.

    Examples:
        >>> Causal().mask(3)[0].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])
    """

    kind, streams, period, sort_modulus = "window", True, 1, None

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return whether `j <= i`."""
        return j <= i

    def reach(self, n: int) -> Reach:
        """Return a reach of all tokens behind and none ahead."""
        return Reach(ahead=0)

    def tile_count(self, n: int, size: int) -> float:
        """Return half of the tiles, and the diagonal."""
        rows = float(-(-n // size))
        return rows * (rows + 1) / 2


@dataclass(frozen=True)
class Window(Graph):
    """Every query attends to `radius` keys on each side and to itself, `dilation` apart.

    A dilated window costs what a plain one with the same number of keys costs.

    Args:
        radius: Number of keys on each side, 0 or more.
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

    kind, streams, period = "window", True, 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            radius=integer(self.radius, "Window radius"),
            dilation=integer(self.dilation, "Window dilation", least=1),
        )
        self._set(sort_modulus=self.dilation)
        super().__post_init__()

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return whether `|i - j| <= radius * dilation` and `(i - j) % dilation == 0`."""
        near = abs(i - j) <= self.radius * self.dilation
        return near if self.dilation == 1 else near & ((i - j) % self.dilation == 0)

    def reach(self, n: int) -> Reach:
        """Return `radius * dilation` for both sides."""
        side = self.radius * self.dilation
        return Reach(side, side)

    def spans(self, first: Positions, last: Positions, n: int) -> tuple[Positions, Positions]:
        """Return one span, or one for each key where the keys of a tile are few and far apart."""
        step = self.dilation
        radius = min(self.radius, n // step)
        near = (last - first).max(initial=0) >= step - 1
        if near or len(first) * (2 * radius + 1) > MOST_SPANS:
            return first - radius * step, last + radius * step
        offset = np.arange(-radius, radius + 1) * step
        return first + offset, last + offset

    def tile_count(self, n: int, size: int) -> float:
        """Return the tiles that the window covers in each row, or one for each key."""
        rows = -(-n // size)
        keys = 2 * self.radius + 1
        return rows * min(rows, 2 * keys, 2 + keys * self.dilation / size)


@dataclass(frozen=True)
class BlockWindow(Graph):
    """Every block of queries attends to its own block and to `width // 2` blocks on each side.

    Args:
        width: Number of blocks in the window, an odd number.
        block: Number of tokens in a block; the last block may have fewer.

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

    kind, streams = "window", True

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            width=integer(self.width, "BlockWindow width", least=1),
            block=integer(self.block, "BlockWindow block", least=1),
        )
        if self.width % 2 == 0:
            raise InvalidValueError(
                f"BlockWindow width must be odd (its own block, and as many on each side), "
                f"received {self.width}"
            )
        self._set(period=self.block, tile_size=tile_for(self.block))
        super().__post_init__()

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return whether `|i // block - j // block| <= width // 2`."""
        return abs(i // self.block - j // self.block) <= self.width // 2

    def reach(self, n: int) -> Reach:
        """Return the distance from the last token of a block to the first token of the window."""
        side = (self.width // 2 + 1) * self.block - 1
        return Reach(side, side)

    def spans(self, first: Positions, last: Positions, n: int) -> tuple[Positions, Positions]:
        """Return spans of whole blocks."""
        block, side = self.block, self.width // 2
        return (first // block - side) * block, (last // block + side + 1) * block - 1

    def tile_count(self, n: int, size: int) -> float:
        """Return the tiles that the window covers in each row."""
        rows = -(-n // size)
        return rows * min(rows, 1 + self.width * self.block / size)
