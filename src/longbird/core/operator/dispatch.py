"""Selection of the implementation that runs a call, with the reasons against the others.

The four implementations never import each other; only this module and `longbird.analysis.check`
import them all. To add one, write a module with `NAME`, `missing()`, `unsupported(call)` and
`run(call)`, and list it in the tuples below.

- A named implementation runs or raises: it never falls back to another.
- "auto" selects the first of AUTOMATIC that supports the call. `reference` is never selected
  automatically because it is quadratic, and `flex` only on CUDA, because on a CPU it has no
  backward pass and compiles at run time.
"""

from __future__ import annotations

import warnings
from typing import Protocol

from torch import Tensor

from longbird.core.operator import flex, gather, native, reference
from longbird.core.operator.call import Call
from longbird.core.operator.tracing import constant
from longbird.errors import InvalidValueError


class Implementation(Protocol):
    """The interface of the four modules."""

    @property
    def NAME(self) -> str:
        """Name for the argument `impl`."""
        ...

    def missing(self) -> str | None:
        """Return why it cannot run here at all, or None."""
        ...

    def unsupported(self, call: Call) -> list[str]:
        """Return why it cannot run a call, which depends on shapes, dtypes and devices only."""
        ...

    def run(self, call: Call) -> tuple[Tensor, Tensor]:
        """Return the output and the log-sum-exp, which is undefined unless `call.return_lse`."""
        ...


ALL: tuple[Implementation, ...] = (native, flex, gather, reference)
AUTOMATIC: tuple[Implementation, ...] = (native, flex, gather)

# Evaluated once here, because torch.compile cannot trace the import of an extension module.
ABSENT: dict[str, str | None] = {each.NAME: each.missing() for each in ALL}


class Implementations(dict[str, str]):
    """Maps names to "available" or the reason why not; prints as a table."""

    def __repr__(self) -> str:
        width = max(len(name) for name in self)
        return "\n".join(f"{name:<{width}}  {state}" for name, state in self.items())


def implementations() -> Implementations:
    """Return which implementations are available, in order of preference, and why others are not.

    Examples:
        >>> import longbird as lb
        >>> lb.implementations()["gather"]
        'available'
    """
    return Implementations({name: reason or "available" for name, reason in ABSENT.items()})


def reasons(implementation: Implementation, call: Call) -> list[str]:
    """Return why an implementation cannot run a call; empty if it can."""
    absent = ABSENT[implementation.NAME]
    return [absent] if absent is not None else implementation.unsupported(call)


def choose(call: Call, impl: str) -> Implementation:
    """Return the implementation that runs a call.

    Raises:
        ValueError: The named implementation, or every automatic one, cannot run the call.
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
        _warn(f"longbird runs without its native kernels, several times slower: {problem}")


@constant  # torch.compile cannot trace warnings; while it compiles, the warning is shown
def _warn(message: str) -> None:
    # Python's default filter shows a message once for each line of code that issues it.
    warnings.warn(message, stacklevel=1)
