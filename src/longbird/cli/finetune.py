"""`longbird finetune`: a model trained on the user's files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from longbird.cli.early import check_files
from longbird.cli.errors import INTERRUPTED
from longbird.cli.terminal import note

# Every option is None unless it is given, so that a file of settings (--config) can give it
# instead; `training.settings.Settings` has the defaults, which the help repeats.
Files = Annotated[list[Path] | None, typer.Option(exists=True)]


def finetune(
    task: Annotated[
        str, typer.Argument(help="What to learn: ask, choose, classify, embed, summarize, tag.")
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="csv, tsv, json, jsonl, parquet, txt, html, pdf, docx, epub, gzip of these, or a "
            "folder with a subfolder for each class."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder of the run.")] = Path("run"),
    config: Annotated[
        Path | None,
        typer.Option(help="A run.toml; options override it.", exists=True, dir_okay=False),
    ] = None,
    validation: Annotated[
        list[Path] | None, typer.Option(help="Files that choose the best model.")
    ] = None,
    test: Annotated[
        list[Path] | None, typer.Option(help="Files to measure the best model on at the end.")
    ] = None,
    hold_out: Annotated[
        float | None,
        typer.Option(help="Without --validation: the fraction of rows held out for it. [0.1]"),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Column whose equal values stay on one side of a split, as equal texts do."
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Column of the text.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of the label.")] = None,
    question: Annotated[str | None, typer.Option(help="Column of the question.")] = None,
    context: Annotated[
        str | None, typer.Option(help="Column of the document that is asked about.")
    ] = None,
    answer: Annotated[str | None, typer.Option(help="Column of the answer.")] = None,
    answer_tokens: Annotated[
        int | None, typer.Option(help="Tokens of the longest answer that is given. [30]")
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option(help="Count from the start of the document or paragraph (ask). \\[document]"),
    ] = None,
    choices: Annotated[str | None, typer.Option(help="Column of the choices (choose).")] = None,
    summary: Annotated[str | None, typer.Option(help="Column of the summary.")] = None,
    summary_tokens: Annotated[
        int | None, typer.Option(help="Tokens of the longest summary. [128]")
    ] = None,
    beams: Annotated[
        int | None, typer.Option(help="Summaries written side by side; the best is kept. [4]")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="Column of the text that should find another (embed).")
    ] = None,
    positive: Annotated[str | None, typer.Option(help="Column of what it should find.")] = None,
    negative: Annotated[
        str | None, typer.Option(help="Column of what it should not find, a text or a list.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="What separates the labels of a row with several.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the files. \\[utf-8]")] = None,
    model: Annotated[
        str | None,
        typer.Option(help="minilm, mpnet, a folder, a hub name, or scratch:SIZE. \\[minilm]"),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="The folder of a tokenizer, for --model scratch:SIZE.")
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Tokens of the longest document. [4096]")
    ] = None,
    graph: Annotated[
        str | None, typer.Option(help='Which token sees which, such as "bigbird(block=32)".')
    ] = None,
    tokens_per_batch: Annotated[
        int | None, typer.Option(help="Tokens of a training step. [16384; embed 65536]")
    ] = None,
    accumulate: Annotated[
        int | None, typer.Option(help="Batches of that size in a step. [1]")
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="[3]")] = None,
    steps: Annotated[int | None, typer.Option(help="Instead of epochs.")] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="At its highest. [5e-5; 1e-4 to summarize]")
    ] = None,
    warmup: Annotated[
        float | None, typer.Option(help="Fraction of the steps in which the rate climbs. [0.1]")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="linear, cosine or constant. \\[linear]")
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help="[0.01]")] = None,
    clip: Annotated[float | None, typer.Option(help="Largest norm of the gradient. [1.0]")] = None,
    bf16: Annotated[bool | None, typer.Option("--bf16", help="Compute in bfloat16.")] = None,
    gradient_checkpointing: Annotated[
        bool | None,
        typer.Option("--gradient-checkpointing", help="Less memory, about a third more time."),
    ] = None,
    frozen_layers: Annotated[
        int | None, typer.Option(help="Layers that are not trained, from the first on. [0]")
    ] = None,
    frozen_words: Annotated[
        bool | None,
        typer.Option("--frozen-words", help="Word embeddings are not trained."),
    ] = None,
    lora: Annotated[
        int | None, typer.Option(help="Learn low-rank adapters of this rank instead. [0]")
    ] = None,
    class_weights: Annotated[
        str | None, typer.Option(help="balanced: rare labels count as much as others. \\[none]")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="What cosines are divided by (embed). [0.05]")
    ] = None,
    symmetric: Annotated[
        bool | None,
        typer.Option("--symmetric", help="Documents also learn to find their queries (embed)."),
    ] = None,
    tokens_at_once: Annotated[
        int | None,
        typer.Option(help="Tokens of a batch in memory at a time (embed). [16384]"),
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after this many evaluations without a better one. [0]")
    ] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(help="Steps; 0 for once per epoch. [0]")
    ] = None,
    save_every: Annotated[
        float | None, typer.Option(help="Seconds between checkpoints. [300]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="[0]")] = None,
) -> None:
    """Train a model on files of your own.

    The same command again continues where it stopped, even after a kill. The
    folder of the run has everything: settings, metrics, plots, checkpoints,
    the best model (RUN/model, which from_pretrained loads) and report.html.

    For example:

    longbird finetune classify reviews.csv --text review --label stars --out stars

    longbird finetune ask train-v2.0.json --length 4096 --out answers

    longbird finetune classify letters/ --model minilm --length 8192 --out letters-run

    longbird finetune embed questions.jsonl --query question --positive page --out search

    longbird finetune tag entities.jsonl --length 4096 --out names

    longbird finetune summarize papers.jsonl --text body --summary abstract --out abstracts
    """
    given: dict[str, Any] = {
        name: value for name, value in locals().items() if name not in ("task", "files", "out")
    }
    check_files(files)
    from longbird.applications.training.finetune import finetune as run  # takes seconds to import

    done = run(task, files or (), out, say=note, **given)
    if not done.finished:
        raise typer.Exit(INTERRUPTED)
