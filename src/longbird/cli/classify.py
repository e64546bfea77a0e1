"""`longbird classify`: the labels of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longbird.cli.early import check_trained
from longbird.cli.options import AsJson, Encoding, TextColumn, Trained
from longbird.cli.terminal import echo_json, note, one_line, say, working


def classify(
    model: Trained,
    files: Annotated[
        list[Path], typer.Argument(help="Documents: a text or pdf is one, a table has many.")
    ],
    as_json: AsJson = False,
    text: TextColumn = None,
    encoding: Encoding = None,
) -> None:
    """Say which label each document has.

    For example:

    longbird classify stars report.txt

    longbird classify stars inbox/*.txt --json
    """
    check_trained(model, files)
    from longbird.applications.training.engine.application import apply  # takes seconds to import
    from longbird.applications.training.tasks.classify import Classify

    with working("Classifying"):
        found = apply(Classify, model, files, text=text, encoding=encoding, say=note)
    if as_json:
        echo_json(found)
        return
    for each in found:
        labels = each["label"] if isinstance(each["label"], list) else [each["label"]]
        scores = ", ".join(f"{label} ({each['scores'][label]:.2f})" for label in labels)
        line = f", line {each['line']}" if "line" in each else ""
        say(f"{one_line(each['file'])}{line}: {scores or 'no label'}")
