"""Build what a forward pass tells its layers, from the inputs and the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, EncoderDecoderCache

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.document_edges import document_edges
from longbird.models.inputs import Inputs
from longbird.models.layers.checks import (
    as_floats,
    check_device,
    check_integers,
    check_marks,
    check_tensor,
    readable,
)
from longbird.models.layers.context import AddedTokens, Context, Memory, Record
from longbird.models.layers.layer import relative_table
from longbird.models.layers.packing import Documents
from longbird.models.rolling_cache import RollingCache

if TYPE_CHECKING:
    from longbird.models.encoder import LongbirdModel


def forward_context(model: LongbirdModel, inputs: Inputs) -> Context:
    """Check the inputs of a forward pass, and build what its layers are told."""
    config = model.config
    rows, n = inputs.shape(config.hidden_size)
    cache = _cache(model, inputs, rows)
    mask = inputs.attention_mask
    if cache is not None and mask is not None:
        mask = _mask_of_new_tokens(mask, n, cache.get_seq_length())
    documents = Documents.of(rows, n, mask)
    bias = edges = None
    if config.relative_buckets:
        bias = relative_table(model.relative_bias.weight, config.relative_max_distance)
    if inputs.edges is not None:
        edges = document_edges(inputs.edges, inputs.ranks(), config.causal)
    recorded = either(inputs.output_attentions, config.output_attentions)
    return Context(
        documents,
        impl=config.attention_impl,
        relative_bias=bias,
        global_tokens=_global_tokens(config, inputs, documents),
        edges=edges,
        added=_added_tokens(config, inputs, documents),
        memory=_memory(config, inputs, rows, cache, model.embeddings.tokens.weight.dtype),
        cache=cache,
        record=Record() if recorded else None,
    )


def either(given: bool | None, otherwise: Any) -> bool:
    """Return an option of a call, or what the configuration says if it was not given."""
    return bool(otherwise if given is None else given)


def _global_tokens(config: LongbirdConfig, inputs: Inputs, documents: Documents) -> Tensor | None:
    """Bool [t]: the tokens that see and are seen by all; None if there are none."""
    marks, exporting = inputs.global_attention_mask, torch.compiler.is_exporting()
    if marks is None:
        return None
    if exporting and config.global_projections:
        raise InvalidValueError(
            "a model with global_projections cannot be exported with global tokens, such as the "
            "first token in classification"
        )
    if config.causal:
        raise InvalidValueError(
            "a token of global_attention_mask sees later tokens, which a causal model must not; "
            "put GlobalTokens(...) into its graph instead"
        )
    if not exporting:
        check_marks("global_attention_mask", marks)
    marked = documents.pack(marks, "global_attention_mask") != 0
    if documents.lengths is not None:
        marked = marked & documents.present(marked)
    return marked if exporting or bool(marked.any()) else None


# ---- the cache of a causal model


def _cache(model: LongbirdModel, inputs: Inputs, rows: int) -> RollingCache | None:
    """The cache that was given, or a new one if one is wanted."""
    given, use_cache, config = inputs.past_key_values, inputs.use_cache, model.config
    if not config.causal:
        if given is not None:
            raise InvalidValueError("past_key_values needs a causal model (LongbirdForCausalLM)")
        return None
    if given is not None and not isinstance(given, Cache):
        raise InvalidTypeError(
            "past_key_values must be the RollingCache that a call with use_cache=True returned, "
            f"received {type(given).__name__}"
        )
    if isinstance(given, EncoderDecoderCache):
        given = given.self_attention_cache
    if inputs.edges is not None:
        if use_cache or (given is not None and given.get_seq_length() > 0):
            raise InvalidValueError(
                "edges may join tokens that a rolling cache no longer holds: use use_cache=False"
            )
        return None
    if isinstance(given, RollingCache):
        _check_cache(model, given, rows)
        return given
    if given is not None and given.get_seq_length() > 0:
        raise InvalidTypeError(
            "past_key_values must be the RollingCache that a call with use_cache=True returned, "
            f"received {type(given).__name__} with tokens in it"
        )
    by_default = config.use_cache and not torch.compiler.is_exporting()
    if model.training or not either(use_cache, by_default):
        return None
    try:
        return RollingCache(model.layer_graphs)
    except ValueError:
        # A graph that cannot be streamed has no cache, which is an error if one was asked for.
        if use_cache:
            raise
        return None


def _check_cache(model: LongbirdModel, cache: RollingCache, rows: int) -> None:
    """Raise unless a cache belongs to this model and to a batch of this many documents."""
    if [layer.graph for layer in cache.rolling_layers] != model.layer_graphs:
        raise InvalidValueError("past_key_values is the cache of a model with other graphs")
    kept = next((x.keys for x in cache.rolling_layers if x.keys is not None), None)
    heads = model.config.num_attention_heads
    head_size = model.config.hidden_size // heads
    if kept is not None and kept.shape[1::2] != (heads, head_size):
        raise InvalidValueError(
            f"past_key_values must be the cache of this model, with {heads} heads of {head_size} "
            f"numbers; received {kept.shape[1]} heads of {kept.shape[3]}"
        )
    if cache.lengths is not None and len(cache.lengths) != rows:
        raise InvalidValueError(
            f"past_key_values is the cache of {len(cache.lengths)} documents, and the batch has "
            f"{rows}; choose rows with cache.batch_select_indices(...), or start without it"
        )
    if model.training and model.is_gradient_checkpointing:
        raise InvalidValueError(
            "gradient checkpointing runs every layer twice, which would put its tokens into "
            "past_key_values twice: leave the cache out, or call gradient_checkpointing_disable()"
        )


def _mask_of_new_tokens(mask: Tensor, n: int, past: int) -> Tensor:
    """The attention mask [rows, n] of new tokens; it may also cover the tokens in the cache."""
    if past == 0:
        return mask
    if mask.ndim != 2 or mask.shape[1] not in (n, past + n):
        raise InvalidValueError(
            f"attention_mask must be of shape [batch, {n}] for the new tokens, or [batch, "
            f"{past + n}] with those in past_key_values, received {list(mask.shape)}"
        )
    return mask[:, mask.shape[1] - n :]


# ---- cross attention


def _memory(
    config: LongbirdConfig,
    inputs: Inputs,
    rows: int,
    cache: RollingCache | None,
    dtype: torch.dtype,
) -> Memory | None:
    """The states of an encoder, if they were given."""
    states, mask = inputs.encoder_hidden_states, inputs.encoder_attention_mask
    if states is None:
        if mask is not None:
            raise InvalidValueError("encoder_attention_mask needs encoder_hidden_states")
        return None
    if not config.add_cross_attention:
        raise InvalidValueError(
            "encoder_hidden_states need a decoder with cross attention: "
            "LongbirdConfig(is_decoder=True, add_cross_attention=True)"
        )
    check_memory(states, mask, rows, config.hidden_size, inputs.past_key_values)
    states = as_floats("encoder_hidden_states", states, dtype)
    if mask is not None:
        mask = mask[:, None, None] != 0  # [rows, 1, 1, m]
    if cache is None:
        return Memory(states, mask)
    pair = inputs.past_key_values
    if not isinstance(pair, EncoderDecoderCache) or pair.self_attention_cache is not cache:
        pair = EncoderDecoderCache(cache, DynamicCache())
    return Memory(states, mask, pair)


def check_memory(
    states: Tensor, mask: Tensor | None, rows: int, width: int, cache: Any = None
) -> None:
    """Raise unless the states of an encoder [rows, m, w] fit their mask and the cache."""
    check_tensor("encoder_hidden_states", states)
    check_tensor("the attention mask of the encoder", mask)
    if states.ndim != 3 or states.shape[0] != rows or states.shape[2] != width:
        raise InvalidValueError(
            f"encoder_hidden_states must be of shape [batch, m, width] with batch {rows} and "
            f"width {width}, received {list(states.shape)}"
        )
    if mask is not None:
        if mask.shape != states.shape[:2]:
            raise InvalidValueError(
                "the attention mask of the encoder must be of the shape of its states, "
                f"{list(states.shape[:2])}, received {list(mask.shape)}"
            )
        check_device("the attention mask of the encoder", mask, "its states", states.device)
        if readable(mask):
            check_marks("the attention mask of the encoder", mask)
    if isinstance(cache, EncoderDecoderCache) and cache.is_updated.get(0):
        kept = cache.cross_attention_cache.get_seq_length()
        if kept != states.shape[1]:
            raise InvalidValueError(
                f"past_key_values has the keys of {kept} encoder states, and "
                f"encoder_hidden_states has {states.shape[1]}: these are other documents"
            )


# ---- the global tokens of BigBird-ETC


def _added_tokens(
    config: LongbirdConfig, inputs: Inputs, documents: Documents
) -> AddedTokens | None:
    """One global token for each segment; all that the model has where there are no segments."""
    most, segments = config.num_global_tokens, inputs.segment_ids
    if segments is not None and not most:
        raise InvalidValueError("segment_ids need added global tokens: set num_global_tokens")
    if not most:
        return None
    if segments is not None:
        check_integers("segment_ids", segments)
        segments = documents.pack(segments, "segment_ids")
    if torch.compiler.is_exporting():
        return _added_in_export(most, segments, documents)
    counts = [most] * documents.rows
    if segments is not None:
        if readable(segments) and bool(((segments >= most) | (segments < -1)).any()):
            raise InvalidValueError(
                f"segment_ids must be between -1 (no segment) and num_global_tokens - 1 = "
                f"{most - 1}, received {int(segments.min())} to {int(segments.max())}; "
                f"longbird.segments(..., most={most}) merges neighbours"
            )
        counts = [
            max(int(segments[start:end].max()) + 1, 1) if end > start else 1
            for start, end in documents.bounds
        ]
    return AddedTokens(sum(counts), tuple(counts), segments=segments)


def _added_in_export(most: int, segments: Tensor | None, documents: Documents) -> AddedTokens:
    """Give every document all global tokens, and hide those beyond its segments."""
    total = documents.rows * most
    if segments is None:
        return AddedTokens(total, None)
    if documents.lengths is not None:
        segments = torch.where(documents.present(segments), segments, -1)
    count = segments.unflatten(0, (documents.rows, documents.n)).amax(1) + 1
    present = torch.arange(most, device=segments.device) < count.clamp(min=1)[:, None]
    return AddedTokens(total, None, present, segments)
