"""`longbird tokenizer`: train a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longbird.cli.terminal import note, working

tokenizer = typer.Typer(help="Train a tokenizer.", no_args_is_help=True)


@tokenizer.callback()
def _tokenizer() -> None:
    """Train a tokenizer."""


@tokenizer.command()
def train(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="txt, pdf, docx, html, epub, csv, tsv, json, jsonl, parquet, gzip, or folders."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Output folder.")],
    vocabulary: Annotated[int, typer.Option(help="Maximum number of tokens.")] = 30000,
    kind: Annotated[
        str, typer.Option(help="wordpiece (BERT), bpe (on bytes) or unigram (SentencePiece).")
    ] = "wordpiece",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Lowercase the text.")] = False,
    text: Annotated[str | None, typer.Option(help="Column of the text.")] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8",
) -> None:
    """Train a tokenizer on raw text; AutoTokenizer loads the folder.

    For example:

    longbird tokenizer train corpus/ --out tokenizer --vocabulary 30000

    longbird tokenizer train news.jsonl --text body --kind unigram --out tokenizer
    """
    from longbird.applications.training.initialisation.tokenizer import (
        train_tokenizer,  # takes seconds to import
    )

    with working("Training a tokenizer"):
        train_tokenizer(
            files, out, vocabulary=vocabulary, kind=kind, lowercase=lowercase, text=text,
            encoding=encoding, say=note,
        )  # fmt: skip
