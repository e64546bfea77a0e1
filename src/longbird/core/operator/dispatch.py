"""Which implementation runs a call, and why the others do not.

The four implementations never import each other; this file and `oracle.py` know them all. A new
one is a module with `NAME`, `missing()`, `unsupported(call)` and `run(call)`, named in the tuples
below.

- A named implementation runs or raises: it never falls back to another.
- "auto" takes the first of AUTOMATIC that has nothing against the call. `reference` is never taken
  automatically (it is quadratic), `flex` only on CUDA (on a CPU it has no backward, and compiles
  at run time).
"""

from __future__ import annotations

import warnings
from typing import Protocol

from torch import Tensor

from longbird.core.operator import flex, gather, native, reference
from longbird.core.operator.call import Call
from longbird.errors import InvalidValueError


class Implementation(Protocol):
    """What each of the four modules offers."""

    @property
    def NAME(self) -> str:
        """What `impl=` calls it."""
        ...

    def missing(self) -> str | None:
        """Why it cannot run here at all, or None."""
        ...

    def unsupported(self, call: Call) -> list[str]:
        """Why it cannot run this call; depends on shapes, dtypes and devices, never on values."""
        ...

    def run(self, call: Call) -> tuple[Tensor, Tensor]:
        """The output and the log-sum-exp, which has no meaning unless `call.return_lse`."""
        ...


ALL: tuple[Implementation, ...] = (native, flex, gather, reference)
AUTOMATIC: tuple[Implementation, ...] = (native, flex, gather)

# Asked once, here: torch.compile cannot trace the loading of an extension module.
ABSENT: dict[str, str | None] = {each.NAME: each.missing() for each in ALL}


class Implementations(dict[str, str]):
    """Name -> "available", or why it is not here; prints as a table."""

    def __repr__(self) -> str:
        width = max(len(name) for name in self)
        return "\n".join(f"{name:<{width}}  {state}" for name, state in self.items())


def implementations() -> Implementations:
    """The implementations of the operator in order of preference: what is here, and if not, why.

    Examples:
        >>> import longbird as lb
        >>> lb.implementations()["gather"]
        'available'
    """
    return Implementations({name: reason or "available" for name, reason in ABSENT.items()})


def reasons(implementation: Implementation, call: Call) -> list[str]:
    """Why an implementation cannot run a call; empty if it can."""
    absent = ABSENT[implementation.NAME]
    return [absent] if absent is not None else implementation.unsupported(call)


def choose(call: Call, impl: str) -> Implementation:
    """The implementation that runs a call.

    Raises:
        ValueError: The one that was named, or every automatic one, cannot run it; says why.
    """
    if impl == "auto":
        return _first(call)
    for implementation in ALL:
        if impl == implementation.NAME:
            against = reasons(implementation, call)
            if against:
                raise InvalidValueError(
                    f'impl="{impl}" cannot run this call: {"; ".join(against)}'
                )
            return implementation
    names = ", ".join(repr(each.NAME) for each in ALL)
    raise InvalidValueError(f"impl must be 'auto' or one of {names}, received {impl!r}")


def _first(call: Call) -> Implementation:
    refused: list[str] = []
    for implementation in AUTOMATIC:
        against = _automatic_reasons(implementation, call)
        if not against:
            return implementation
        refused.append(f"  {implementation.NAME}: {'; '.join(against)}")
    lines = "\n".join(refused)
    raise InvalidValueError(
        f"no implementation can run this call:\n{lines}\n"
        '  (impl="reference" runs everything, in quadratic time and memory)'
    )


def _automatic_reasons(implementation: Implementation, call: Call) -> list[str]:
    if implementation is flex and call.q.device.type != "cuda":
        return ["taken automatically on CUDA only"]
    if implementation is native and call.q.device.type == "cpu":
        _warn_of_slow_fallback(call)
    return reasons(implementation, call)


def _warn_of_slow_fallback(call: Call) -> None:
    """Warn where a CPU could run native kernels, but this installation or head size cannot."""
    problem = ABSENT[native.NAME]
    if problem is None and call.head_dim > native.LARGEST_HEAD_DIM:
        problem = (
            f"they take head_dim up to {native.LARGEST_HEAD_DIM}, received {call.head_dim}; use "
            'more heads of a smaller size, or name an implementation, such as impl="gather"'
        )
    if problem is not None:
        # Python's default filter shows a message once for each line of code that issues it.
        warnings.warn(
            f"longbird runs without its native kernels, several times slower: {problem}",
            stacklevel=1,
        )
