"""Layers, for post-norm (BERT) and pre-norm (Pegasus), and what they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer

from longbird.errors import InvalidValueError
from longbird.models.layers.attention import Projections
from longbird.models.layers.configuration import LayerConfig
from longbird.models.layers.context import Context
from longbird.models.layers.cross_attention import CrossAttention
from longbird.models.layers.gelu import tanh_gelu
from longbird.models.layers.int8 import Int8Linear


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """Return an activation by its name in transformers."""
    if name not in ACT2FN:
        raise InvalidValueError(
            f"there is no activation named {name!r}; expected one of {list(ACT2FN)}"
        )
    # transformers computes the first two in eight passes over the tensor.
    tanh = name in ("gelu_new", "gelu_fast", "gelu_pytorch_tanh")
    return tanh_gelu if tanh else ACT2FN[name]


class FeedForward(nn.Module):
    """Two linear layers with an activation between them."""

    # At inference, tokens are split into pieces, so that intermediate results stay in the cache.
    PIECE = 1024
    ROUNDED = ("enter", "leave")
    """The linear layers that can have int8 weights."""

    def __init__(self, width: int, inner: int, config: LayerConfig) -> None:
        super().__init__()
        self.enter = nn.Linear(width, inner)
        self.leave = nn.Linear(inner, width)
        self.activation = activation(config.hidden_act)
        self.dropout = nn.Dropout(config.activation_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[t, w] to [t, w]."""
        whole = self.training or torch.is_grad_enabled() or torch.compiler.is_compiling()
        if whole or len(x) <= self.PIECE:
            return self.leave(self.dropout(self.activation(self.enter(x))))
        return torch.cat([self.leave(self.activation(self.enter(y))) for y in x.split(self.PIECE)])


class Layer(GradientCheckpointingLayer):
    """Attention and a feed-forward block, each with a residual connection and a norm."""

    def __init__(self, config: LayerConfig, attention: nn.Module, inner: int) -> None:
        super().__init__()
        width = config.hidden_size
        self.attention = attention
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.feed_forward = FeedForward(width, inner, config)
        self.feed_forward_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.pre_norm = config.norm == "pre"

    def forward(self, x: Tensor, context: Context, *carried: Tensor | None) -> Tensor:
        """[t, w] to [t, w].

        `carried` is `context.carried`: gradient checkpointing only returns gradients of tensors
        that are arguments of their own.
        """
        context = context.carrying(*carried) if carried else context
        x = self.add(x, self.attention_norm, lambda y: self.attention(y, context))
        return self.add(x, self.feed_forward_norm, self.feed_forward)

    def to_int8(self) -> None:
        """Round the weights of its linear layers, except those of Longformer's global tokens."""
        for block in self.children():
            if isinstance(block, (Projections, FeedForward)):
                for name in block.ROUNDED:
                    if isinstance(linear := getattr(block, name), nn.Linear):
                        setattr(block, name, Int8Linear.of(linear))

    def add(self, x: Tensor, norm: nn.Module, block: Callable[[Tensor], Tensor]) -> Tensor:
        """Add a block as a residual, with its norm before (Pegasus) or after it (BERT)."""
        if self.pre_norm:
            return x + self.dropout(block(norm(x)))
        return norm(x + self.dropout(block(x)))


class CrossLayer(Layer):
    """A layer of a decoder that also attends to the states of an encoder, if there are any."""

    def __init__(
        self, config: LayerConfig, attention: nn.Module, inner: int, cross: CrossAttention
    ):
        super().__init__(config, attention, inner)
        self.cross_attention = cross
        self.cross_attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, context: Context, *carried: Tensor | None) -> Tensor:
        """[t, w] to [t, w]."""
        context = context.carrying(*carried) if carried else context
        x = self.add(x, self.attention_norm, lambda y: self.attention(y, context))
        if context.memory is not None:
            x = self.add(x, self.cross_attention_norm, lambda y: self._attend_across(y, context))
        return self.add(x, self.feed_forward_norm, self.feed_forward)

    def _attend_across(self, x: Tensor, context: Context) -> Tensor:
        """[t, w] to [t, w]; padded, because all documents see the same number of keys."""
        documents, record = context.documents, context.record
        padded, asked = documents.pad(x), record is not None
        out, weights = self.cross_attention(padded, context.memory, asked)
        if record is not None:
            of_tokens = documents.pack(weights.transpose(1, 2))  # zeros for padding
            record.of_memory[self.cross_attention.layer] = documents.pad(of_tokens).transpose(1, 2)
        return documents.pack(out)


def relative_table(embedding: Tensor, max_distance: int) -> Tensor:
    """Expand the buckets of T5 and MPNet [buckets, heads] to a bias by distance [heads, 2m + 1].

    Half of the buckets are for keys before the query and half for keys after it; of each half, one
    half are single distances, and the others grow logarithmically up to `max_distance`.
    """
    half = embedding.shape[0] // 2
    exact = half // 2
    distance = torch.arange(-max_distance, max_distance + 1, device=embedding.device)
    size = distance.abs()
    far = torch.log(size.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    far = (exact + (far * (half - exact)).long()).clamp(max=half - 1)
    bucket = torch.where(size < exact, size, far) + half * (distance > 0)
    return embedding[bucket].T
