"""Functions that torch.compile must not trace, because they use NumPy or read values."""

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
    """Call a function outside of compiled programs, with a graph break."""
    if "torch._dynamo" not in sys.modules:  # nothing is being compiled, and importing it is slow
        return function(*args, **kwargs)
    disabled: Any = torch.compiler.disable(function)
    return disabled(*args, **kwargs)


def constant(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Mark a function that is called at compile time, and whose result is then a constant.

    Equivalent to torch.compiler.assume_constant_result, which imports the compiler (1.5 s).
    """
    vars(function)["_dynamo_marked_constant"] = True
    return function
