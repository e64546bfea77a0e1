"""Embeddings, feed-forward blocks and layers, for post-norm (BERT) and pre-norm (Pegasus)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN
from transformers.modeling_layers import GradientCheckpointingLayer

from longbird.errors import InvalidValueError
from longbird.models.layers.attention import Projections
from longbird.models.layers.checks import as_floats, check_numbers
from longbird.models.layers.context import Context
from longbird.models.layers.cross import CrossAttention
from longbird.models.layers.gelu import tanh_gelu
from longbird.models.layers.int8 import Int8Linear
from longbird.models.layers.packing import Documents


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """An activation by the name that transformers gives it."""
    if name not in ACT2FN:
        raise InvalidValueError(
            f"there is no activation named {name!r}; expected one of {list(ACT2FN)}"
        )
    # transformers computes the first two in eight passes over the tensor.
    tanh = name in ("gelu_new", "gelu_fast", "gelu_pytorch_tanh")
    return tanh_gelu if tanh else ACT2FN[name]


class TokenEmbedding(nn.Embedding):
    """Token embeddings; those of Pegasus are multiplied by sqrt(width)."""

    def __init__(self, config: Any) -> None:
        super().__init__(config.vocab_size, config.hidden_size, config.pad_token_id)
        scaled = config.rescale_embeddings and config.is_encoder_decoder
        self.scale = math.sqrt(config.hidden_size) if scaled else 1.0

    def forward(self, input: Tensor) -> Tensor:
        """[...] to [..., w]."""
        x = super().forward(input)
        return x * self.scale if self.scale != 1.0 else x


class Embeddings(nn.Module):
    """Token, position and type embeddings, and for BigBird-ETC those of the global tokens."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        width = config.hidden_size
        self.tokens = TokenEmbedding(config)
        if config.positions != "none":
            self.positions = nn.Embedding(config.max_position_embeddings, width)
        if config.type_vocab_size:
            self.types = nn.Embedding(config.type_vocab_size, width)
        if config.embedding_norm != "none":
            self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        # BigBird also multiplies embeddings that it is given.
        scaled = config.rescale_embeddings and not config.is_encoder_decoder
        self.scale = math.sqrt(width) if scaled else 1.0

    def forward(
        self,
        documents: Documents,
        cache: Any,
        input_ids: Tensor | None,
        inputs_embeds: Tensor | None,
        token_type_ids: Tensor | None,
        position_ids: Tensor | None,
    ) -> Tensor:
        """All [rows, n, ...]; gives [t, w]. The cache counts positions, if there is one."""
        ids = None if input_ids is None else documents.pack(input_ids, "input_ids")
        if inputs_embeds is not None:
            x = as_floats("inputs_embeds", inputs_embeds, self.tokens.weight.dtype)
            x = documents.pack(x, "inputs_embeds")
        else:
            assert ids is not None
            check_numbers("input_ids", ids, self.tokens.num_embeddings, "the vocabulary")
            x = self.tokens(ids)
        x = x * self.scale if self.scale != 1.0 else x
        if self.config.type_vocab_size:
            x = x + self.types_of(documents, token_type_ids)
        elif token_type_ids is not None and bool(token_type_ids.any()):
            raise InvalidValueError(
                "the model has no token types (type_vocab_size=0), received some"
            )
        if self.config.positions != "none":
            if position_ids is None:
                places = self.places(documents, cache, x, ids)
            else:
                places = self.given_places(documents, position_ids)
            x = x + self.positions(places)
        elif position_ids is not None:
            raise InvalidValueError(
                'the model has no positions (positions="none"), received position_ids'
            )
        return self.finish(x)

    def types_of(self, documents: Documents, token_type_ids: Tensor | None) -> Tensor:
        """The embedding of the type of every token, [t, w]; [w] if all are of the first one."""
        if token_type_ids is None:
            return self.types.weight[0]
        types = documents.pack(token_type_ids, "token_type_ids")
        check_numbers("token_type_ids", types, self.types.num_embeddings, "type_vocab_size")
        return self.types(types)

    def given_places(self, documents: Documents, position_ids: Tensor) -> Tensor:
        """The row of the position table of every token, int64 [t], as it is given."""
        if position_ids.ndim != 2 or position_ids.shape[0] not in (1, documents.rows):
            raise InvalidValueError(
                f"position_ids must be of shape [batch, n] = {[documents.rows, documents.n]} or "
                f"[1, n], received {list(position_ids.shape)}"
            )
        places = documents.pack(position_ids.expand(documents.rows, -1), "position_ids")
        rows = self.positions.num_embeddings
        check_numbers("position_ids", places, rows, "max_position_embeddings")
        return places

    def places(self, documents: Documents, cache: Any, x: Tensor, ids: Tensor | None) -> Tensor:
        """The row of the position table of every token, int64 [t], counted in its document."""
        rows, offset, absent = self.positions.num_embeddings, 0, self.config.absent_id
        if self.config.positions == "padding-aware":  # RoBERTa: padding has a row of its own
            offset = absent + 1
        past, unplaced = (None, 0) if cache is None else (cache.lengths, cache.absent)
        longest = documents.longest + (int(past.max()) if past is not None and len(past) else 0)
        if longest + offset > rows:
            if past is not None:
                raise InvalidValueError(
                    f"a document has {longest} tokens with those that were generated, and the "
                    f"model has positions for {rows - offset}; choose a smaller max_new_tokens, "
                    "or a shorter prompt"
                )
            raise InvalidValueError(
                f"a document has {longest} tokens, and the model has positions for "
                f"{rows - offset}; cut it (truncation=True, max_length={rows - offset} of the "
                "tokenizer), or let `longbird convert` make a longer model"
            )
        present = torch.ones(x.shape[0], dtype=torch.bool, device=x.device)
        if offset and ids is not None:
            present = ids != absent
        count = documents.counted(present)
        if past is not None:
            count = count + documents.spread(past - unplaced)
        if cache is not None and offset:
            cache.count_absent(documents, ~present)
        return count - 1 if not offset else count * present + offset - 1

    def finish(self, x: Tensor) -> Tensor:
        """Norm and dropout, in the order of the model."""
        match self.config.embedding_norm:
            case "before_dropout":
                return self.dropout(self.norm(x))
            case "after_dropout":
                return self.norm(self.dropout(x))
            case _:
                return self.dropout(x)


class FeedForward(nn.Module):
    """Two linear layers with an activation between them."""

    # At inference tokens go through in pieces, so that what is between the layers stays in cache.
    PIECE = 1024
    ROUNDED = ("enter", "leave")
    """The layers that int8 weights are for."""

    def __init__(self, width: int, inner: int, config: Any) -> None:
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

    def __init__(self, config: Any, attention: nn.Module, inner: int) -> None:
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

        `carried` are `context.carried`: gradient checkpointing cuts a layer off from what comes
        before it at the tensors that are arguments of their own.
        """
        context = context.carrying(*carried) if carried else context
        x = self.add(x, self.attention_norm, lambda y: self.attention(y, context))
        return self.add(x, self.feed_forward_norm, self.feed_forward)

    def to_int8(self) -> None:
        """Rounds the weights of its linear layers, those of Longformer's global tokens aside."""
        for block in self.children():
            if isinstance(block, (Projections, FeedForward)):
                for name in block.ROUNDED:
                    if isinstance(linear := getattr(block, name), nn.Linear):
                        setattr(block, name, Int8Linear.of(linear))

    def add(self, x: Tensor, norm: nn.Module, block: Callable[[Tensor], Tensor]) -> Tensor:
        """A block with its residual connection and its norm, before (Pegasus) or after (BERT)."""
        if self.pre_norm:
            return x + self.dropout(block(norm(x)))
        return norm(x + self.dropout(block(x)))


class CrossLayer(Layer):
    """A layer of a decoder that also looks at what an encoder read, if there is any of it."""

    def __init__(self, config: Any, attention: nn.Module, inner: int, cross: CrossAttention):
        super().__init__(config, attention, inner)
        self.cross_attention = cross
        self.cross_attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, context: Context, *carried: Tensor | None) -> Tensor:
        """[t, w] to [t, w]."""
        context = context.carrying(*carried) if carried else context
        x = self.add(x, self.attention_norm, lambda y: self.attention(y, context))
        if context.memory is not None:
            x = self.add(x, self.cross_attention_norm, lambda y: self._look(y, context))
        return self.add(x, self.feed_forward_norm, self.feed_forward)

    def _look(self, x: Tensor, context: Context) -> Tensor:
        """[t, w] to [t, w]: padded, because all documents look at as many keys."""
        documents, record = context.documents, context.record
        padded, asked = documents.pad(x), record is not None
        out, weights = self.cross_attention(padded, context.memory, asked)
        if record is not None:
            of_tokens = documents.pack(weights.transpose(1, 2))  # zeros for padding
            record.of_memory[self.cross_attention.layer] = documents.pad(of_tokens).transpose(1, 2)
        return documents.pack(out)


def relative_table(embedding: Tensor, max_distance: int) -> Tensor:
    """The bias by distance [heads, 2m + 1] of T5's and MPNet's buckets [buckets, heads].

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
