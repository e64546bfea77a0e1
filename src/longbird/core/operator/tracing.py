"""What torch.compile must not look into, since it uses NumPy or reads values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def eagerly(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """Calls a function outside of compiled programs, which break there."""
    if "torch._dynamo" not in sys.modules:  # nothing is being compiled, and it imports slowly
        return function(*args, **kwargs)
    disabled: Any = torch.compiler.disable(function)
    return disabled(*args, **kwargs)


def constant(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Marks a function that is called while a program is compiled; its result is a constant there.

    What torch.compiler.assume_constant_result does, which would import the compiler (1.5 s).
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
