"""`longbird evaluate`: how good a model is on files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from longbird.cli.early import check_trained
from longbird.cli.options import AsJson, Encoding, TextColumn, TokensAtOnce, Trained
from longbird.cli.terminal import note, stdout, working


def evaluate(
    model: Trained,
    files: Annotated[list[Path], typer.Argument(help="Files with the right answers.")],
    as_json: AsJson = False,
    text: TextColumn = None,
    label: Annotated[
        str | None, typer.Option(help="Column of the label; that of the run by default.")
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="Column of the question; that of the run by default.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="Column of the document; that of the run by default.")
    ] = None,
    answer: Annotated[
        str | None, typer.Option(help="Column of the answer; that of the run by default.")
    ] = None,
    summary: Annotated[
        str | None, typer.Option(help="Column of the summary; that of the run by default.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="Column of the query; that of the run by default.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="Column of what it should find; that of the run by default.")
    ] = None,
    negative: Annotated[
        str | None, typer.Option(help="Column of what it should not find, among the documents.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="What separates the labels of a row with several.")
    ] = None,
    encoding: Encoding = None,
    documents: Annotated[
        str | None,
        typer.Option(
            help="Language models: a document is a file, paragraph or line; as in the run."
        ),
    ] = None,
    tokens_per_batch: TokensAtOnce = None,
    against: Annotated[
        str | None, typer.Option(help="Another model, to compare with on the same files.")
    ] = None,
    worst: Annotated[
        Path | None,
        typer.Option(help="Write the examples that the model is worst at (JSON lines)."),
    ] = None,
) -> None:
    """Measure a model on files, with 95% confidence intervals.

    For example:

    longbird evaluate stars test.csv

    longbird evaluate stars test.csv --json --worst worst.jsonl

    longbird evaluate stars test.csv --against older-stars
    """
    check_trained(model, files)
    from longbird.applications.training.evaluate import (
        evaluate as measure,  # takes seconds to import
    )

    with working("Evaluating"):
        found = measure(
            model, files, against=against, say=note, text=text, label=label, question=question,
            context=context, answer=answer, summary=summary, separator=separator,
            encoding=encoding, documents=documents, query=query, positive=positive,
            negative=negative, tokens_per_batch=tokens_per_batch,
        )  # fmt: skip
    if worst is not None:
        found.write_worst(worst)
    if as_json:
        typer.echo(json.dumps(found.metrics))
    else:
        count = found.metrics["documents"]
        title = f"{count:,} document{'s' * (count != 1)}"
        stdout.print(metrics_table(found.metrics, title))
        if against is not None:
            stdout.print(_comparison(found.metrics["against"]))


def metrics_table(metrics: dict[str, Any], title: str) -> Table:
    """Metrics with their intervals."""
    from longbird.applications.training.report import interval_of

    table = Table(title=title)
    for name in ("metric", "value", "95% interval"):
        table.add_column(name)
    for name, value in metrics.items():
        if isinstance(value, float):
            table.add_row(name, f"{value:.4f}", interval_of(metrics, name))
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
