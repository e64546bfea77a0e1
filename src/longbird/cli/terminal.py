"""The terminal: results go to stdout, and what is going on meanwhile to stderr."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console

stdout = Console()
stderr = Console(stderr=True)


@contextmanager
def working(text: str) -> Generator[Callable[[str], None], None, None]:
    """Shows what is going on while it does; only on a terminal, where somebody can see it.

    What it gives changes the text.
    """
    if stderr.is_terminal:
        with stderr.status(text) as status:
            yield status.update
    else:
        yield lambda _: None


def say(text: str) -> None:
    """Prints a plain line: no colours for numbers, no markup, no line breaks within it."""
    stdout.print(text, highlight=False, markup=False, soft_wrap=True)


def note(text: str) -> None:
    """Prints a plain line on stderr: what is going on, so that stdout has the result alone."""
    stderr.print(text, highlight=False, markup=False, soft_wrap=True)
