"""Products of int8 numbers by torch's own kernel, exact on every processor.

A row of activations is rounded to 127 steps to either side of 0, by its largest number; a row of
weights to 64 steps. Where a processor has no VNNI, torch's kernel (oneDNN) adds two products in 16
bits, and cuts off what does not fit: 2 * 255 * 64 fits, 2 * 255 * 127 does not. So every processor
gives the same integers, and none of them a wrong one. See docs/adr/0013-int8.md.

Axes: t rows (tokens), i inputs, o outputs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

ROW_STEPS = 127
WEIGHT_STEPS = 64
SMALLEST = 1e-30
"""A row of smaller numbers counts as zeros: the inverse of its scale would not be finite."""


class Rounded(NamedTuple):
    """A matrix as integers, and what one step is worth in each of its rows."""

    numbers: Tensor
    """int8 [rows, columns]."""
    scale: Tensor
    """float32 [rows]."""


def rounded(x: Tensor, steps: int) -> Rounded:
    """The rows of a matrix in steps of their own; a row with NaN or infinity has such a scale.

    Examples:
        >>> import torch
        >>> rounded(torch.tensor([[1.0, -0.5], [0.0, 0.0]]), 127).numbers
        tensor([[127, -64],
                [  0,   0]], dtype=torch.int8)
    """
    # torch takes ten times as long for the largest absolute value at once.
    largest = torch.maximum(x.amax(1), -x.amin(1)).clamp(min=SMALLEST)
    numbers = (x * (steps / largest)[:, None]).round_().to(torch.int8)
    return Rounded(numbers, largest / steps)


def int8_linear(x: Rounded, weight: Rounded, bias: Tensor | None) -> Tensor:
    """A linear layer, [t, i] and [o, i] to float32 [t, o].

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
    # First by the weights, so that huge activations do not overflow where their product does not.
    out = out.mul_(weight.scale).mul_(x.scale[:, None])
    return out if bias is None else out.add_(bias)
