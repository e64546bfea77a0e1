"""`longbird embed`: write vectors of documents, for `longbird search` or other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from longbird.cli.early import check_model, check_there
from longbird.cli.options import Encoding
from longbird.cli.terminal import note, say, working


def embed(
    files: Annotated[
        list[Path],
        typer.Argument(  # unreadable files are skipped with a message
            help="txt, md, html, pdf, docx or epub files, and folders of these.", readable=False
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output file (.npy or .parquet).")],
    unit: Annotated[
        Literal["document", "paragraph", "sentence"],
        typer.Option(
            metavar="UNIT", help="Parts that get a vector: document, paragraph or sentence."
        ),
    ] = "document",
    context: Annotated[
        Literal["document", "alone"],
        typer.Option(metavar="CONTEXT", help="Context of a part: its whole document, or alone."),
    ] = "document",
    model: Annotated[
        str, typer.Option(help="minilm, mpnet, or the folder of a run or of a model.")
    ] = "minilm",
    prompt: Annotated[
        str | None,
        typer.Option(help="Text to read before each document. Default: the model's own."),
    ] = None,
    encoding: Encoding = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write vectors of documents, or of their paragraphs or sentences.

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
            files, out, model, unit=unit, context=context, prompt=prompt,
            encoding=encoding, force=force, say=note,
            advance=lambda file, count: show(f"Embedding: {count:,} vectors, {file} is done"),
        )  # fmt: skip
    noun = "vector" if len(vectors) == 1 else "vectors"
    say(f"{len(vectors):,} {noun} of {vectors.array.shape[1]:,} numbers in {out}")
