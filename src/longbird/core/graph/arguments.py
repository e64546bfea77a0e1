"""Checks of the arguments of graphs; every message shows what was received."""

from __future__ import annotations

import difflib
import inspect
import operator
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from longbird.errors import InvalidTypeError, InvalidValueError

# Positions are int32 in the layouts, so no length, radius or block can be larger.
MOST_TOKENS = 2**31 - 1
MOST_SEED = 2**63 - 1


class _Short(reprlib.Repr):
    """Shortens a repr to about 80 characters, keeping the quotes and brackets at both ends."""

    def repr_int(self, x: int, level: int) -> str:
        """Return the size of an integer that Python refuses to convert to text."""
        return f"<an integer of {x.bit_length()} bits>" if x.bit_length() > 256 else str(x)


_short = _Short()
_short.maxstring = _short.maxother = 80


def shown(value: object) -> str:
    """Return a value as messages show it: its repr, shortened in the middle if it is long.

    Examples:
        >>> shown("Window(3)"), shown(range(10**9))
        ("'Window(3)'", 'range(0, 1000000000)')
        >>> len(shown(10_000 * "x"))
        80
    """
    return _short.repr(value)


def check_arguments(
    make: Callable[..., object], given: Sequence[object], named: Mapping[str, object]
) -> None:
    """Raise a TypeError if these cannot be the arguments of a piece or preset."""
    signature = inspect.signature(make)
    name = make.__name__
    taken = [str(each.replace(annotation=each.empty)) for each in signature.parameters.values()]
    takes = f"it takes ({', '.join(taken)})" if taken else "it takes none"
    for argument in named:
        if argument not in signature.parameters:
            near = difflib.get_close_matches(argument[:80], signature.parameters, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise InvalidTypeError(f"{name} has no argument {shown(argument)}{hint}; {takes}")
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        raise InvalidTypeError(f"{name}: {error}; {takes}") from None


def integer(value: Any, name: str, least: int = 0, most: int = MOST_TOKENS) -> int:
    """Return `value` as a Python int from `least` to `most`; a bool is not an integer."""
    limits = f">= {least}" if most == MOST_TOKENS else f"from {least} to {most}"
    expected = f"{name} must be an integer {limits}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidTypeError(
            f"{expected}, received {shown(value)} ({type(value).__name__})"
        ) from None
    if number > MOST_TOKENS == most:
        raise InvalidValueError(f"{expected} and at most {most}, received {shown(number)}")
    if not least <= number <= most:
        raise InvalidValueError(f"{expected}, received {shown(number)}")
    return number


def probability(value: Any, name: str) -> float:
    """Return `value` as a float from 0 to 1."""
    expected = f"{name} must be a number from 0 to 1"
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        number = float(value)
    except TypeError:
        raise InvalidTypeError(
            f"{expected}, received {shown(value)} ({type(value).__name__})"
        ) from None
    except OverflowError:
        raise InvalidValueError(f"{expected}, received an integer too large for a float") from None
    if not 0.0 <= number <= 1.0:  # also false for NaN
        raise InvalidValueError(f"{expected}, received {number}")
    return number


def tile_for(block: int) -> int:
    """Return the size of tiles that cuts few blocks of a given size."""
    if block < 16:
        return block * round(64 / block)
    return max((size for size in range(16, 129) if block % size == 0), default=64)
