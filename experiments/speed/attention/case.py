"""What everybody does: attention of one length along one graph."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from longbird.core.graph.base import Graph
from longbird.core.graph.presets import bigbird
from longbird.core.graph.windows import Causal, Full


@dataclass(frozen=True)
class Case:
    """Tokens, and the graph and the heads that attend along it; by default those of the targets.

    Attributes:
        n: Tokens.
        backward: Forward and backward, rather than forward alone?
        heads: Heads.
        head_dim: Their size.
        block: Tokens in a block of the BigBird graph.
        window: Blocks in its window.
        random: Random blocks of a row.
        batch: Sequences.
        pattern: bigbird, full or causal.
        task: attention; or layout, or time per token.
    """

    n: int
    backward: bool = False
    heads: int = 12
    head_dim: int = 64
    block: int = 64
    window: int = 3
    random: int = 3
    batch: int = 1
    pattern: str = "bigbird"
    task: str = "attention"

    layers = 1

    @property
    def kind(self) -> Hashable:
        """The same for cases that differ in their length alone."""
        return replace(self, n=0)

    @property
    def mode(self) -> str:
        """In words."""
        return "forward and backward" if self.backward else "forward"

    @property
    def graph(self) -> Graph:
        """The graph that is attended along."""
        if self.pattern == "bigbird":
            return bigbird(block=self.block, window=self.window, random=self.random)
        return {"full": Full(), "causal": Causal()}[self.pattern]

    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, contiguous float32, the same at every call."""
        generator = torch.Generator().manual_seed(0)
        shape = (self.batch, self.heads, self.n, self.head_dim)
        q, k, v = (torch.randn(shape, generator=generator) for _ in range(3))
        return q, k, v

    @property
    def work(self) -> str:
        """All but the length, in one line for reports."""
        return (
            f"BigBird graph, block {self.block}, window {self.window}, random {self.random}, "
            f"two global blocks, {self.heads} heads of {self.head_dim}, fp32, batch {self.batch}"
        )
