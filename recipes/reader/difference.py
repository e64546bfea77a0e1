"""Storing a trained model as the difference to its starting weights, in a byte per weight.

`longbird.applications.reading.default_reader` applies the difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from longbird.applications.reading.default_reader import NUMBERS, SCALES

STEPS = 127
"""Number of steps of a byte in each direction."""


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
