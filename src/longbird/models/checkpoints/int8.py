"""Folders of models with int8 weights: what is checked beside names and shapes."""

from __future__ import annotations

from typing import Any

import torch

from longbird.errors import InvalidValueError
from longbird.models.layers.int8 import Int8Linear
from longbird.models.layers.int8_kernels import WEIGHT_STEPS
from longbird.models.pretrained import LoadingError


def int8_names(model: Any) -> set[str]:
    """The tensors of a model that are int8."""
    return {name for name, x in model.state_dict().items() if x.dtype == torch.int8}


def check_int8(path: Any, model: Any) -> None:
    """Raises for weights that Longbird would not have written, and some processors cut off."""
    for name, layer in model.named_modules():
        if not isinstance(layer, Int8Linear) or layer.weight.is_meta:
            continue
        least, most = (int(x) for x in layer.weight.aminmax())
        if least < -WEIGHT_STEPS or most > WEIGHT_STEPS:
            raise LoadingError(
                f"{name}.weight of {path} must be integers from {-WEIGHT_STEPS} to "
                f"{WEIGHT_STEPS}, received {least} to {most}; make the folder again, with "
                "longbird.quantize of the model that it was made of"
            )


def as_float32(options: dict[str, Any]) -> None:
    """Asks for float32 among the options of loading, beside which int8 is; raises for others."""
    name = "torch_dtype" if "torch_dtype" in options else "dtype"
    given = options.setdefault(name, torch.float32)
    if given == "auto":
        options[name] = torch.float32
    elif given not in (None, torch.float32, "float32", "torch.float32"):
        raise InvalidValueError(
            f'quantize="int8" goes with float32 beside the int8 weights, received {name}={given}; '
            f"leave {name} out"
        )
