"""`python -m experiments NAME`: measure speed and quality beside other methods."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments.framework.registry import RESULTS, Options, files, load, summary
from longbird.cli.command import Command
from longbird.cli.options import Threads
from longbird.cli.terminal import note, say, stdout, working

app = typer.Typer(add_completion=False)


@app.command(cls=Command)
def run(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of an experiment, or a Python file that defines one. Without it, all "
            "experiments are listed.",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a small form: for speed, what the README quotes; otherwise, one that only "
            "shows that everything runs.",
        ),
    ] = False,
    seeds: Annotated[
        int, typer.Option(help="Runs of each contestant.", min=1, max=1000)
    ] = Options.seeds,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Contestant to run, instead of all; can be repeated."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Model of DNA to start from: a run of `longbird dna pretrain`, or `default`. "
            "Without it, experiments about DNA pretrain one.",
            show_default=False,
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Folder for attempts that are done; by default in the cache.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    threads: Threads = None,
    out: Annotated[
        Path,
        typer.Option(
            "-o",
            "--out",
            help="Folder for the results.",
            file_okay=False,
            show_default="experiments/results",
        ),
    ] = RESULTS,
) -> None:
    """Measure Longbird beside other methods, and write a page, a picture and a JSON file.

    If it is stopped, the same command resumes it; comparisons of times start again.

    For example:

    python -m experiments attention --quick

    python -m experiments promoters --model default
    """
    if name is None:
        return _list()
    with working("Loading torch"):
        import torch

        from longbird.applications.dna.default import PRETRAINED, folder_of_dna

    if model is not None:
        model = folder_of_dna(model, PRETRAINED)
    experiment = load(name, "quick" if quick else "default", model)
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        written = experiment.run(Options(seeds, tuple(only or ()), work, out, note))
    finally:
        torch.set_num_threads(before)
    _show(written)


def _list() -> None:
    """Print the name and the summary of each experiment."""
    known = files()
    width = max(map(len, known))
    for name, file in known.items():
        say(f"{name:{width}}  {summary(file)}")


def _show(written: list[Path]) -> None:
    """Print a page without its picture, and the names of all files."""
    from rich.markdown import Markdown

    lines = written[0].read_text().splitlines()
    stdout.print(Markdown("\n".join(line for line in lines if not line.startswith("!["))))
    for path in written:
        say(f"Wrote {path}")


def main() -> None:
    """Run the command line; deliberate errors are one line."""
    from longbird.cli import errors

    try:
        app(prog_name="python -m experiments")
    except Exception as error:
        if errors.is_debugging():
            raise
        sys.exit(errors.report(error))


if __name__ == "__main__":
    main()
