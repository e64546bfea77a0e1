"""Storing a trained model as the difference to its starting weights, in a byte per weight.

Training changes weights little, so a byte for the difference is more precise than a byte for the
weight itself. Each row has its own scale, and the error is below 1/250 of the row's largest
change. Weights that did not change, such as frozen embeddings, take no space.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from longbird.errors import InvalidValueError

STEPS = 127
"""Number of steps of a byte in each direction."""
NUMBERS, SCALES = ".difference", ".scale"
"""Suffixes of the names of tensors that are stored as a difference."""


def write_difference(
    trained: Mapping[str, Tensor], start: Mapping[str, Tensor], file: str | Path
) -> None:
    """Write what changed: matrices as differences in bytes, and other tensors as they are.

    Args:
        trained: Trained weights by name.
        start: Starting weights; tensors that these do not have are new.
        file: safetensors file to write.
    """
    kept: dict[str, Tensor] = {}
    for name, value in trained.items():
        if name not in start or value.ndim != 2:
            kept[name] = value.float().contiguous()
            continue
        change = value.float() - start[name].float()
        if not change.any():
            continue
        scale = change.abs().amax(1, keepdim=True) / STEPS
        kept[name + NUMBERS] = (change / scale.clamp(min=1e-30)).round().to(torch.int8)
        kept[name + SCALES] = scale[:, 0].contiguous()
    save_file(kept, file)


def apply_difference(start: Mapping[str, Tensor], file: str | Path) -> dict[str, Tensor]:
    """Return the trained weights, from the weights that training started from.

    Raises:
        ValueError: The file has a difference to a tensor that does not exist, or has another
            shape.
    """
    kept = load_file(file)
    found = dict(start)
    for name, value in kept.items():
        if name.endswith(SCALES):
            continue
        if not name.endswith(NUMBERS):
            found[name] = value
            continue
        base = name.removesuffix(NUMBERS)
        if base not in start or start[base].shape != value.shape:
            shape = list(start[base].shape) if base in start else "missing"
            raise InvalidValueError(
                f"{file} has a difference of shape {list(value.shape)} to {base}, which is "
                f"{shape} in the starting weights"
            )
        found[base] = start[base].float() + value.float() * kept[base + SCALES][:, None]
    return found
