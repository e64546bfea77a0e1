"""`longbird tag`: the entities or the tags in documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longbird.cli.early import check_trained
from longbird.cli.options import AsJson, Encoding, TextColumn, Trained
from longbird.cli.terminal import echo_json, note, one_line, say, working


def tag(
    model: Trained,
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Documents: a text file is one, a table has many, with text or lists of words."
        ),
    ],
    as_json: AsJson = False,
    text: TextColumn = None,
    encoding: Encoding = None,
) -> None:
    """Find the entities in documents, or the tag of each word.

    For example:

    longbird tag names report.txt

    longbird tag names letters/*.txt --json
    """
    check_trained(model, files)
    from longbird.applications.training.tasks.tag.files import tag_files  # takes seconds to import

    with working("Tagging"):
        found = tag_files(model, files, text=text, encoding=encoding, say=note)
    if as_json:
        echo_json(found)
        return
    for each in found:
        line = f", line {each['line']}" if "line" in each else ""
        kind = "entities" if "entities" in each else "words"
        shown = each[kind]
        counted = kind if len(shown) != 1 else {"entities": "entity", "words": "word"}[kind]
        say(f"{one_line(each['file'])}{line}: {len(shown)} {counted}")
        for one in shown:
            say(
                f"  {one['label']} ({one['score']:.2f}), {one['start']} to {one['end']}: "
                f"{one_line(one['text'])}"
            )
