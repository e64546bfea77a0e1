"""The errors that Longbird raises on purpose, with messages that are written for the user.

Every class also derives from the built-in exception that Python programmers expect, so that
`except ValueError` keeps working. A message names options as Python does, in backticks
(`` `hold_out` ``); the command line shows the same message with its own flags (`--hold-out`).
"""

from __future__ import annotations

from typing import Any

_NOT_GIVEN: Any = object()


class LongbirdError(Exception):
    """Base class of all errors that Longbird raises on purpose.

    Args:
        problem: What is wrong. It can be left out if `option` and `expected` are given.
        received: The value that was received.
        expected: The values that are accepted, as a phrase such as "at least 1".
        remedy: What the user can do about it.
        option: Name of the option or argument that has the wrong value.

    Examples:
        >>> str(InvalidValueError(option="heads", received=0, expected="at least 1"))
        '`heads` must be at least 1, received 0'
        >>> str(
        ...     InvalidValueError(
        ...         "there is nothing to measure", remedy="set `hold_out` to more than 0"
        ...     )
        ... )
        'there is nothing to measure: set `hold_out` to more than 0'
    """

    def __init__(
        self,
        problem: str | None = None,
        *,
        received: Any = _NOT_GIVEN,
        expected: str | None = None,
        remedy: str | None = None,
        option: str | None = None,
    ) -> None:
        self.received = None if received is _NOT_GIVEN else received
        self.expected, self.remedy, self.option = expected, remedy, option
        parts: list[str] = []
        if problem is not None:
            parts.append(problem)
            if expected is not None:
                parts.append(f"expected {expected}")
        else:
            parts.append(f"`{option}` must be {expected}")
        if received is not _NOT_GIVEN:
            parts.append(f"received {received!r:.60}")
        text = ", ".join(parts)
        # Not `super().__init__`, which torch.export cannot trace: it would hide the message.
        self.args = (text if remedy is None else f"{text}: {remedy}",)


class InvalidValueError(LongbirdError, ValueError):
    """An argument, an option or an input has a value that cannot be used."""


class InvalidTypeError(LongbirdError, TypeError):
    """An argument or an option has the wrong type."""


class InvalidFileError(LongbirdError, ValueError):
    """The content of a file is damaged, or is not of the expected form."""


class MissingFileError(LongbirdError, FileNotFoundError):
    """A file or a folder does not exist."""


class ExistingFileError(LongbirdError, FileExistsError):
    """A file or a folder that would be written exists already."""


class MissingPackageError(LongbirdError, ImportError):
    """An optional dependency is not installed."""


class UnsupportedError(LongbirdError, NotImplementedError):
    """This model, graph, machine or installation cannot do what was asked for."""
