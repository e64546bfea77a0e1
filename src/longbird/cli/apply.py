"""`longbird classify`, `tag` and `summarize`: a trained model applied to files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from longbird.cli.early import check_trained
from longbird.cli.options import AsJson, Encoding, TextColumn, Trained
from longbird.cli.terminal import echo_json, note, one_line, say, working


def _command(task: str, working_on: str, help: str) -> Callable[..., None]:
    """Return the command that applies models for a task."""

    def command(
        model: Trained,
        files: Annotated[
            list[Path],
            typer.Argument(help="Documents: a text file or pdf is one, a table has many."),
        ],
        as_json: AsJson = False,
        text: TextColumn = None,
        encoding: Encoding = None,
    ) -> None:
        check_trained(model, files)
        from longbird.applications.training.engine.application import (
            apply,  # takes seconds to import
        )

        with working(working_on):
            found, texts = apply(task, model, files, text=text, encoding=encoding, say=note)
        if as_json:
            echo_json(found)
            return
        for each, shown in zip(found, texts, strict=True):
            _show(each, shown)

    command.__doc__ = help
    return command


def _show(answer: dict[str, Any], text: str) -> None:
    """Print an answer after the file and the line of its document."""
    line = f", line {answer['line']}" if "line" in answer else ""
    first, *others = text.split("\n")
    say(f"{one_line(answer['file'])}{line}: {one_line(first)}")
    for other in others:
        say(one_line(other))


classify = _command(
    "classify",
    "Classifying",
    """Show which label each document has, and the runners-up.

    For example:

    longbird classify stars report.txt

    longbird classify stars inbox/*.txt --json
    """,
)
tag = _command(
    "tag",
    "Tagging",
    """Find the entities in documents, or the tag of each word.

    For example:

    longbird tag names report.txt

    longbird tag names letters/*.txt --json
    """,
)
summarize = _command(
    "summarize",
    "Summarizing",
    """Write a summary of each document.

    For example:

    longbird summarize abstracts paper.txt

    longbird summarize abstracts papers/*.txt --json
    """,
)
