"""Writing the vectors of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from longbird.applications.documents import Document, UnreadableError, read_documents
from longbird.applications.search.embedder import CONTEXTS, Embedded, Embedder, check_choice
from longbird.applications.search.embedding_model import DOCUMENT
from longbird.applications.search.text_tokens import UNITS, Range, units_of
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
    r"""Write the vectors of files, or of their paragraphs or sentences, for `Vectors.search`.

    Args:
        files: txt, md, html, pdf, docx or epub files, and folders of these.
        out: An .npy file, beside which a .jsonl file gets a row for each vector, and a .json file
            facts about all of them; or a .parquet file with everything.
        model: An embedder, or a model as for `Embedder.from_pretrained`.
        unit: "document", "paragraph" or "sentence".
        context: "document" or "alone"; see `Embedder.embed`.
        prompt: Text to read before each document; by default the model's own.
        encoding: Encoding of the files; detected by default.
        force: Whether existing files are overwritten.
        say: Function that is called with a message about each file that is skipped, or read in
            several passages.
        advance: Function that is called with each finished file and the number of vectors so far.

    Returns:
        The vectors, opened.

    Raises:
        FileExistsError: The file exists, and `force` is not set.
        FileNotFoundError: One of the files does not exist.
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
            f"files must be a list, received one file: put it into a list, [{str(files)!r}]"
        )
    paths, out, say = list(files), Path(out), say or (lambda _: None)
    if not paths:
        raise InvalidValueError("give at least one file")
    check_choice("unit", unit, UNITS)
    check_choice("context", context, CONTEXTS)
    check_out(out, force)
    read_documents(paths, encoding)  # raises for a missing file, before any is read
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
    waiting: list[Document] = []  # documents whose vectors are not computed yet

    def texts() -> Iterator[tuple[str, list[Range]]]:
        for document in _documents(paths, encoding, say):
            waiting.append(document)
            yield document.text, units_of(document.text, unit)

    with writing_vectors(out, about) as writer:
        for found in embedder.stream(texts(), unit == "document", context, prompt):
            document = waiting.pop(0)
            for line in _messages(document, found, embedder.length):
                say(line)
            writer.add(found.vectors, [*_rows(document, found)])
            if advance is not None:
                advance(document.file, writer.count)
        if writer.count == 0:
            raise InvalidValueError("none of the files has any text; nothing was written")
    return Vectors.load(out)


def _documents(
    paths: list[Any], encoding: str | None, say: Callable[[str], None]
) -> Iterator[Document]:
    """Yield all documents that can be read: one unreadable file does not stop the others."""
    for path in paths:
        try:
            yield from read_documents([path], encoding, tell=say)
        except (UnreadableError, OSError) as error:
            # As an OSError, it would be reported as a failure to write the vectors.
            reason = f"{error.strerror}: {path}" if isinstance(error, OSError) else str(error)
            if len(paths) == 1:
                raise UnreadableError(reason) from error
            say(f"skipped: {reason}")


def _messages(document: Document, found: Embedded, length: int) -> Iterator[str]:
    yield from (f"{document.file}: {note}" for note in document.notes)
    if (passages := int(found.passages[0])) > 1:
        yield (
            f"{document.file} has {int(found.tokens[0]):,} tokens, and the model reads {length:,} "
            f"at once: it was read in {passages:,} overlapping passages"
        )
    if len(found) == 0:
        yield f"{document.file} has no text, and so no vector"


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
