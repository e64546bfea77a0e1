"""Models with int8 weights, made of models with float32 ones."""

from __future__ import annotations

import copy
from typing import Any

from longbird.errors import InvalidTypeError
from longbird.models.pretrained import LongbirdPreTrainedModel


def quantize(model: Any) -> Any:
    """The same model with int8 weights in its layers, for faster inference on a CPU.

    Queries, keys, values, attention outputs and feed-forward blocks become int8, as do the rows
    that they are given; embeddings, norms, attention and heads stay in float32. Such a model is
    saved and loaded like any other, with the same results to the last bit. It cannot be trained.

    Args:
        model: A Longbird model with float32 weights, which stays as it is.

    Returns:
        A copy with int8 weights, in evaluation mode; the model itself, if it has them already.

    Raises:
        TypeError: `model` is not a Longbird model.
        ValueError: Its weights are not float32.

    Examples:
        >>> import longbird as lb, torch
        >>> sizes = dict(hidden_size=64, num_attention_heads=2, num_hidden_layers=2)
        >>> model = lb.LongbirdModel(lb.LongbirdConfig(vocab_size=100, **sizes)).eval()
        >>> small = lb.quantize(model)
        >>> small.layers[0].feed_forward.leave.weight.dtype
        torch.int8
        >>> ids = torch.randint(100, (1, 300))
        >>> difference = small(ids).last_hidden_state - model(ids).last_hidden_state
        >>> bool(difference.abs().max() < 0.2)
        True
    """
    if not isinstance(model, LongbirdPreTrainedModel):
        raise InvalidTypeError(
            "longbird.quantize takes a Longbird model, such as LongbirdModel, received "
            f"{type(model).__name__}"
        )
    return model if model.quantized else copy.deepcopy(model).to_int8()
