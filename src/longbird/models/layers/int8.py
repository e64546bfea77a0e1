"""Linear layers with int8 weights, for inference on a CPU, exact on every processor.

A row of activations is rounded to 127 steps on either side of 0, scaled by its largest number; a
row of weights to 64 steps. On processors without VNNI, torch's kernel (oneDNN) adds two products
in 16 bits and saturates: 2 * 255 * 64 fits, 2 * 255 * 127 does not. With 64 steps, every processor
computes the same integers. See docs/adr/0013-int8.md.

Axes: t rows (tokens), i inputs, o outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from longbird.errors import InvalidValueError

ROW_STEPS = 127
WEIGHT_STEPS = 64
SMALLEST = 1e-30
"""Rows of smaller numbers are rounded to zeros: their scale would have no finite inverse."""


class Rounded(NamedTuple):
    """A matrix of integers, and the size of a step in each of its rows."""

    numbers: Tensor
    """int8 [rows, columns]."""
    scale: Tensor
    """float32 [rows]."""


def rounded(x: Tensor, steps: int) -> Rounded:
    """Round a matrix row by row; a row with NaN or infinity gets a scale that is not finite.

    Examples:
        >>> import torch
        >>> rounded(torch.tensor([[1.0, -0.5], [0.0, 0.0]]), 127).numbers
        tensor([[127, -64],
                [  0,   0]], dtype=torch.int8)
    """
    # Faster than torch's maximum of absolute values, by a factor of ten.
    largest = torch.maximum(x.amax(1), -x.amin(1)).clamp(min=SMALLEST)
    numbers = (x * (steps / largest)[:, None]).round_().to(torch.int8)
    return Rounded(numbers, largest / steps)


def int8_linear(x: Rounded, weight: Rounded, bias: Tensor | None) -> Tensor:
    """Apply a linear layer: [t, i] and [o, i] to float32 [t, o].

    Examples:
        >>> import torch
        >>> x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])
        >>> int8_linear(rounded(x, 127), rounded(weight, 64), None)
        tensor([[11.0236,  2.0000]])
    """
    if len(weight.numbers) == 1:  # oneDNN (up to 3.12) is wrong there on AVX-512 without VNNI
        out = (x.numbers.int() @ weight.numbers.int().t()).to(torch.float32)
    else:
        out = torch.ops.aten._int_mm(x.numbers, weight.numbers.t()).to(torch.float32)
    # Scale by the weights first, so that huge activations overflow only if their product does.
    out = out.mul_(weight.scale).mul_(x.scale[:, None])
    return out if bias is None else out.add_(bias)


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
