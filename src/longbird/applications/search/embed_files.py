"""People's files to vectors in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from longbird.applications.documents import Document, UnreadableError, read_documents
from longbird.applications.search.embedder import Embedded, Embedder
from longbird.applications.search.embedding_model import DOCUMENT
from longbird.applications.search.units import CONTEXTS, UNITS, Range, check_one_of, units_of
from longbird.applications.search.vector_files import SHOWN, check_out, writing_vectors
from longbird.applications.search.vectors import Vectors
from longbird.errors import InvalidTypeError, InvalidValueError


def embed_files(
    files: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    model: str | os.PathLike[str] | Embedder = "minilm",
    *,
    unit: str = "document",
    context: str = "document",
    prompt: str | None = None,
    encoding: str | None = None,
    force: bool = False,
    say: Callable[[str], None] | None = None,
    advance: Callable[[str, int], None] | None = None,
) -> Vectors:
    r"""Writes the vectors of files, or of their paragraphs or sentences, for `Vectors.search`.

    Args:
        files: txt, md, html, pdf, docx or epub files, and folders of these.
        out: An .npy file, beside which .jsonl gets a row for each vector and .json what is known
            of all; or a .parquet file with everything.
        model: As for `Embedder.from_pretrained`.
        unit: "document", "paragraph" or "sentence".
        context: "document", or "alone": see `Embedder.embed`.
        prompt: Text that is read before each document; what the model has for that by default.
        encoding: Of the files; recognised by default.
        force: Overwrite files that are there.
        say: Called with a line on files that are left out, or that are read in several passages.
        advance: Called with each file that is done, and the number of vectors so far.

    Returns:
        The vectors, opened.

    Raises:
        FileExistsError: There is such a file, and `force` is not given.
        FileNotFoundError: One of the files is not there.
        ValueError: No file has text; nothing is written.

    Examples:
        >>> import longbird as lb, pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "mill.txt")
        ...     _ = file.write_text("The mill was built in 1790.\n\nIt closed in 1931.")
        ...     vectors = lb.embed_files([file], f"{folder}/out.npy", unit="paragraph")
        >>> len(vectors), vectors.about["unit"]
        (2, 'paragraph')
    """
    if isinstance(files, (str, os.PathLike)):
        raise InvalidTypeError(
            f"files must be several, received one: [{str(files)!r}] would be a list"
        )
    paths, out, say = list(files), Path(out), say or _nothing
    if not paths:
        raise InvalidValueError("give at least one file")
    check_one_of("unit", unit, UNITS)
    check_one_of("context", context, CONTEXTS)
    check_out(out, force)
    read_documents(paths, encoding)  # raises for a file that is not there, before any is read
    embedder = model if isinstance(model, Embedder) else Embedder.from_pretrained(model)
    known = embedder.about
    about = {
        "model": known.name,
        "sha256": dict(known.sha256),
        "pooling": known.pooling,
        "normalized": known.normalized,
        "width": known.width,
        "length": known.length,
        "graph": str(known.model.config.graph),
        "unit": unit,
        "context": context,
        "prompt": known.prompt_for(DOCUMENT) if prompt is None else prompt,
    }
    reading: list[Document] = []  # those that the model has not given back yet

    def texts() -> Iterator[tuple[str, list[Range]]]:
        for document in _documents(paths, encoding, say):
            reading.append(document)
            yield document.text, units_of(document.text, unit)

    with writing_vectors(out, about) as writer:
        for found in embedder.stream(texts(), unit == "document", context, prompt):
            document = reading.pop(0)
            _tell(document, found, embedder.length, say)
            writer.add(found.vectors, [*_rows(document, found)])
            if advance is not None:
                advance(document.file, writer.count)
        if writer.count == 0:
            raise InvalidValueError(
                "none of the files has text to make vectors of; nothing was written"
            )
    return Vectors.load(out)


def _documents(
    paths: list[Any], encoding: str | None, say: Callable[[str], None]
) -> Iterator[Document]:
    """All that can be read: one bad file among many does not stop the others."""
    for path in paths:
        try:
            yield from read_documents([path], encoding, tell=say)
        except (UnreadableError, OSError) as error:
            # Of an OSError, the file that is written would be blamed.
            what = f"{error.strerror}: {path}" if isinstance(error, OSError) else str(error)
            if len(paths) == 1:
                raise UnreadableError(what) from error
            say(f"skipped: {what}")


def _tell(document: Document, found: Embedded, length: int, say: Callable[[str], None]) -> None:
    for note in document.notes:
        say(f"{document.file}: {note}")
    passages = int(found.passages[0])
    if passages > 1:
        say(
            f"{document.file} has {int(found.tokens[0]):,} tokens, and the model reads {length:,} "
            f"at once: it was read in {passages:,} passages that overlap"
        )
    if len(found) == 0:
        say(f"{document.file} has nothing to make a vector of")


def _rows(document: Document, found: Embedded) -> Iterator[dict[str, Any]]:
    for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True):
        place = document.place(start)
        yield {
            "file": document.file,
            "page": place.page,
            "line": place.line,
            "start": start,
            "end": end,
            "text": document.text[start : min(end, start + SHOWN)],
        }


def _nothing(_: str) -> None:
    pass
