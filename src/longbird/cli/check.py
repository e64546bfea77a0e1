"""`longbird check`: verify that implementations are exact on this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from longbird.cli.graph_argument import GraphArgument, parse_graph
from longbird.cli.options import (
    IMPLEMENTATIONS,
    Batch,
    DType,
    HeadDim,
    Heads,
    Storage,
    Tokens,
    check_known,
    complete_implementation,
)
from longbird.cli.terminal import say, stdout, working

if TYPE_CHECKING:
    from rich.text import Text

    from longbird.analysis.check import CheckReport, CheckRow

# Without flex, which compiles for half a minute before it runs.
BY_DEFAULT = ("native", "gather")


def check(
    graph: GraphArgument,
    n: Tokens = 1000,
    heads: Heads = 2,
    head_dim: HeadDim = 64,
    batch: Batch = 1,
    dtype: Storage = DType.float32,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    impl: Annotated[
        list[str] | None,
        typer.Option(
            help="Implementation that must run and agree; can be repeated. Default: those of "
            f"{' and '.join(BY_DEFAULT)} that can run. flex, which compiles for half a minute, "
            "runs only if it is named.",
            autocompletion=complete_implementation,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Compare outputs and gradients of implementations with dense attention in float64.

    Dense attention needs quadratic memory, so choose a length of at most a few thousand tokens.
    The exit status is 1 if an error exceeds its tolerance, or if a piece of the graph declares a
    property that its rule contradicts.
    """
    check_known("--impl", impl or (), IMPLEMENTATIONS)
    parsed = parse_graph(graph)
    with working(f"Comparing with dense attention over {n:,} tokens"):
        import torch

        from longbird.analysis.check import check as compare

        report = compare(
            parsed,
            n,
            heads=heads,
            head_dim=head_dim,
            batch=batch,
            dtype=getattr(torch, dtype.value),
            seed=seed,
            impls=impl or BY_DEFAULT,
        )
    if not impl:  # a default implementation that cannot run is not a failure
        report = replace(report, rows=tuple(replace(row, required=False) for row in report.rows))
    print_report(report)
    if not report.ok:
        raise typer.Exit(1)


def print_report(report: CheckReport) -> None:
    """Print the errors as a table."""
    from rich.table import Table
    from rich.text import Text

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
    stdout.print(table)
    ran = next((row for row in report.rows if row.ran), None)
    if ran is not None:
        say(
            f"Allowed: {ran.output_tolerance:.1e} in the output, and {ran.gradient_tolerance:.1e} "
            "of the largest gradient."
        )
    for row in report.rows:
        if row.note:
            stdout.print(Text(f"{row.impl}: {row.note}", "yellow"))
    for fact in report.false_facts:
        stdout.print(Text(f"FAILED  {fact}", "bold red"), soft_wrap=True)


def _numbers(row: CheckRow) -> list[str]:
    if row.output is None:
        return ["-"] * 4
    gradients = ["-"] * 3 if row.gradients is None else [f"{error:.1e}" for error in row.gradients]
    return [f"{row.output:.1e}", *gradients]


def _verdict(row: CheckRow) -> Text:
    from rich.text import Text

    if not row.ran:
        return Text("did not run", "red" if row.required else "yellow")
    return Text("ok", "green") if row.ok else Text("FAILED", "bold red")
