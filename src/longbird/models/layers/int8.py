"""Linear layers with int8 weights, for inference on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from longbird.errors import InvalidValueError
from longbird.models.layers.int8_kernels import (
    ROW_STEPS,
    WEIGHT_STEPS,
    Rounded,
    int8_linear,
    rounded,
)


class Int8Linear(nn.Module):
    """A linear layer with weights in int8, a scale for each output, and a bias in float32.

    Its inputs are rounded to int8 too, with a scale for each row.
    """

    def __init__(self, weight: Rounded, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.numbers, requires_grad=False)
        self.scale = nn.Parameter(weight.scale, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    @classmethod
    def of(cls, linear: nn.Linear) -> Int8Linear:
        """Round the weights of a linear layer."""
        weight, bias = linear.weight.detach(), linear.bias
        if weight.dtype != torch.float32:
            raise InvalidValueError(
                f"int8 weights are made from float32 weights, received {weight.dtype}; load the "
                "model with dtype=torch.float32"
            )
        return cls(rounded(weight, WEIGHT_STEPS), None if bias is None else bias.detach().clone())

    def forward(self, x: Tensor | RoundedRows) -> Tensor:
        """[..., i] to [..., o]."""
        x = x if isinstance(x, RoundedRows) else RoundedRows(x)
        out = int8_linear(x.rows, Rounded(self.weight, self.scale), self.bias)
        return out.unflatten(0, x.shape) if len(x.shape) != 1 else out

    def extra_repr(self) -> str:
        """Describe the layer for `print(model)`."""
        outputs, inputs = self.weight.shape
        return f"in_features={inputs}, out_features={outputs}, bias={self.bias is not None}"


class RoundedRows:
    """Rows [..., i] in int8, which several layers share."""

    def __init__(self, x: Tensor) -> None:
        if x.dtype != torch.float32 or x.device.type not in ("cpu", "meta"):
            raise InvalidValueError(
                "a model with int8 weights computes in float32 on a CPU, received "
                f"{x.dtype} on {x.device}; use the model that it was made from"
            )
        if x.requires_grad and torch.is_grad_enabled():
            raise InvalidValueError(
                "a model with int8 weights has no gradients: it is for inference only; use the "
                "model that it was made from"
            )
        if torch.compiler.is_exporting() and torch.onnx.is_in_onnx_export():
            raise InvalidValueError(
                "a model with int8 weights cannot be exported to ONNX: export the model that it "
                "was made from, and let the quantiser of your runtime round it"
            )
        self.shape = x.shape[:-1]
        self.rows = rounded(x.reshape(-1, x.shape[-1]), ROW_STEPS)


def through_each(x: Tensor, *layers: nn.Module) -> list[Tensor]:
    """Apply several linear layers to the same rows [..., i], which are rounded only once."""
    rows = RoundedRows(x) if isinstance(layers[0], Int8Linear) else x
    return [layer(rows) for layer in layers]
