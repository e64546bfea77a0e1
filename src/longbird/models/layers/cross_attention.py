"""Dense attention of a decoder, over its own output and over the states of an encoder.

Axes: b batch, s tokens of the output, m tokens that are seen, h heads, d head_dim, w width.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.models.layers.attention import Projections
from longbird.models.layers.configuration import LayerConfig
from longbird.models.layers.context import Memory
from longbird.models.layers.int8 import through_each


def dense_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, weights: bool
) -> tuple[Tensor, Tensor | None]:
    """Attend from queries [b, h, s, d] to keys [b, h, m, d]; optionally return the weights."""
    if not weights:
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p), None
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    p = torch.softmax(scores, -1).nan_to_num(0.0)  # 0 where nothing is seen
    return F.dropout(p, dropout_p) @ v, p


class CrossAttention(Projections):
    """Attention of every token to all states of an encoder."""

    def __init__(self, config: LayerConfig, layer: int, heads: int, output_bias: bool) -> None:
        super().__init__(config, heads, output_bias)
        self.layer = layer

    def forward(
        self, x: Tensor, memory: Memory, weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """[b, s, w] to [b, s, w], and optionally the weights [b, h, s, m]."""
        q = self.split(self.query(x)).transpose(1, 2)  # [b, h, s, d]
        if memory.documents is not None:
            return self.output(
                self._attend_by_document(q, memory).transpose(1, 2).flatten(2)
            ), None
        k, v = self._memory(memory)
        out, p = dense_attention(q, k, v, memory.mask, self.dropout, weights)
        return self.output(out.transpose(1, 2).flatten(2)), p

    def _attend_by_document(self, q: Tensor, memory: Memory) -> Tensor:
        """[b, h, s, d] to [b, h, s, d], document by document, without computing padding."""
        assert memory.documents is not None
        if len(q) == 0:
            return q
        k, v = (y.transpose(0, 1) for y in self._read(memory))  # [h, t, d]
        each = zip(q, memory.documents.bounds, strict=True)
        return torch.stack(
            [
                F.scaled_dot_product_attention(
                    row, k[:, start:end], v[:, start:end], None, self.dropout
                )
                for row, (start, end) in each
            ]
        )

    def _read(self, memory: Memory) -> list[Tensor]:
        """Keys and values [..., h, d] of all states."""
        return [self.split(y) for y in through_each(memory.states, self.key, self.value)]

    def _memory(self, memory: Memory) -> tuple[Tensor, Tensor]:
        """Keys and values [b, h, m, d], computed only once if there is a cache."""
        cache = memory.cache
        if cache is not None and cache.is_updated.get(self.layer):
            state: Any = cache.cross_attention_cache.layers[self.layer]
            return state.keys, state.values
        k, v = (y.transpose(1, 2) for y in self._read(memory))
        if cache is None:
            return k, v
        cache.is_updated[self.layer] = True
        return cache.cross_attention_cache.update(k, v, self.layer)
