"""Make models with int8 weights from models with float32 weights."""

from __future__ import annotations

import copy
from typing import Any

import torch

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.layers.int8 import WEIGHT_STEPS, Int8Linear
from longbird.models.pretrained import LoadingError, LongbirdPreTrainedModel


def quantize(model: Any) -> Any:
    """Return a copy of a model with int8 weights in its layers, for faster inference on a CPU.

    The weights of queries, keys, values, attention outputs and feed-forward blocks become int8, as
    do their inputs. Embeddings, norms, attention and heads stay in float32. Such a model is saved
    and loaded like any other, with the same results to the last bit. It cannot be trained.

    Args:
        model: A Longbird model with float32 weights, which is not changed.

    Returns:
        The copy, in evaluation mode; or the model itself, if its weights are int8 already.

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


def as_float32(options: dict[str, Any]) -> None:
    """Ask for float32, which is the type beside int8 weights; raise if another type was given."""
    name = "torch_dtype" if "torch_dtype" in options else "dtype"
    given = options.setdefault(name, torch.float32)
    if given == "auto":
        options[name] = torch.float32
    elif given not in (None, torch.float32, "float32", "torch.float32"):
        raise InvalidValueError(
            f'quantize="int8" goes with float32 beside the int8 weights, received {name}={given}; '
            f"leave {name} out"
        )


def check_int8(path: Any, model: Any) -> None:
    """Raise for weights that Longbird does not write, and that some processors would cut off."""
    for name, layer in model.named_modules():
        if not isinstance(layer, Int8Linear) or layer.weight.is_meta:
            continue
        least, most = (int(x) for x in layer.weight.aminmax())
        if least < -WEIGHT_STEPS or most > WEIGHT_STEPS:
            raise LoadingError(
                f"{name}.weight of {path} must be integers from {-WEIGHT_STEPS} to "
                f"{WEIGHT_STEPS}, received {least} to {most}; make the folder again, with "
                "longbird.quantize of the model that it was made from"
            )
