"""`attn_implementation="longbird"`: the models of transformers run on a graph in their config.

transformers asks two functions of an implementation. `longbird_mask` is called once for a batch
and says what the model itself asks for: padding, causality, a sliding window. Every layer then
hands that to `longbird_attention`, which adds the graph. Nothing n x n exists.
"""

from __future__ import annotations

import functools
import json
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedConfig
from transformers.modeling_utils import PreTrainedModel

from longbird.core.graph import Causal, Graph, Window, as_graph
from longbird.core.operator.tracing import constant
from longbird.errors import InvalidValueError
from longbird.models.layers.context import Context
from longbird.models.layers.packing import Documents

NAME = "longbird"

# What a model may hand to its attention that changes the result, and that the operator has not.
REFUSED = (
    "output_attentions", "position_bias", "attention_bias", "head_mask", "softcap", "s_aux",
    "sinks", "cu_seq_lens_q", "cu_seq_lens_k", "indices", "block_indices", "cache",
)  # fmt: skip


class Mask(NamedTuple):
    """What `longbird_mask` tells every layer."""

    documents: Documents
    """Where the tokens are that are no padding."""
    causal: bool
    radius: int | None
    """How far a sliding window reaches; None without one."""


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
    """What a model asks of all its layers, or of its layers with a sliding window.

    Raises:
        ValueError: It is more than padding, causality and a sliding window.
    """
    _check_whole_sequences(config, q_length, kv_offset + kv_length)
    # transformers allows to leave out the mask, where there is no padding, of two kinds of model
    # only: those that are just causal, and those that are just bidirectional.
    plain = allow_is_causal_skip or allow_is_bidirectional_skip
    chunked = local_size is not None and getattr(config, "attention_chunk_size", None) is not None
    if not plain or chunked:
        raise InvalidValueError(
            f'attn_implementation="{NAME}" knows padding, causality and sliding windows, but '
            f"{type(config).__name__} asks for more: documents packed by position_ids, chunks, or "
            'a mask function of its own. Pad the documents, or use attn_implementation="sdpa"'
        )
    # A causal window of w has the token itself in it, a bidirectional one has w on each side.
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
    """The attention of one layer of a model of transformers, on the graph of its config.

    Args:
        module: The attention of the layer; `layer_idx`, where it has one, reseeds the graph.
        query: [batch, heads, n, head_dim].
        key: [batch, key heads, n, head_dim]; a key head serves as many heads as there are to one.
        value: As key.
        attention_mask: What `longbird_mask` made; None in models that never ask for a mask.
        dropout: The share of attention probabilities that are dropped.
        scaling: What q . k is multiplied by.
        is_causal: Without a mask, whether the layer is causal; by default what the module says.
        sliding_window: Without a mask, how far away a key must not be.
        **kwargs: What else the model gives; an error if it would change the result.

    Returns:
        The output, [batch, n, heads, head_dim], zeros for padding; and None for the weights.

    Raises:
        ValueError: The layer asks for what the operator cannot do; the message says what.
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
            "token sees which is said by config.longbird_graph"
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
    """Makes the implementation known to transformers, and `longbird_graph` to every config."""
    AttentionInterface.register(NAME, longbird_attention)
    AttentionMaskInterface.register(NAME, longbird_mask)
    # As a property of every config, so that `from_pretrained(..., longbird_graph=graph)` finds it,
    # what is given is checked at once, and it is kept as config.json can hold it.
    setattr(PreTrainedConfig, "longbird_graph", property(_get_graph, _set_graph))  # noqa: B010
    # A model without the interface would ignore the name, or log a warning: make it an error.
    for name in ("get_correct_attn_implementation", "set_attn_implementation"):
        method: Any = getattr(PreTrainedModel, name)
        if not hasattr(method, "__wrapped__"):  # once, also when registered again
            setattr(PreTrainedModel, name, _checked(method))


def _get_graph(config: PreTrainedConfig) -> Graph | None:
    stored = vars(config).get("longbird_graph")
    return None if stored is None else as_graph(stored)


def _set_graph(config: PreTrainedConfig, value: Any) -> None:
    stored = None if value is None else json.loads(as_graph(value).to_json())
    vars(config)["longbird_graph"] = stored


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


@constant  # otherwise torch.compile stops here, and compiles what follows again for every layer
def _layer_graph(stored: dict[str, Any], layer: int, causal: bool, radius: int | None) -> Graph:
    return _built_graph(json.dumps(stored), layer, causal, radius)


@functools.lru_cache(maxsize=256)
def _built_graph(text: str, layer: int, causal: bool, radius: int | None) -> Graph:
    graph = as_graph(text).reseed(layer)
    if causal:
        graph &= Causal()
    return graph if radius is None else graph & Window(radius)
