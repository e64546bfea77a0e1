"""Terminal output: results go to standard output, progress and notes to standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from longbird.cli.flags import with_flags

stdout = Console()
stderr = Console(stderr=True)

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than tabs and line ends."""


def printable(text: str) -> str:
    r"""Replace the control characters of a file's text or name, which a terminal would obey.

    Examples:
        >>> printable("clear\x1b[2J the screen") == "clear\ufffd[2J the screen"
        True
    """
    return CONTROLS.sub("\ufffd", text)


def _one_space(found: re.Match[str]) -> str:
    return " " if found[0].strip(" ") else found[0]


def one_line(text: str) -> str:
    r"""Return a printable text on one line.

    White space that contains a line end or a tab becomes one space; other spaces stay.

    Examples:
        >>> one_line("two  spaces\n  and a line end")
        'two  spaces and a line end'
    """
    return printable(re.sub(r"\s+", _one_space, text))


@contextmanager
def working(text: str) -> Generator[Callable[[str], None], None, None]:
    """Show a status line while the body runs, if standard error is a terminal.

    The body receives a function that changes the text.
    """
    if stderr.is_terminal:
        # As Text, since rich would interpret brackets in the name of a file as markup.
        with stderr.status(Text(printable(text))) as status:
            yield lambda text: status.update(Text(printable(text)))
    else:
        yield lambda _: None


def say(text: str) -> None:
    """Print a plain line of a result, without highlighting, markup or wrapping."""
    stdout.print(printable(text), highlight=False, markup=False, soft_wrap=True)


def echo_json(value: Any, indent: int | None = None) -> None:
    """Print JSON; non-ASCII characters are escaped if standard output cannot encode them."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    typer.echo(text)


def note(text: str, end: str = "\n") -> None:
    """Print a plain note on standard error, so that standard output has only the result."""
    text = with_flags(text)
    stderr.print(printable(text), highlight=False, markup=False, soft_wrap=True, end=end)
