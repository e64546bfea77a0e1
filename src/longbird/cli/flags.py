"""Messages of the library with options named as on the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from typer.core import TyperOption

_OPTION = re.compile(r"`([a-z_][a-z0-9_]*)(?:=([^`]*))?`")
"""An option as the library names it: `hold_out` or `hold_out=0`, in backticks."""

current_flags: ContextVar[Mapping[str, str]] = ContextVar("current_flags", default={})  # noqa: B039
"""What the running command calls the options of the library."""


def flags_of(params: Sequence[Any]) -> dict[str, str]:
    """Return what the command line calls each parameter: `--hold-out` for `hold_out`."""
    return {
        param.name: max(param.opts, key=len) if is_option(param) else param.name.upper()
        for param in params
        if param.name is not None
    }


def is_option(param: Any) -> bool:
    """Whether a parameter is an option; the others are arguments."""
    # Recent versions of typer have click inside, older ones depend on it: only typer has names
    # that are the same for both.
    return isinstance(param, TyperOption)


def with_flags(text: str) -> str:
    """Return a message of the library with the options named as the running command does.

    Examples:
        >>> outside = current_flags.set({"hold_out": "--hold-out", "force": "--force"})
        >>> with_flags("set `hold_out=0.1`, or overwrite it with `force=True`")
        'set --hold-out 0.1, or overwrite it with --force'
        >>> with_flags("`n` must be at least 1, received 0")
        'n must be at least 1, received 0'
        >>> current_flags.reset(outside)
    """
    flags = current_flags.get()

    def flag(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in flags:
            return found[0].strip("`")
        return flags[name] if value in (None, "True") else f"{flags[name]} {value}"

    return _OPTION.sub(flag, text)
