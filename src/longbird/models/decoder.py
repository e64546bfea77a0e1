"""The decoder of encoder-decoders: full causal attention, and attention to all of the input.

Axes: b batch, s tokens of the output, n tokens of the input, h heads, d head_dim, w width.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions
from transformers.utils.generic import can_return_tuple

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.config import LongbirdSeq2SeqConfig
from longbird.models.forward_context import check_memory, either
from longbird.models.layers.attention import Projections
from longbird.models.layers.checks import (
    as_floats,
    check_device,
    check_marks,
    check_numbers,
    check_tensor,
    readable,
)
from longbird.models.layers.context import Memory
from longbird.models.layers.cross_attention import CrossAttention, dense_attention
from longbird.models.layers.embeddings import TokenEmbedding
from longbird.models.layers.layer import CrossLayer
from longbird.models.layers.packing import Documents
from longbird.models.outputs import Floats
from longbird.models.pretrained import LongbirdPreTrainedModel


class DecoderAttention(Projections):
    """Full causal attention over the output so far."""

    def __init__(self, config: LongbirdSeq2SeqConfig, layer: int) -> None:
        heads = config.decoder_attention_heads or config.num_attention_heads
        super().__init__(config, heads, config.attention_bias)
        self.layer = layer

    def forward(
        self, x: Tensor, mask: Tensor, cache: EncoderDecoderCache | None, weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """[b, s, w] to [b, s, w], and optionally the weights; mask bool [b or 1, 1, s, m]."""
        q, k, v = (y.transpose(1, 2) for y in self.projected(x))  # [b, h, s, d]
        if cache is not None:
            k, v = cache.self_attention_cache.update(k, v, self.layer)
        out, p = dense_attention(q, k, v, mask, self.dropout, weights)
        return self.output(out.transpose(1, 2).flatten(2)), p


class DecoderLayer(CrossLayer):
    """Attention to the output so far, attention to the input, and a feed-forward block."""

    def __init__(self, config: LongbirdSeq2SeqConfig, layer: int) -> None:
        heads = config.decoder_attention_heads or config.num_attention_heads
        inner, bias = config.decoder_intermediate_size, config.attention_bias
        own, cross = DecoderAttention(config, layer), CrossAttention(config, layer, heads, bias)
        super().__init__(config, own, inner or config.intermediate_size, cross)

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        states: Tensor | None,
        mask: Tensor,
        states_mask: Tensor | None,
        past_key_values: EncoderDecoderCache | None = None,
        weights: tuple[list[Tensor], list[Tensor]] | None = None,
        documents: Documents | None = None,
    ) -> Tensor:
        """[b, s, w] to [b, s, w], with states of the encoder [b, n, w]; collects weights."""

        def own(y: Tensor) -> Tensor:
            out, p = self.attention(y, mask, past_key_values, weights is not None)
            if weights is not None:
                weights[0].append(p)
            return out

        def cross(y: Tensor) -> Tensor:
            assert states is not None
            memory = Memory(states, states_mask, past_key_values, documents)
            out, p = self.cross_attention(y, memory, weights is not None)
            if weights is not None:
                weights[1].append(p)
            return out

        x = self.add(x, self.attention_norm, own)
        if states is not None:
            x = self.add(x, self.cross_attention_norm, cross)
        return self.add(x, self.feed_forward_norm, self.feed_forward)


class _DecoderMemory(NamedTuple):
    """The states of an encoder as the layers of the decoder take them."""

    states: Tensor | None = None
    """[b, n, w], or [t, w] of `documents`."""
    mask: Tensor | None = None
    """bool [b, 1, 1, n]."""
    documents: Documents | None = None


class LongbirdDecoder(LongbirdPreTrainedModel):
    """The decoder: full causal attention, and attention to all of the input."""

    config_class = LongbirdSeq2SeqConfig

    def __init__(self, config: LongbirdSeq2SeqConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        self.tokens = TokenEmbedding(config)
        self.positions = nn.Embedding(config.max_decoder_positions, width)
        if config.embedding_norm != "none":
            self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        layers = config.decoder_layers or config.num_hidden_layers
        self.layers = nn.ModuleList(DecoderLayer(config, i) for i in range(layers))
        if config.norm == "pre":
            self.final_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Decode output tokens [b, s] for an input [b, n, w]; masks are [b, past + s], [b, n]."""
        config = self.config
        recorded = either(output_attentions, config.output_attentions)
        x = self._embedded(input_ids, inputs_embeds)
        cached = either(use_cache, config.use_cache and not self.training)
        if past_key_values is None and cached:
            past_key_values = EncoderDecoderCache(DynamicCache(), DynamicCache())
        check_cache(past_key_values, len(x))
        past = 0 if past_key_values is None else past_key_values.get_seq_length()
        x = x + self.positions(self._place(x, past))
        x = self.dropout(x if config.embedding_norm == "none" else self.norm(x))
        seen = self._seen(attention_mask, x, past)
        packed = x.is_cpu and past_key_values is None and not recorded
        memory = self._memory(
            encoder_hidden_states, encoder_attention_mask, x, past_key_values, packed=packed
        )

        wanted = either(output_hidden_states, config.output_hidden_states)
        hidden: list[Floats] | None = [x] if wanted else None
        weights: tuple[list[Floats], list[Floats]] | None = ([], []) if recorded else None
        for layer in self.layers:
            x = layer(
                x, memory.states, seen, memory.mask, past_key_values=past_key_values,
                weights=weights, documents=memory.documents,
            )  # fmt: skip
            if hidden is not None:
                hidden.append(x)
        if config.norm == "pre":
            x = self.final_norm(x)
            if hidden is not None:
                hidden[-1] = x
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=x,
            past_key_values=past_key_values,
            hidden_states=None if hidden is None else tuple(hidden),
            attentions=None if weights is None else tuple(weights[0]),
            cross_attentions=None if weights is None else tuple(weights[1]),
        )

    def _place(self, x: Tensor, past: int) -> Tensor:
        """The positions of the new tokens, [s]."""
        end, most = past + x.shape[1], self.positions.num_embeddings
        if end > most:
            raise InvalidValueError(
                f"the output has {end} tokens (it is the input, where neither labels nor "
                f"decoder_input_ids are given), and the decoder has positions for {most} "
                "(max_decoder_positions); cut it, or generate with a smaller max_new_tokens"
            )
        return torch.arange(past, end, device=x.device)

    def _seen(self, mask: Tensor | None, x: Tensor, past: int) -> Tensor:
        """Bool [b or 1, 1, s, past + s]: the tokens of the output that each new token sees."""
        place = torch.arange(past + x.shape[1], device=x.device)
        new = place[past:, None]
        seen = (new >= place)[None, None]
        if mask is None:
            return seen
        self._check_mask(mask, x, past)
        # A padded token sees itself, so that its row is not empty.
        return seen & (mask[:, None, None] != 0) | (new == place)

    def _memory(
        self,
        states: Tensor | None,
        mask: Tensor | None,
        x: Tensor,
        cache: EncoderDecoderCache | None,
        *,
        packed: bool,
    ) -> _DecoderMemory:
        """The states of the encoder, packed if much of them is padding."""
        if mask is None and states is None:
            return _DecoderMemory()
        if states is not None:
            check_memory(states, mask, len(x), self.config.hidden_size, cache)
            check_device("encoder_hidden_states", states, "the decoder", x.device)
            states = as_floats("encoder_hidden_states", states, self.tokens.weight.dtype)
        documents = None
        if mask is not None and states is not None and packed:
            documents = mostly_padding(mask)
            states = states if documents is None else documents.pack(states)
        return _DecoderMemory(
            states, None if mask is None else mask[:, None, None] != 0, documents
        )

    def _embedded(self, input_ids: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:
        """[b, s, w]."""
        if (input_ids is None) == (inputs_embeds is None):
            raise InvalidValueError(
                "the decoder takes either decoder_input_ids or decoder_inputs_embeds, not both or "
                "neither"
            )
        check_tensor("decoder_input_ids", input_ids)
        check_tensor("decoder_inputs_embeds", inputs_embeds)
        if input_ids is not None:
            if input_ids.ndim != 2:
                raise InvalidValueError(
                    f"decoder_input_ids must be [batch, s], received {list(input_ids.shape)}"
                )
            rows = self.tokens.num_embeddings
            check_numbers("decoder_input_ids", input_ids, rows, "the vocabulary")
            return self.tokens(input_ids)
        assert inputs_embeds is not None
        width = self.config.hidden_size
        if inputs_embeds.ndim != 3 or inputs_embeds.shape[2] != width:
            raise InvalidValueError(
                f"decoder_inputs_embeds must be [batch, s, width] with width {width}, received "
                f"{list(inputs_embeds.shape)}"
            )
        return as_floats("decoder_inputs_embeds", inputs_embeds, self.tokens.weight.dtype)

    @staticmethod
    def _check_mask(mask: Tensor, x: Tensor, past: int) -> None:
        check_tensor("decoder_attention_mask", mask)
        check_device("decoder_attention_mask", mask, "the output", x.device)
        rows, columns = x.shape[0], past + x.shape[1]
        if mask.shape != (rows, columns):
            raise InvalidValueError(
                "decoder_attention_mask must be of the shape of the output with what is in the "
                f"cache, [{rows}, {columns}], received {list(mask.shape)}"
            )
        if readable(mask):
            check_marks("decoder_attention_mask", mask)


def mostly_padding(mask: Tensor) -> Documents | None:
    """Return the documents of a mask [b, n] if at least a quarter of it is padding."""
    if not readable(mask):
        return None
    lengths = (mask != 0).sum(1)
    few = int(lengths.sum()) <= 0.75 * mask.numel() and bool((lengths > 0).all())
    return Documents.of(len(mask), mask.shape[1], mask) if few else None


def check_cache(cache: Any, rows: int) -> None:
    """Raise unless this is a cache of the decoder for this many documents."""
    if cache is None:
        return
    parts = (
        (cache.self_attention_cache, cache.cross_attention_cache)
        if isinstance(cache, EncoderDecoderCache)
        else (cache,)
    )
    if len(parts) < 2 or not all(isinstance(part, DynamicCache) for part in parts):
        raise InvalidTypeError(
            "past_key_values of an encoder-decoder must be EncoderDecoderCache(DynamicCache(), "
            f"DynamicCache()), received {type(cache).__name__} of "
            f"{', '.join(type(part).__name__ for part in parts)}; leave it, or "
            "cache_implementation, out"
        )
    for part in parts:
        kept = [len(layer.keys) for layer in part.layers if layer.is_initialized]  # type: ignore[arg-type]
        if kept and kept[0] != rows:
            raise InvalidValueError(
                f"past_key_values is the cache of {kept[0]} documents, and the batch has {rows}; "
                "choose rows with cache.batch_select_indices(...), or start without it"
            )
