"""Failures on the command line: one line on stderr, and an exit status."""

from __future__ import annotations

import errno
import os
import re
import sys

from rich.text import Text

from longbird.cli.flags import with_flags
from longbird.cli.terminal import printable, stderr
from longbird.errors import LongbirdError, MissingPackageError, UnsupportedError

DEBUG = "LONGBIRD_DEBUG"

USER_ERROR = 2
FAILURE = 1
INTERRUPTED = 130

# The file that the user named is missing, unreadable or of the wrong kind. Libraries that load
# models raise OSError without a number for an unknown name.
_USER_FILE_ERRORS = (
    None, errno.ENOENT, errno.EACCES, errno.EPERM, errno.EEXIST, errno.EISDIR, errno.ENOTDIR,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL,
)  # fmt: skip

# Libraries written in C++ and Rust raise errors of their own, which only their texts tell apart.
_OUT_OF_MEMORY = re.compile(
    r"not enough memory|can't allocate memory|cannot allocate memory|out of memory|bad_alloc", re.I
)
_DISK_FULL = re.compile(r"no space left on device|os error 28|disk quota exceeded", re.I)
_TOO_LARGE = re.compile(r"overflow", re.I)


def is_debugging() -> bool:
    """Whether a failure shows its traceback: `--debug`, or LONGBIRD_DEBUG=1 in the environment."""
    return os.environ.get(DEBUG) not in (None, "", "0")


def report(error: Exception) -> int:
    """Print a failure as one red line on stderr, and return the exit status."""
    line, status = describe(error)
    complain(line)
    drop_output()
    return status


def describe(error: Exception) -> tuple[str, int]:
    """Return one line that describes a failure, and the exit status.

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
        case LongbirdError():
            failed = isinstance(error, (MissingPackageError, UnsupportedError))
            return with_flags(text), FAILURE if failed else USER_ERROR
        case MemoryError():
            return f"out of memory{': ' * bool(text)}{text}", FAILURE
        case OSError():
            file = f": {error.filename}" if error.filename is not None else ""
            line = f"{error.strerror}{file}" if error.strerror else text
            return line, USER_ERROR if error.errno in _USER_FILE_ERRORS else FAILURE
        case OverflowError():
            return f"a number is too large: {text}", USER_ERROR
        case ValueError():
            return text, USER_ERROR
        case _ if _OUT_OF_MEMORY.search(text):
            return f"out of memory: {_allocation(text)}", FAILURE
        case _ if _DISK_FULL.search(text):
            return f"the disk is full: {text}", FAILURE
        case RuntimeError() if _TOO_LARGE.search(text):
            return f"a size is too large: {text}", USER_ERROR
        case _:
            return (
                f"an error inside longbird ({type(error).__name__}: {text}). Please report it "
                f"with its traceback, which {DEBUG}=1 in the environment shows",
                FAILURE,
            )


def complain(line: str) -> None:
    """Print a red line on stderr."""
    stderr.print(Text(f"error: {printable(line)}", style="red"), soft_wrap=True)


def drop_output() -> None:
    """Discard what stdout did not accept, so that Python does not try again when it exits."""
    if sys.stdout is None:  # closed by whoever started us
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _allocation(text: str) -> str:
    """Return torch's message about a failed allocation without the place in its source code."""
    asked = re.search(r"tried to allocate (\d+) bytes", text)
    return f"{int(asked[1]) / 1e9:,.1f} GB were requested at once" if asked else text
