"""The command `longbird`, assembled from its subcommands."""

from __future__ import annotations

import errno
import io
import os
import sys
from importlib import import_module
from typing import Annotated

import typer

import longbird
from longbird.cli import errors
from longbird.cli.command import Command, Group

# In the order of `longbird --help`. The file of that name has a function of that name, or a
# `typer.Typer` if the command has subcommands; the commands of `APPLY` share the file apply.py.
COMMANDS = (
    "ask", "demo", "finetune", "pretrain", "tokenizer", "evaluate", "classify", "tag", "summarize",
    "embed", "search", "dna", "convert", "info", "graph", "theory", "check", "plan",
)  # fmt: skip

APPLY = ("classify", "tag", "summarize")

app = typer.Typer(
    name="longbird",
    cls=Group,
    help="Exact sparse attention over graphs, for long sequences, fast on a plain CPU.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for name in COMMANDS:
    file = "apply" if name in APPLY else name
    command = getattr(import_module(f"longbird.cli.{file}"), name)
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
    version: Annotated[  # noqa: ARG001
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
    """Run the command; a failure is one red line on stderr (a wrong option, a box by typer)."""
    if sys.stdout is None:  # closed by the calling process
        sys.stdout = _ClosedOutput()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        # The name of a file may not be text: its bytes are printed as \udcff, in JSON as well.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except SystemExit as exit:  # how typer returns, also after Ctrl-C
        if exit.code == errors.INTERRUPTED:
            errors.complain("interrupted")
        raise
    except Exception as error:  # outside a command, for example while a group is set up
        if errors.is_debugging():
            raise
        sys.exit(errors.report(error))


class _ClosedOutput(io.TextIOBase):
    """Standard output that the calling process has closed: writing to it is an error."""

    def write(self, text: str, /) -> int:
        """Raise an error, since the text would be lost."""
        raise OSError(errno.EBADF, "standard output is closed")
