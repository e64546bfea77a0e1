"""Files and folders, one document after the other."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import sys
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

from longbird.applications.documents.document import Document
from longbird.applications.documents.encoding import check_text, decode
from longbird.applications.documents.errors import NotTextError, UnreadableError
from longbird.applications.documents.formats import ENDINGS, HEAD, READ, ending, kind_of
from longbird.applications.documents.separate_process import Limits, Parsed, parse_apart
from longbird.core.machine import available_bytes, in_words
from longbird.errors import InvalidTypeError

STDIN = "-"
VISIBLE = re.compile(r"[^\s\xad\u200b-\u200f\u2060\ufeff]")
"""Anything but space, and characters without width."""


def read_document(
    path: str | os.PathLike[str], encoding: str | None = None, *, limits: Limits | None = None
) -> Document:
    r"""Reads a file as text.

    Args:
        path: Of a txt, md, html, pdf, docx or epub file, or one of text compressed with gzip; "-"
            is stdin. What it is, is told by its content first, and then by its name.
        encoding: Of text and html; otherwise it is recognised.
        limits: How much it may take.

    Raises:
        UnreadableError: It is something else, empty, damaged or protected; the message says what.
        OSError: There is no such file, or it may not be opened.
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
        with _open(name) as opened:
            parsed = _read(opened, name, encoding, limits)
    except NotTextError as error:
        raise UnreadableError(f"{_shown(name)} {error}") from error
    return Document(
        file=name,
        text=parsed.text,
        pages=tuple(parsed.pages),
        kind=parsed.kind,
        notes=(*_misnamed(name, parsed.kind), *parsed.notes),
        lines=tuple(parsed.lines),
    )


def read_documents(
    paths: Iterable[str | os.PathLike[str]],
    encoding: str | None = None,
    *,
    limits: Limits | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Document]:
    """Reads files, and all files in folders whose names end in what is read.

    A file that was named and cannot be read is an error, and so is a folder without any that can.
    Of the others in a folder, one that cannot be read is told of and left out.

    Args:
        paths: Of files and folders, which are searched to the bottom, in the order of names and
            without hidden files; "-" is stdin.
        encoding: Of text and html; otherwise it is recognised.
        limits: How much each file may take.
        tell: Is called with a line for each file that is left out; otherwise it is a warning.

    Raises:
        UnreadableError: A file that was named is not text, or nothing in a folder is.
        OSError: There is no such file; before any is read.
    """
    if isinstance(paths, (str, os.PathLike)):
        raise InvalidTypeError(
            f"expected several paths; received one: [{str(paths)!r}] would be a list"
        )
    named = [os.fspath(path) for path in paths]
    for name in named:
        if name != STDIN:
            os.stat(name)
    return _documents(named, encoding, limits or Limits(), tell or _warn)


def _files_in(folder: str, others: list[str]) -> Iterator[tuple[str, OSError | None]]:
    """The files that are read in a folder, by the ending of their names and in order of these.

    With them what cannot be looked at: a link to nothing, a folder that may not be opened.
    Files of other kinds are put into `others`.
    """
    seen: set[tuple[int, int]] = set()

    def look(place: str) -> Iterator[tuple[str, OSError | None]]:
        status = os.stat(place)
        if (status.st_dev, status.st_ino) in seen:  # a link to a folder around it
            return
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
        for name in names:
            path = os.path.join(place, name)
            try:
                mode = os.stat(path).st_mode
                if stat.S_ISDIR(mode):
                    yield from look(path)
            except OSError as error:
                if os.path.isdir(path) or ending(name) in ENDINGS:
                    yield path, error
                continue
            if stat.S_ISREG(mode) and ending(name) in ENDINGS:
                yield path, None
            elif not stat.S_ISDIR(mode):
                others.append(path)

    yield from look(folder)


def _documents(
    named: list[str], encoding: str | None, limits: Limits, tell: Callable[[str], None]
) -> Iterator[Document]:
    for name in named:
        if name == STDIN or not os.path.isdir(name):
            yield read_document(name, encoding, limits=limits)
            continue
        found = read = 0
        others: list[str] = []
        for document in _read_ahead(_files_in(name, others), encoding, limits):
            found += 1
            if isinstance(document, Document):
                read += 1
                yield document
            else:
                tell(f"left out: {document}")
        if not found:
            raise UnreadableError(f"{name} has no files of a kind that is read: {READ}")
        if others:
            example = f"such as {_shown(others[0])}" if len(others) > 1 else _shown(others[0])
            tell(f"left out: {_count(others)} of other kinds than {READ} ({example})")
        if not read:
            raise UnreadableError(f"{name} has no file that can be read (tried: {found:,})")


def _read_ahead(
    files: Iterator[tuple[str, OSError | None]], encoding: str | None, limits: Limits
) -> Iterator[Document | str]:
    """Documents, or why there is none, a few files ahead: their parsers run side by side."""

    def read(file: str, failure: OSError | None) -> Document | str:
        try:
            if failure is not None:
                raise failure
            return read_document(file, encoding, limits=limits)
        except UnreadableError as error:
            return str(error)
        except OSError as error:
            return f"{error.strerror}: {file}"

    ahead = os.cpu_count() or 1
    waiting: deque[Future[Document | str]] = deque()
    with ThreadPoolExecutor(ahead) as pool:
        try:
            for file in files:
                waiting.append(pool.submit(read, *file))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _count(files: list[str]) -> str:
    return f"{len(files):,} files" if len(files) > 1 else "1 file"


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=3)


def _open(name: str) -> IO[bytes]:
    """A file, a pipe or stdin; nothing that has no end."""
    if name == STDIN:
        if sys.stdin is None:
            raise NotTextError("is closed: give a file, or pipe something into it")
        try:
            return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        except (OSError, ValueError):  # something in its place, as in notebooks and tests
            return io.BytesIO(sys.stdin.buffer.read())
    mode = os.stat(name).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "a folder, expected a file", name)
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode):
        raise NotTextError("is a device or socket; expected a file")
    return open(name, "rb")


def _read(opened: IO[bytes], name: str, encoding: str | None, limits: Limits) -> Parsed:
    if not opened.seekable() or isinstance(opened, io.BytesIO):
        return _read_bytes(_all(opened, limits.unpacked), name, encoding, limits)
    start = opened.tell()
    head = opened.read(HEAD)
    opened.seek(start)
    if not head:
        raise NotTextError("is empty")
    kind = kind_of(head, name)
    if kind in ("pdf", "html", "zip"):
        os.lseek(opened.fileno(), start, os.SEEK_SET)  # where the other process begins
        return parse_apart(kind, opened, limits, encoding)
    size = os.fstat(opened.fileno()).st_size
    if 3 * size > available_bytes():
        raise NotTextError(
            f"is too large: it has {in_words(size)}, and reading it takes three times as much "
            "memory, which is not available. Split it, and read the parts"
        )
    return _read_bytes(opened.read(), name, encoding, limits)


def _read_bytes(data: bytes, name: str, encoding: str | None, limits: Limits) -> Parsed:
    """The same, of what is in memory: text, or what came through a pipe."""
    if not data:
        raise NotTextError("is empty")
    kind = kind_of(data[:HEAD], name)
    if kind == "gzip":
        return _read_gzip(data, name, encoding, limits)
    if kind in ("pdf", "html", "zip"):
        return parse_apart(kind, data, limits, encoding)
    if encoding is None:
        check_text(data)
    text, notes = decode(data, encoding)
    if VISIBLE.search(text) is None:
        raise NotTextError("has nothing in it but space")
    return Parsed(text, kind, notes=notes)


def _read_gzip(data: bytes, name: str, encoding: str | None, limits: Limits) -> Parsed:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            inside = _all(packed, limits.unpacked)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NotTextError(f"is not a whole gzip file: {error}") from error
    if inside.startswith(b"\x1f\x8b"):
        raise NotTextError("is compressed with gzip twice: unpack it first")
    return _read_bytes(inside, name, encoding, limits)


def _all(opened: Any, most: float) -> bytes:
    """Everything, up to a limit: a pipe may have no end, and a small file may hold terabytes."""
    pieces: list[bytes] = []
    size = 0
    while piece := opened.read(2**20):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise NotTextError(f"holds more than {in_words(most)}, which is the limit")
    return b"".join(pieces)


def _misnamed(name: str, kind: str) -> list[str]:
    said = ENDINGS.get(ending(name))
    if said is None or said == kind or {said, kind} == {"text", "markdown"}:
        return []
    return [f"its name ends in {ending(name)}, but it is {kind}, and read as that"]


def _shown(name: str) -> str:
    return "stdin" if name == STDIN else name
