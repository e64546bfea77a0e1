"""`attn_implementation="longbird"`: models of transformers run on the graph of their config.

An implementation of attention in transformers consists of two functions. `longbird_mask` is called
once for a batch and returns what the model itself asks for: padding, causality, a sliding window.
Every layer passes this to `longbird_attention`, which adds the graph. Nothing n x n exists.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import (
    MODEL_MAPPING,
    AttentionInterface,
    AttentionMaskInterface,
    PreTrainedConfig,
)
from transformers.modeling_utils import PreTrainedModel

from longbird.core.graph import Causal, Graph, Window, as_graph
from longbird.core.operator.tracing import constant
from longbird.errors import InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.layers.context import Context
from longbird.models.layers.packing import Documents

NAME = "longbird"

# Arguments that a model may pass to its attention and that the operator does not have.
REFUSED = (
    "output_attentions", "position_bias", "attention_bias", "head_mask", "softcap", "s_aux",
    "sinks", "cu_seq_lens_q", "cu_seq_lens_k", "indices", "block_indices", "cache",
)  # fmt: skip


class Mask(NamedTuple):
    """What `longbird_mask` passes to every layer."""

    documents: Documents
    """The tokens that are not padding."""
    causal: bool
    radius: int | None
    """The radius of a sliding window; None without one."""


def longbird_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    *,
    kv_offset: int = 0,
    attention_mask: Tensor | None = None,
    local_size: int | None = None,
    allow_is_causal_skip: bool = True,
    allow_is_bidirectional_skip: bool = False,
    config: Any = None,
    **_: Any,
) -> Mask:
    """Return what a model asks of all its layers, or of its layers with a sliding window.

    Raises:
        ValueError: The model asks for more than padding, causality and a sliding window.
    """
    _check_whole_sequences(config, q_length, kv_offset + kv_length)
    # Without padding, transformers allows leaving out the mask, but only for models that are just
    # causal or just bidirectional.
    plain = allow_is_causal_skip or allow_is_bidirectional_skip
    chunked = local_size is not None and getattr(config, "attention_chunk_size", None) is not None
    if not plain or chunked:
        raise InvalidValueError(
            f'attn_implementation="{NAME}" supports padding, causality and sliding windows, but '
            f"{type(config).__name__} asks for more: documents packed by position_ids, chunks, or "
            'a mask function of its own. Pad the documents, or use attn_implementation="sdpa"'
        )
    # A causal window of w includes the token itself; a bidirectional one has w on each side.
    radius = None if local_size is None else local_size - allow_is_causal_skip
    return Mask(Documents.of(batch_size, q_length, attention_mask), allow_is_causal_skip, radius)


def longbird_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Mask | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Compute the attention of one layer of a model of transformers, on the graph of its config.

    Args:
        module: The attention of the layer; `layer_idx`, where it has one, reseeds the graph.
        query: [batch, heads, n, head_dim].
        key: [batch, key heads, n, head_dim]; each key head serves the same number of heads.
        value: As key.
        attention_mask: The result of `longbird_mask`; None in models that never ask for a mask.
        dropout: Share of attention probabilities that are dropped.
        scaling: Factor of q . k.
        is_causal: Without a mask, whether the layer is causal; the default is up to the module.
        sliding_window: Without a mask, the distance from which keys are out of reach.
        **kwargs: Other arguments of the model; an error if one would change the result.

    Returns:
        The output, [batch, n, heads, head_dim], zeros for padding; and None for the weights.

    Raises:
        ValueError: The layer asks for something that the operator does not support.
    """
    config: Any = module.config
    layer = f"{type(module).__name__} of {type(config).__name__}"
    for name in REFUSED:
        if kwargs.get(name) is not None and kwargs[name] is not False:
            raise InvalidValueError(
                f'attn_implementation="{NAME}" cannot take {name}, which {layer} received; leave '
                'it out, or use attn_implementation="eager"'
            )
    _check_whole_sequences(config, query.shape[2], key.shape[2], cross="Cross" in layer)
    if attention_mask is None:
        causal = module.is_causal if is_causal is None else is_causal
        radius = None if sliding_window is None else sliding_window - 1
        documents = Documents.of(query.shape[0], query.shape[2], None)
        attention_mask = Mask(documents, bool(causal), radius)
    elif not isinstance(attention_mask, Mask):
        raise InvalidValueError(
            f'attn_implementation="{NAME}" takes an attention mask [batch, n]: 1 for a token, 0 '
            f"for padding; {layer} received a mask of shape {tuple(attention_mask.shape)}. Which "
            "token sees which is decided by config.longbird_graph"
        )
    documents, causal, radius = attention_mask
    number = getattr(module, "layer_idx", None) or 0
    graph = _layer_graph(_stored_graph(config), number, causal, radius)

    if torch.is_autocast_enabled(query.device.type):  # casts as it does for torch's attention
        dtype = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    if query.shape[1] != key.shape[1]:
        heads = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(heads, 1), value.repeat_interleave(heads, 1)
    q, k, v = (documents.pack(x.transpose(1, 2)) for x in (query, key, value))
    out = Context(documents).attend(q, k, v, graph, dropout_p=dropout, scale=scaling)
    return documents.pad(out), None


def register() -> None:
    """Register the implementation, and add `longbird_graph` to all configs of transformers."""
    AttentionInterface.register(NAME, longbird_attention)
    AttentionMaskInterface.register(NAME, longbird_mask)
    # As a property of every config, so that `from_pretrained(..., longbird_graph=graph)` finds it,
    # values are checked when they are set, and config.json can hold them.
    setattr(PreTrainedConfig, "longbird_graph", property(_get_graph, _set_graph))  # noqa: B010
    # A model without the interface would ignore the name or log a warning; this is an error.
    for name in ("get_correct_attn_implementation", "set_attn_implementation"):
        method: Any = getattr(PreTrainedModel, name)
        if not hasattr(method, "__wrapped__"):  # not a second time
            setattr(PreTrainedModel, name, _checked(method))


def _get_graph(config: PreTrainedConfig) -> Graph | None:
    stored = vars(config).get("longbird_graph")
    return None if stored is None else as_graph(stored)


def _set_graph(config: PreTrainedConfig, value: Any) -> None:
    stored = None if value is None else json.loads(as_graph(value).to_json())
    if stored is not None:
        _check_effect(config)
    vars(config)["longbird_graph"] = stored


def _check_effect(config: PreTrainedConfig) -> None:
    """Raise if `longbird_graph` would have no effect on models with this config."""
    name = type(config).__name__
    if isinstance(config, LongbirdConfig):
        raise InvalidValueError(
            f"longbird_graph is for models of transformers, and has no effect on {name}: set its "
            "graph instead"
        )
    found: Any = MODEL_MAPPING.get(type(config), None)
    model = found[0] if isinstance(found, (tuple, list)) else found
    # Models made of models have a graph in the config of each part, which is checked by itself.
    if model is None or config.sub_configs:
        return
    if "ALL_ATTENTION_FUNCTIONS" not in inspect.getsource(sys.modules[model.__module__]):
        raise InvalidValueError(
            f"longbird_graph has no effect on {model.__name__}, which has no attention or "
            "computes it without the AttentionInterface of transformers: leave longbird_graph "
            "out, or use a model of Longbird if there is one"
        )


def _checked(method: Any) -> Any:
    @functools.wraps(method)
    def checked(self: Any, attn_implementation: Any, *args: Any, **kwargs: Any) -> Any:
        if attn_implementation == NAME and not self._can_set_attn_implementation():
            raise InvalidValueError(
                f'{type(self).__name__} cannot run with attn_implementation="{NAME}": it computes '
                "attention by itself and not through the AttentionInterface of transformers"
            )
        return method(self, attn_implementation, *args, **kwargs)

    return checked


def _check_whole_sequences(config: Any, queries: int, keys: int, cross: bool = False) -> None:
    cross = cross or config.is_encoder_decoder or getattr(config, "add_cross_attention", False)
    if cross or queries != keys:
        raise InvalidValueError(
            f'attn_implementation="{NAME}" attends within whole sequences, received {queries} '
            f"queries and {keys} keys in {type(config).__name__}. Generate with use_cache=False; "
            "for encoder-decoders and cross attention use Longbird's own models"
        )


def _stored_graph(config: PreTrainedConfig) -> dict[str, Any]:
    stored = vars(config).get("longbird_graph")
    if stored is None:
        raise InvalidValueError(
            f'attn_implementation="{NAME}" needs a graph: set longbird_graph of the '
            f"{type(config).__name__}, such as config.longbird_graph = longbird.bigbird()"
        )
    return stored


@constant  # otherwise torch.compile would break here, and compile every layer again
def _layer_graph(stored: dict[str, Any], layer: int, causal: bool, radius: int | None) -> Graph:
    return _built_graph(json.dumps(stored), layer, causal, radius)


@functools.lru_cache(maxsize=256)
def _built_graph(text: str, layer: int, causal: bool, radius: int | None) -> Graph:
    graph = as_graph(text).reseed(layer)
    if causal:
        graph &= Causal()
    return graph if radius is None else graph & Window(radius)
