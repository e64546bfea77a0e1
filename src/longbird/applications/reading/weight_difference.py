"""A trained model as the difference to the weights that it started from, in bytes.

Training moves weights little, so a byte for the difference of each says more than a byte for the
weight itself: a row has its own scale, and the error is under 1/250 of the row's largest change.
What did not learn, such as frozen words, takes no room.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from longbird.errors import InvalidValueError

STEPS = 127
"""Of a byte, up or down."""
NUMBERS, SCALES = ".difference", ".scale"
"""What stands behind the name of a tensor that is kept as a difference."""


def write_difference(
    trained: Mapping[str, Tensor], start: Mapping[str, Tensor], file: str | Path
) -> None:
    """Writes what changed: matrices of the start in bytes, everything else as it is.

    Args:
        trained: Weights by name.
        start: Those that it started from; what it has more is new.
        file: To write, as safetensors.
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
    """The trained weights again, of those that training started from.

    Raises:
        ValueError: The file has a difference to a tensor that the start has not, or of another
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
            was = list(start[base].shape) if base in start else "nothing"
            raise InvalidValueError(
                f"{file} has a difference of shape {list(value.shape)} to {base}, which is {was} "
                "in the weights that it is to be added to"
            )
        found[base] = start[base].float() + value.float() * kept[base + SCALES][:, None]
    return found
