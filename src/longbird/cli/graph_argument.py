"""The graph argument of commands: an expression, the name of a preset, or a JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from longbird.core.graph import Graph

KINDS = (
    'an expression ("bigbird(block=64) & Causal()"), the name of a preset (bigbird, longformer), '
    "or a JSON file"
)
HELP = f"A graph: {KINDS}."


def complete_graph(incomplete: str) -> list[str]:
    """Return the names of pieces and presets that begin with the typed text."""
    from longbird.core.graph.expression import names

    return [name for name in names() if name.startswith(incomplete)]


GraphArgument = Annotated[
    str, typer.Argument(help=HELP, autocompletion=complete_graph, show_default=False)
]


def parse_graph(text: str) -> Graph:
    """Return the graph that an expression, the name of a preset or a JSON file describes.

    Raises:
        ValueError: The text is none of these; the message points at the part that is wrong.
        OSError: The file cannot be read.
    """
    from longbird.core.graph import as_graph

    text = text.strip()
    path = Path(text)
    if not text.endswith(".json"):
        try:
            return as_graph(text)
        except ValueError as error:
            if text and _is_there(path):
                raise InvalidValueError(
                    f"{text!r} is {_kind(path)}; expected a graph: {KINDS}"
                ) from error
            raise
    if not path.exists():
        raise InvalidValueError(f"there is no file {path}")
    if not path.is_file():  # reading a pipe without a writer would block forever
        raise InvalidValueError(f"{path} is {_kind(path)}; expected a graph: {KINDS}")
    try:
        return as_graph(path.read_text(encoding="utf-8").lstrip("\ufeff"))
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not text in UTF-8"
        elif isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        else:
            reason = str(error)
        raise InvalidValueError(f"{path} is not a graph: {reason}") from error


def _kind(path: Path) -> str:
    if path.is_file():
        return "a file whose name does not end in .json"
    if not path.is_dir():
        return "not a regular file"
    return "the folder of a model" if (path / "config.json").is_file() else "a folder"


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the expression is too long for a name
        return False
