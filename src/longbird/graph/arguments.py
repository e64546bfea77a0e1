"""Checks of the arguments that graphs are made from, and the tiles that suit them.

Every message shows what was received.
"""

from __future__ import annotations

import operator
from typing import Any

# Positions are int32 in the layouts, so no length, radius or block can be larger.
MOST_TOKENS = 2**31 - 1
MOST_SEED = 2**63 - 1


def integer(value: Any, name: str, least: int = 0, most: int = MOST_TOKENS) -> int:
    """Return `value` as a Python int from `least` to `most`; a bool is not an integer."""
    limits = f">= {least}" if most == MOST_TOKENS else f"from {least} to {most}"
    expected = f"{name} must be an integer {limits}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{expected}, received {value!r} ({type(value).__name__})") from None
    if number > MOST_TOKENS == most:
        raise ValueError(f"{expected} and at most {most}, received {number}")
    if not least <= number <= most:
        raise ValueError(f"{expected}, received {number}")
    return number


def probability(value: Any, name: str) -> float:
    """Return `value` as a float from 0 to 1."""
    expected = f"{name} must be a number from 0 to 1"
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        number = float(value)
    except TypeError:
        raise TypeError(f"{expected}, received {value!r} ({type(value).__name__})") from None
    except OverflowError:
        raise ValueError(f"{expected}, received an integer too large for a float") from None
    if not 0.0 <= number <= 1.0:  # also false for NaN
        raise ValueError(f"{expected}, received {number}")
    return number


def tile_for(block: int) -> int:
    """The size of tiles that cut few blocks of this size."""
    if block < 16:
        return block * round(64 / block)
    return max((size for size in range(16, 129) if block % size == 0), default=64)
