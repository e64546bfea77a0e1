"""The command `longbird`, put together from its subcommands."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from longbird.cli.bench import bench_app
from longbird.cli.check import check
from longbird.cli.convert import convert
from longbird.cli.demo import demo
from longbird.cli.graph import graph_app
from longbird.cli.info import info
from longbird.cli.plan import plan

app = typer.Typer(
    name="longbird",
    help="Exact sparse attention over graphs, for long sequences, fast on a plain CPU.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(info)
app.add_typer(graph_app, name="graph")
app.command()(check)
app.command()(plan)
app.command()(convert)
app.add_typer(bench_app, name="bench")


def main() -> None:
    """Runs the command; what the user got wrong is one red line and exit code 2."""
    try:
        app()
    except (ValueError, OSError, MemoryError) as error:
        message = f"error: {error or 'out of memory'}"
        Console(stderr=True, soft_wrap=True).print(Text(message, style="red"))
        sys.exit(2)
