"""Reading one file, a pipe or stdin as a document."""

from __future__ import annotations

import gzip
import io
import os
import re
import select
import stat
import sys
import time
import zlib
from dataclasses import replace
from typing import IO, Any

from longbird.applications.documents.document import Document
from longbird.applications.documents.encoding import check_text, decode
from longbird.applications.documents.errors import NotTextError, UnreadableError
from longbird.applications.documents.formats import ENDINGS, HEAD, ending, kind_of
from longbird.applications.documents.separate_process import (
    NO_LIMIT,
    PARSERS,
    SECONDS,
    Limits,
    parse_separately,
)
from longbird.core.machine import available_bytes, in_words
from longbird.errors import InvalidTypeError

STDIN = "-"
VISIBLE = re.compile(r"[^\s\xad\u200b-\u200f\u2060\ufeff]")
"""Any character but whitespace and zero-width characters."""
CHUNK = 2**20
WRITER_SECONDS = 5.0
"""Seconds to wait until a program opens a named pipe for writing."""


def read_document(
    path: str | os.PathLike[str], encoding: str | None = None, *, limits: Limits | None = None
) -> Document:
    r"""Read a file as text.

    Args:
        path: A txt, md, html, pdf, docx or epub file, or text compressed with gzip; "-" is stdin.
            The content decides on the format, and the name only where the content does not.
        encoding: Encoding of text and html; detected by default.
        limits: Limits on time, memory and size.

    Raises:
        UnreadableError: The file is of another kind, empty, damaged or protected.
        OSError: The file does not exist, or may not be opened.
        ImportError: The package that reads this format is not installed.

    Examples:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "page.html")
        ...     _ = file.write_text("<h1>Mills</h1><p>Closed in <b>1931</b>.")
        ...     read_document(file).text
        'Mills\n\nClosed in 1931.'
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(
            f"expected the path of a file, or '-' for stdin; received {path!r:.80}"
        )
    name, limits = os.fspath(path), limits or Limits()
    try:
        with _open(name, limits) as opened:
            document = _read(opened, name, encoding, limits)
    except NotTextError as error:
        raise UnreadableError(f"{'stdin' if name == STDIN else name} {error}") from error
    kind, notes, named = document.kind, document.notes, ENDINGS.get(ending(name), document.kind)
    if named != kind and {named, kind} != {"text", "markdown"}:
        note = f"its name ends in {ending(name)}, but it is {kind}, and is read as such"
        notes = (note, *notes)
    return replace(document, file=name, notes=notes)


def _open(name: str, limits: Limits) -> IO[bytes]:
    """Open a file, a pipe or stdin; devices and sockets are refused, since they may be endless."""
    if name == STDIN:
        if sys.stdin is None:
            raise NotTextError("is closed: give a file, or pipe something into it")
        try:
            return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        except (OSError, ValueError):  # stdin is replaced, as in notebooks and tests
            return io.BytesIO(sys.stdin.buffer.read())
    mode = os.stat(name).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "a folder, expected a file", name)
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode):
        raise NotTextError("is a device or socket; expected a file")
    if stat.S_ISFIFO(mode):
        return io.BytesIO(_read_fifo(name, limits))
    return open(name, "rb")


def _read_fifo(name: str, limits: Limits) -> bytes:
    """Return the content of a named pipe; opening one without a writer would block forever."""
    start = time.monotonic()
    until = start + min(limits.seconds, NO_LIMIT)
    pieces: list[bytes] = []
    size = 0
    with open(os.open(name, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        waiting = select.poll()
        waiting.register(pipe, select.POLLIN)
        opened = False  # by a program that writes
        while True:
            piece = pipe.read(CHUNK)
            if piece:
                pieces.append(piece)
                size += len(piece)
                _check_size(size, limits.unpacked)
                opened = True
                continue
            if piece is None:  # a writer has it open, and has not written yet
                opened = True
            elif opened:
                return b"".join(pieces)
            elif time.monotonic() > start + min(WRITER_SECONDS, limits.seconds):
                raise NotTextError("is a named pipe that no program writes to")
            if time.monotonic() > until:
                raise NotTextError(
                    f"is a named pipe that was still written to after {limits.seconds:g} s, which "
                    f"is the limit: to allow more, set {SECONDS} in the environment"
                )
            waiting.poll(50) if opened else time.sleep(0.05)


def _read(opened: IO[bytes], name: str, encoding: str | None, limits: Limits) -> Document:
    if not opened.seekable() or isinstance(opened, io.BytesIO):
        return _read_bytes(_read_all(opened, limits.unpacked), name, encoding, limits)
    start = opened.tell()
    head = opened.read(HEAD)
    opened.seek(start)
    if not head:
        raise NotTextError("is empty")
    kind = kind_of(head, name)
    if kind in PARSERS:
        os.lseek(opened.fileno(), start, os.SEEK_SET)  # the separate process reads from here
        return parse_separately(kind, opened, limits, encoding)
    size = os.fstat(opened.fileno()).st_size
    if 3 * size > available_bytes():
        raise NotTextError(
            f"is too large: it has {in_words(size)}, and reading it needs three times as much "
            "memory, which is not available. Split it into smaller files"
        )
    return _read_bytes(opened.read(), name, encoding, limits)


def _read_bytes(data: bytes, name: str, encoding: str | None, limits: Limits) -> Document:
    if not data:
        raise NotTextError("is empty")
    kind = kind_of(data[:HEAD], name)
    if kind == "gzip":
        return _read_gzip(data, name, encoding, limits)
    if kind in PARSERS:
        return parse_separately(kind, data, limits, encoding)
    if encoding is None:
        check_text(data)
    text, notes = decode(data, encoding)
    if VISIBLE.search(text) is None:
        raise NotTextError("has nothing in it but whitespace")
    return Document("", text, kind=kind, notes=tuple(notes))


def _read_gzip(data: bytes, name: str, encoding: str | None, limits: Limits) -> Document:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            inside = _read_all(packed, limits.unpacked)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NotTextError(f"is not a complete gzip file: {error}") from error
    if inside.startswith(b"\x1f\x8b"):
        raise NotTextError("is compressed with gzip twice: unpack it first")
    return _read_bytes(inside, name, encoding, limits)


def _read_all(opened: Any, maximum: float) -> bytes:
    """Read to the end: a pipe may be endless, and a small gzip file may unpack to terabytes."""
    pieces: list[bytes] = []
    size = 0
    while piece := opened.read(CHUNK):
        pieces.append(piece)
        size += len(piece)
        _check_size(size, maximum)
    return b"".join(pieces)


def _check_size(size: int, maximum: float) -> None:
    if size > maximum:
        raise NotTextError(f"holds more than {in_words(maximum)}, which is the limit")
