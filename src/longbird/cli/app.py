"""The command `longbird`, put together from its subcommands."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Annotated

import typer

import longbird
from longbird.cli import errors
from longbird.cli.flags import Command, Group

# In the order of `longbird --help`. The file of that name has a function of that name, or a
# `typer.Typer` if the command has subcommands.
COMMANDS = (
    "ask", "demo", "finetune", "pretrain", "tokenizer", "evaluate", "classify", "tag", "summarize",
    "embed", "search", "dna", "convert", "info", "graph", "theory", "check", "plan", "bench",
)  # fmt: skip

app = typer.Typer(
    name="longbird",
    cls=Group,
    help="Exact sparse attention over graphs, for long sequences, fast on a plain CPU.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for name in COMMANDS:
    command = getattr(import_module(f"longbird.cli.{name}"), name)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name, cls=Command)(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"longbird {longbird.__version__}")
        raise typer.Exit


@app.callback()
def _everywhere(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error; also LONGBIRD_DEBUG=1."),
    ] = False,
) -> None:
    if debug:
        os.environ[errors.DEBUG] = "1"


def main() -> None:
    """Runs the command: a failure is one red line on stderr (a wrong option, typer's box)."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The name of a file may be no text: its bytes are then printed as \udcff, also in JSON.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except SystemExit as done:  # typer's way of returning, also after Ctrl-C
        if done.code == errors.INTERRUPTED:
            errors.complain("interrupted")
        raise
    except Exception as error:
        if os.environ.get(errors.DEBUG) not in (None, "", "0"):
            raise
        line, code = errors.describe(error)
        errors.complain(line)
        errors.drop_output()
        sys.exit(code)
