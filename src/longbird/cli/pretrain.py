"""`longbird pretrain`: a language model from raw text."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from longbird.cli.early import check_files
from longbird.cli.errors import INTERRUPTED
from longbird.cli.finetune import finetune
from longbird.cli.terminal import note
from longbird.errors import InvalidValueError

# These are the same as for `longbird finetune`, and are taken from there.
SHARED = (
    "config", "validation", "test", "hold_out", "group", "text", "encoding", "graph",
    "tokens_per_batch", "accumulate", "epochs", "steps", "warmup", "schedule", "weight_decay",
    "clip", "bf16", "gradient_checkpointing", "frozen_layers", "frozen_words", "patience",
    "evaluate_every", "save_every", "seed",
)  # fmt: skip


def pretrain(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="txt, pdf, docx, html, epub, csv, tsv, json, jsonl, parquet, gzip, or folders."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the run.")] = Path("run"),
    objective: Annotated[
        str | None,
        typer.Option(help="mlm: predict masked tokens. causal: predict the next one. \\[mlm]"),
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(help="What is a document in a text file: file, paragraph or line. \\[file]"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="minilm, mpnet, a folder, a model on the hub, or scratch:SIZE with SIZE one of "
            "tiny, mini, small, medium, base, large. \\[minilm]"
        ),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="A folder, as `longbird tokenizer train` writes it.")
    ] = None,
    length: Annotated[
        int | None,
        typer.Option(help="Tokens; longer documents are cut into consecutive pieces. [4096]"),
    ] = None,
    mask: Annotated[
        float | None, typer.Option(help="mlm: the fraction of tokens to predict. [0.15]")
    ] = None,
    whole_words: Annotated[
        bool | None, typer.Option("--whole-words", help="mlm: mask whole words.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="At its highest. [1e-4]")] = None,
    **options: Any,
) -> None:
    """Train a language model on raw text.

    The same command again continues where it stopped. from_pretrained and
    `longbird finetune --model` load RUN/model. Documents longer than --length
    are cut into consecutive pieces, so nothing is lost.

    For example:

    longbird pretrain corpus/ --model minilm --length 4096 --out run

    longbird pretrain corpus.txt --documents paragraph --objective causal --model scratch:small --tokenizer tokenizer --out run
    """  # noqa: E501
    given: dict[str, Any] = {
        "documents": documents, "model": model, "tokenizer": tokenizer, "length": length,
        "mask": mask, "whole_words": whole_words, "learning_rate": learning_rate, **options,
    }  # fmt: skip
    check_files(files)
    from longbird.applications.training.finetune import finetune as run  # takes seconds to import
    from longbird.applications.training.settings import read_settings

    if objective is None and options["config"] is not None:
        objective = read_settings(options["config"]).get("task")
    if objective not in (None, "mlm", "causal"):
        raise InvalidValueError(f"--objective must be mlm or causal, received {objective}")
    done = run(objective or "mlm", files or (), out, say=note, **given)
    if not done.finished:
        raise typer.Exit(INTERRUPTED)


def _with_shared_options(command: Any) -> None:
    """Gives a command the options of `finetune` in the place of its `**options`."""
    own, theirs = (inspect.signature(each).parameters for each in (command, finetune))
    hints = {each: get_type_hints(each, include_extras=True) for each in (command, finetune)}
    parameters = [own[name].replace(annotation=hints[command][name]) for name in own]
    shared = [theirs[name].replace(annotation=hints[finetune][name]) for name in SHARED]
    command.__signature__ = inspect.Signature([*parameters[:-1], *shared])
    command.__annotations__ |= {each.name: each.annotation for each in shared}


_with_shared_options(pretrain)
