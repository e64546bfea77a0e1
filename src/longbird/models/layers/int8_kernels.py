"""Products of int8 matrices with torch's own kernel, exact on every processor.

A row of activations is rounded to 127 steps on either side of 0, scaled by its largest number; a
row of weights to 64 steps. On processors without VNNI, torch's kernel (oneDNN) adds two products
in 16 bits and saturates: 2 * 255 * 64 fits, 2 * 255 * 127 does not. With 64 steps, every processor
computes the same integers. See docs/adr/0013-int8.md.

Axes: t rows (tokens), i inputs, o outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

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
