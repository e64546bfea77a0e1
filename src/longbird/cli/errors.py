"""What a failure looks like to the user: one line on stderr, and an exit code."""

from __future__ import annotations

import dis
import errno
import os
import re
import sys

from rich.text import Text

from longbird.cli.terminal import printable, stderr

DEBUG = "LONGBIRD_DEBUG"

USERS_MISTAKE = 2
FAILURE = 1
INTERRUPTED = 130

# What the user named is not there, not readable, or not of the right kind. Libraries that load
# models raise OSError without a number for a name that they do not know.
_USERS_FILES = (
    None, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EEXIST, errno.EISDIR, errno.ENOTDIR,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL,
)  # fmt: skip

# Libraries written in C++ and Rust have errors of their own for these; their texts tell.
_NO_MEMORY = re.compile(
    r"not enough memory|can't allocate memory|cannot allocate memory|out of memory|bad_alloc", re.I
)
_NO_SPACE = re.compile(r"no space left on device|os error 28|disk quota exceeded", re.I)
_TOO_LARGE = re.compile(r"overflow", re.I)


def describe(error: Exception) -> tuple[str, int]:
    """What went wrong in one line, and the exit code.

    Examples:
        >>> describe(ValueError("heads is 0, expected at least 1"))
        ('heads is 0, expected at least 1', 2)
        >>> describe(FileNotFoundError(2, "No such file or directory", "model"))
        ('No such file or directory: model', 2)
        >>> describe(
        ...     RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 4")
        ... )
        ('out of memory: DefaultCPUAllocator: not enough memory: you tried to allocate 4', 1)
    """
    text = " ".join(str(error).split())
    match error:
        case MemoryError():
            return f"out of memory{': ' * bool(text)}{text}", FAILURE
        case OSError():
            named = f": {error.filename}" if error.filename is not None else ""
            line = f"{error.strerror}{named}" if error.strerror else text
            return line, USERS_MISTAKE if error.errno in _USERS_FILES else FAILURE
        case OverflowError():
            return f"a number is too large: {text}", USERS_MISTAKE
        case ValueError():
            return text, USERS_MISTAKE
        case _ if _on_purpose(error):
            return text, USERS_MISTAKE if isinstance(error, TypeError) else FAILURE
        case _ if _NO_MEMORY.search(text):
            return f"out of memory: {_allocation(text)}", FAILURE
        case _ if _NO_SPACE.search(text):
            return f"the disk is full: {text}", FAILURE
        case RuntimeError() if _TOO_LARGE.search(text):
            return f"a size is too large: {text}", USERS_MISTAKE
        case _:
            return (
                f"an error inside longbird ({type(error).__name__}: {text}). Please report it "
                f"with its traceback, which {DEBUG}=1 in the environment shows",
                FAILURE,
            )


def complain(line: str) -> None:
    """Prints a red line on stderr."""
    stderr.print(Text(f"error: {printable(line)}", style="red"), soft_wrap=True)


def drop_output() -> None:
    """Forgets what stdout did not take, so that Python does not try again at its end."""
    if sys.stdout is None:  # closed by whoever started us
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _on_purpose(error: Exception) -> bool:
    """Did a `raise` of longbird raise it, so that its message is written for the user?"""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or isinstance(error, AssertionError):
        return False
    frame = trace.tb_frame
    raised = dis.opname[frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
    return raised and str(frame.f_globals.get("__name__")).startswith("longbird.")


def _allocation(text: str) -> str:
    """What torch says of an allocation that failed, without where in its source that was."""
    asked = re.search(r"tried to allocate (\d+) bytes", text)
    return f"{int(asked[1]) / 1e9:,.1f} GB were asked for at once" if asked else text
