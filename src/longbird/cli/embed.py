"""`longbird embed`: vectors of documents, for `longbird search` or for anything else."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from longbird.cli.early import check_model, check_there
from longbird.cli.options import Encoding
from longbird.cli.terminal import note, say, working


class Unit(str, Enum):
    """What gets a vector of its own."""

    document = "document"
    paragraph = "paragraph"
    sentence = "sentence"


class Context(str, Enum):
    """What a part of a document is read with."""

    document = "document"
    alone = "alone"


def embed(
    files: Annotated[
        list[Path],
        typer.Argument(  # one that may not be read is left out, with a line that says so
            help="txt, md, html, pdf, docx, epub, and folders of these.", readable=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npy or .parquet file to write.")],
    unit: Annotated[
        Unit,
        typer.Option(metavar="UNIT", help="What gets a vector: document, paragraph or sentence."),
    ] = Unit.document,
    context: Annotated[
        Context,
        typer.Option(
            metavar="CONTEXT",
            help="What a part is read with: its whole document, or nothing else (alone).",
        ),
    ] = Context.document,
    model: Annotated[
        str, typer.Option(help="minilm, mpnet, or the folder of a run or a model.")
    ] = "minilm",
    prompt: Annotated[
        str | None, typer.Option(help="Text to read before each document; the model's by default.")
    ] = None,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Make vectors for documents, or for their paragraphs or sentences.

    For example:

    longbird embed reports/ --out reports.npy --unit paragraph

    longbird embed thesis.pdf --out thesis.parquet --unit sentence --model my-run
    """
    check_there(files)
    check_model(model)
    from longbird.applications.search.vector_files import check_out

    check_out(out, force)
    with working("Embedding") as show:
        from longbird.applications.search.embed_files import embed_files  # takes seconds to import

        vectors = embed_files(
            files, out, model, unit=unit.value, context=context.value, prompt=prompt,
            encoding=encoding, force=force, say=note,
            advance=lambda file, count: show(f"Embedding: {count:,} vectors, {file} is done"),
        )  # fmt: skip
    many = "vector" if len(vectors) == 1 else "vectors"
    say(f"{len(vectors):,} {many} of {vectors.array.shape[1]:,} numbers in {out}")
