"""`longbird finetune`: train a model for a task on the user's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longbird.applications.training.settings.definition import options_of
from longbird.applications.training.settings.tasks import SETTINGS
from longbird.cli.command import Command, Group
from longbird.cli.early import check_files
from longbird.cli.errors import INTERRUPTED
from longbird.cli.terminal import note
from longbird.cli.training_options import Config, Extend, Out, with_options

HELP = """{summary}

Repeating the command resumes the run, even after a kill. The folder of the
run has everything: options, metrics, plots, checkpoints, the best model
(RUN/model, which from_pretrained loads) and report.html.

For example:

{examples}
"""
TASKS = {
    "ask": (
        "Train a model that answers questions about documents.",
        "longbird finetune ask train-v2.0.json --length 4096 --out answers",
    ),
    "choose": (
        "Train a model that chooses among answers.",
        "longbird finetune choose exam.jsonl --length 4096 --out exam",
    ),
    "classify": (
        "Train a model that gives documents one label, or several.",
        "longbird finetune classify reviews.csv --text review --label stars --out stars\n\n"
        "longbird finetune classify letters/ --model minilm --length 8192 --out letters-run",
    ),
    "embed": (
        "Train a model whose embeddings find documents.",
        "longbird finetune embed questions.jsonl --query question --positive page --out search",
    ),
    "summarize": (
        "Train a model that summarizes documents.",
        "longbird finetune summarize papers.jsonl --text body --summary abstract --out abstracts",
    ),
    "tag": (
        "Train a model that finds entities, or tags words.",
        "longbird finetune tag entities.jsonl --length 4096 --out names",
    ),
}

finetune = typer.Typer(
    cls=Group, help="Train a model for a task on files of your own.", no_args_is_help=True
)


def _add(task: str, summary: str, examples: str) -> None:
    """Add the command of a task, with the options that the task has."""

    def command(
        files: Annotated[
            list[Path] | None,
            typer.Argument(
                help="csv, tsv, json, jsonl, parquet, txt, html, pdf, docx, epub, gzip of these, "
                "or folders; of classify, folders with a subfolder for each class."
            ),
        ] = None,
        out: Out = Path("run"),
        config: Config = None,
        extend: Extend = False,
        **options: Any,
    ) -> None:
        run(task, files, out, config=config, extend=extend, **options)

    finetune.command(task, cls=Command, help=HELP.format(summary=summary, examples=examples))(
        with_options(command, options_of(SETTINGS[task]).values())
    )


def run(task: str, files: list[Path] | None, out: Path, **options: Any) -> None:
    """Train, and exit with the status of an interruption if the run was stopped."""
    check_files(files)
    from longbird.applications.training.engine.finetune import finetune  # takes seconds to import

    if not finetune(task, files or (), out, say=note, **options).finished:
        raise typer.Exit(INTERRUPTED)


for _task, _texts in TASKS.items():
    _add(_task, *_texts)
