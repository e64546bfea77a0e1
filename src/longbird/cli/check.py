"""`longbird check`: is it exact, here, on this graph?"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longbird.cli.graph_argument import HELP, parse_graph
from longbird.oracle import CheckReport, CheckRow
from longbird.oracle import check as compare

console = Console()


class DType(str, Enum):
    """Storage of q, k and v."""

    float32 = "float32"
    bfloat16 = "bfloat16"
    float16 = "float16"
    float64 = "float64"


def check(
    graph: Annotated[str, typer.Argument(help=HELP)],
    n: Annotated[int, typer.Option("-n", "--tokens", help="Tokens.", min=1)] = 1000,
    heads: Annotated[int, typer.Option(help="Heads.", min=1)] = 2,
    head_dim: Annotated[int, typer.Option(help="Size of a head.", min=1)] = 64,
    batch: Annotated[int, typer.Option(help="Sequences.", min=1)] = 1,
    dtype: Annotated[DType, typer.Option(help="Storage of q, k and v.")] = DType.float32,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    impl: Annotated[
        list[str] | None,
        typer.Option(help="An implementation that must run and agree; may be repeated."),
    ] = None,
) -> None:
    """Compare every implementation with dense attention in float64, output and gradients.

    Dense attention takes quadratic memory: choose a length of a few thousand tokens at most. The
    exit code is 1 if an implementation is off by more than it may.
    """
    parsed = parse_graph(graph)
    with console.status("Comparing with dense attention"):
        report = compare(
            parsed,
            n,
            heads=heads,
            head_dim=head_dim,
            batch=batch,
            dtype=getattr(torch, dtype.value),
            seed=seed,
            impls=impl or None,
        )
    print_report(console, report)
    if not report.ok:
        raise typer.Exit(1)


def print_report(console: Console, report: CheckReport) -> None:
    """Prints what the oracle found as a table."""
    batch, heads, n, head_dim = report.shape
    dtype = str(report.dtype).removeprefix("torch.")
    table = Table(
        title=f"Largest errors against dense attention in float64\n"
        f"{n:,} tokens, batch {batch}, {heads} heads of {head_dim}, {dtype}",
    )
    table.add_column("implementation")
    for number in ("output", "dq", "dk", "dv"):
        table.add_column(number, justify="right")
    table.add_column("")
    for row in report.rows:
        table.add_row(row.impl, *_numbers(row), _verdict(row))
    console.print(table)
    ran = next((row for row in report.rows if row.ran), None)
    if ran is not None:
        console.print(
            f"At most {ran.output_tolerance:.1e} in the output, and {ran.gradient_tolerance:.1e} "
            "of the largest gradient.",
            highlight=False,
        )
    for row in report.rows:
        if row.note:
            console.print(Text(f"{row.impl}: {row.note}", "yellow"))


def _numbers(row: CheckRow) -> list[str]:
    if row.output is None:
        return ["-"] * 4
    gradients = ["-"] * 3 if row.gradients is None else [f"{error:.1e}" for error in row.gradients]
    return [f"{row.output:.1e}", *gradients]


def _verdict(row: CheckRow) -> Text:
    if not row.ran:
        return Text("did not run", "red" if row.required else "yellow")
    return Text("ok", "green") if row.ok else Text("FAILED", "bold red")
