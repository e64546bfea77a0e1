"""`longbird summarize`: summaries of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longbird.cli.early import check_trained
from longbird.cli.options import AsJson, Encoding, TextColumn, Trained
from longbird.cli.terminal import echo_json, note, one_line, say, working


def summarize(
    model: Trained,
    files: Annotated[
        list[Path], typer.Argument(help="Documents: a text or pdf is one, a table has many.")
    ],
    as_json: AsJson = False,
    text: TextColumn = None,
    encoding: Encoding = None,
) -> None:
    """Write a summary of each document.

    For example:

    longbird summarize abstracts paper.txt

    longbird summarize abstracts papers/*.txt --json
    """
    check_trained(model, files)
    from longbird.applications.training.engine.application import apply  # takes seconds to import
    from longbird.applications.training.tasks.summarize.task import Summarize

    with working("Summarizing"):
        found = apply(Summarize, model, files, text=text, encoding=encoding, say=note)
    if as_json:
        echo_json(found)
        return
    for each in found:
        line = f", line {each['line']}" if "line" in each else ""
        say(f"{one_line(each['file'])}{line}: {each['summary'] or '(empty)'}")
