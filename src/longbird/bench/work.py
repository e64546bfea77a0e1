"""The work that a benchmark gives to every contestant."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from longbird.graph.base import Graph
from longbird.graph.presets import bigbird


@dataclass(frozen=True)
class Work:
    """A BigBird graph and the shape of the heads that attend along it.

    The defaults are the work of the design: 12 heads of 64, blocks of 64, a window of 3 blocks,
    3 random blocks, and a global block at either end.
    """

    heads: int = 12
    head_dim: int = 64
    block: int = 64
    window: int = 3
    random: int = 3
    batch: int = 1

    @property
    def graph(self) -> Graph:
        """The graph that is attended along."""
        return bigbird(block=self.block, window=self.window, random=self.random)

    def inputs(self, n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of n tokens, contiguous float32, the same at every call."""
        generator = torch.Generator().manual_seed(seed)
        shape = (self.batch, self.heads, n, self.head_dim)
        q, k, v = (torch.randn(shape, generator=generator) for _ in range(3))
        return q, k, v

    def __str__(self) -> str:
        """One line for reports."""
        return (
            f"BigBird graph, block {self.block}, window {self.window}, random {self.random}, "
            f"two global blocks, {self.heads} heads of {self.head_dim}, fp32, batch {self.batch}"
        )
