"""The terminal: results go to stdout, and what is going on meanwhile to stderr."""

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

stdout = Console()
stderr = Console(stderr=True)

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All but tabs and line ends."""


def printable(text: str) -> str:
    r"""Text of a file, or its name, without what a terminal would take for a command.

    Examples:
        >>> printable("clear\x1b[2J the screen") == "clear\ufffd[2J the screen"
        True
    """
    return CONTROLS.sub("\ufffd", text)


def _one_space(found: re.Match[str]) -> str:
    return " " if found[0].strip(" ") else found[0]


def one_line(text: str) -> str:
    r"""As `printable`, on one line: a sentence, or the name of a file.

    Spaces stay as they are; around a line end or a tab they become one.

    Examples:
        >>> one_line("two  spaces\n  and a line end")
        'two  spaces and a line end'
    """
    return printable(re.sub(r"\s+", _one_space, text))


@contextmanager
def working(text: str) -> Generator[Callable[[str], None], None, None]:
    """Shows what is going on while it does; only on a terminal, where somebody can see it.

    What it gives changes the text.
    """
    if stderr.is_terminal:
        # Not as str, where rich would take brackets in the name of a file for markup.
        with stderr.status(Text(printable(text))) as status:
            yield lambda text: status.update(Text(printable(text)))
    else:
        yield lambda _: None


def say(text: str) -> None:
    """Prints a plain line: no colours for numbers, no markup, no line breaks within it."""
    stdout.print(printable(text), highlight=False, markup=False, soft_wrap=True)


def echo_json(value: Any, indent: int | None = None) -> None:
    """Prints JSON: in the letters of its texts, or as escapes where stdout has not all of them."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    typer.echo(text)


def note(text: str, end: str = "\n") -> None:
    """Prints a plain line on stderr: what is going on, so that stdout has the result alone."""
    stderr.print(printable(text), highlight=False, markup=False, soft_wrap=True, end=end)
