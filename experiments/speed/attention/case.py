"""Cases of the experiment `attention`: attention of one length along one graph."""

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
    """A length with a graph and heads; the defaults are those of the targets.

    Attributes:
        n: Number of tokens.
        backward: Whether to run forward and backward, rather than forward only.
        heads: Number of heads.
        head_dim: Head size.
        block: Block size of the BigBird graph.
        window: Number of blocks in its window.
        random: Number of random blocks per row.
        batch: Number of sequences.
        pattern: bigbird, full or causal.
        task: attention, layout or time per token.
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
        """A value that is equal for cases that differ only in length."""
        return replace(self, n=0)

    @property
    def mode(self) -> str:
        """Description of the passes."""
        return "forward and backward" if self.backward else "forward"

    @property
    def graph(self) -> Graph:
        """The graph of the pattern."""
        if self.pattern == "bigbird":
            return bigbird(block=self.block, window=self.window, random=self.random)
        return {"full": Full(), "causal": Causal()}[self.pattern]

    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return contiguous float32 queries, keys and values, the same in every call."""
        generator = torch.Generator().manual_seed(0)
        shape = (self.batch, self.heads, self.n, self.head_dim)
        q, k, v = (torch.randn(shape, generator=generator) for _ in range(3))
        return q, k, v

    @property
    def work(self) -> str:
        """Description of everything except the length."""
        return (
            f"BigBird graph, block {self.block}, window {self.window}, random {self.random}, "
            f"two global blocks, {self.heads} heads of {self.head_dim}, fp32, batch {self.batch}"
        )
