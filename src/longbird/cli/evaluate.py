"""`longbird evaluate`: how good a model is on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from longbird.applications.training.settings.definition import Option, options_of
from longbird.applications.training.settings.tasks import SETTINGS
from longbird.cli.early import check_trained
from longbird.cli.options import AsJson, Trained
from longbird.cli.terminal import note, one_line, stdout, working
from longbird.cli.training_options import with_options

SHOWN = 5
"""Worst examples that are shown; `--worst` writes more."""


def _evaluate(
    model: Trained,
    files: Annotated[list[Path], typer.Argument(help="Files with the right answers.")],
    as_json: AsJson = False,
    against: Annotated[
        str | None, typer.Option(help="Another model, to compare with on the same files.")
    ] = None,
    worst: Annotated[
        Path | None,
        typer.Option(help="Write the examples that the model is worst at (JSON lines)."),
    ] = None,
    **options: Any,
) -> None:
    """Measure a model on files, with 95% confidence intervals.

    For example:

    longbird evaluate stars test.csv

    longbird evaluate stars test.csv --json --worst worst.jsonl

    longbird evaluate stars test.csv --against older-stars
    """
    check_trained(model, files)
    from longbird.applications.training.engine.evaluation import (
        evaluate as measure,  # takes seconds to import
    )

    with working("Evaluating"):
        found = measure(model, files, against=against, say=note, **options)
    if worst is not None:
        found.write_worst(worst)
    if as_json:
        typer.echo(json.dumps(found.metrics))
    else:
        count = found.metrics["documents"]
        title = f"{count:,} document{'s' * (count != 1)}"
        stdout.print(metrics_table(found.metrics, title))
        for each in _label_tables(found.metrics):
            stdout.print(each)
        if found.worst:
            stdout.print(_worst_table(found.worst[:SHOWN]))
        if against is not None:
            stdout.print(_comparison(found.metrics["against"]))


def _reading_options() -> list[Option]:
    """Return the options of all tasks that say how files are read."""
    options = {
        each.name: each
        for kind in SETTINGS.values()
        for each in options_of(kind).values()
        if each.reading
    }
    return sorted(options.values(), key=lambda option: option.group != "")


evaluate = with_options(_evaluate, _reading_options(), default="Default: as in training.")


def metrics_table(metrics: dict[str, Any], title: str) -> Table:
    """Metrics with their intervals."""
    from longbird.applications.training.engine.report import interval_of

    table = Table(title=title)
    for name in ("metric", "value", "95% interval"):
        table.add_column(name)
    for name, value in metrics.items():
        if isinstance(value, float):
            table.add_row(name, f"{value:.4f}", interval_of(metrics, name))
    return table


def _label_tables(metrics: dict[str, Any]) -> list[Table]:
    """Create the tables about single labels, if the task has labels."""
    from longbird.applications.training.engine.report import label_tables

    tables: list[Table] = []
    for title, (head, *rows) in label_tables(metrics):
        table = Table(title=title)
        for each in head:
            table.add_column(Text(one_line(each)))
        for row in rows:
            table.add_row(*(Text(one_line(each)) for each in row))
        tables.append(table)
    return tables


def _worst_table(worst: list[dict[str, Any]]) -> Table:
    """Create a table of the worst examples, with the predictions as text."""
    table = Table(title="worst examples")
    for name in ("where", "expected", "given"):
        table.add_column(name)
    for each in worst:
        cells = (each["place"], each["expected"], each["given_as_text"])
        table.add_row(*(Text(one_line(str(cell))[:200]) for cell in cells))
    return table


def _comparison(against: dict[str, Any]) -> Table:
    table = Table(title=f"against {against['model']}")
    for name in ("metric", "value", "other", "difference", "95% interval", "p"):
        table.add_column(name)
    for name, found in against["metrics"].items():
        low, high = found["interval"]
        table.add_row(
            name,
            f"{found['value']:.4f}",
            f"{found['other']:.4f}",
            f"{found['difference']:+.4f}",
            f"{low:+.4f} to {high:+.4f}",
            f"{found['p_value']:.4f}",
        )
    return table
