"""Checks of inputs before they are used: their types, their devices, and their values.

Values are not read while a program is traced or exported, because they do not exist yet.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from longbird.errors import InvalidTypeError, InvalidValueError

IGNORED = -100
"""The label of tokens and documents that do not count, as in torch and transformers."""


def readable(x: Tensor) -> bool:
    """Return whether the values of a tensor can be read here."""
    traced = torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
    return not (torch.compiler.is_compiling() or traced or x.is_meta)


def check_marks(name: str, mask: Tensor) -> None:
    """Raise unless a mask has only zeros and ones; compiled programs read it too."""
    if mask.is_meta:
        raise InvalidValueError(
            f"{name} must have values, received a tensor on the meta device; move it to the "
            "device of the model"
        )
    if mask.dtype != torch.bool and bool(((mask != 0) & (mask != 1)).any()):
        odd = mask[(mask != 0) & (mask != 1)][0]
        raise InvalidValueError(f"{name} must be 0 or 1 everywhere, received {odd.item()}")


def check_tensor(name: str, x: Any) -> None:
    """Raise unless an input is a tensor or None."""
    if x is not None and not isinstance(x, Tensor):
        raise InvalidTypeError(
            f"{name} must be a tensor, received {type(x).__name__}; torch.as_tensor(...) makes "
            'one, and a tokenizer gives tensors with return_tensors="pt"'
        )


def check_device(name: str, x: Tensor, other: str, device: torch.device) -> None:
    """Raise unless an input is on the device of another one."""
    if x.device != device:
        raise InvalidValueError(
            f"{name} must be on the device of {other}, {device}, received {x.device}; "
            f'`.to("{device}")` moves a tensor there'
        )


def as_floats(name: str, x: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert floating-point numbers to the dtype of the model; raise for other numbers."""
    check_tensor(name, x)
    if not x.is_floating_point():
        raise InvalidTypeError(
            f"{name} must be floating-point numbers ({dtype}), received {x.dtype}; "
            f"`.to({dtype})` makes them so"
        )
    return x.to(dtype)


def check_integers(name: str, x: Tensor) -> None:
    """Raise unless an input has integers that can index a table."""
    check_tensor(name, x)
    if x.dtype not in (torch.int64, torch.int32):
        raise InvalidTypeError(
            f"{name} must be integers (torch.int64), received {x.dtype}; `.long()` makes them so"
        )


def check_numbers(name: str, x: Tensor, count: int, of: str) -> None:
    """Raise unless every number is below `count`; `of` describes the limit in the message."""
    check_integers(name, x)
    if x.numel() == 0 or not readable(x):
        return
    least, most = (int(end) for end in torch.aminmax(x))
    if least < 0 or most >= count:
        raise InvalidValueError(
            f"{name} must be from 0 to {count - 1} ({of}), received {least if least < 0 else most}"
        )


def check_shares(name: str, x: Tensor) -> None:
    """Raise unless every number is from 0.0 to 1.0."""
    if x.dtype == torch.bool or x.numel() == 0 or not readable(x):
        return
    least, most = (float(end) for end in torch.aminmax(x))
    if not (least >= 0.0 and most <= 1.0):  # so that NaN is refused
        raise InvalidValueError(
            f"{name} must be from 0.0 to 1.0, received {most if least >= 0.0 else least}"
        )


def check_labels(name: str, labels: Tensor, count: int, of: str) -> None:
    """Raise unless every label is below `count`, or is -100 for one that does not count."""
    check_integers(name, labels)
    if labels.numel() == 0 or not readable(labels):
        return
    odd = labels[((labels < 0) | (labels >= count)) & (labels != IGNORED)]
    if len(odd):
        raise InvalidValueError(
            f"{name} must be from 0 to {count - 1} ({of}), or {IGNORED} for what does not count; "
            f"received {odd[0].item()}"
        )
