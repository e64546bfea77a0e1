"""Reading several files, and all documents in folders."""

from __future__ import annotations

import os
import stat
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from longbird.applications.documents.document import Document
from longbird.applications.documents.errors import UnreadableError
from longbird.applications.documents.file_reader import STDIN, read_document
from longbird.applications.documents.formats import ENDINGS, READ, ending
from longbird.applications.documents.separate_process import Limits
from longbird.errors import InvalidTypeError

Found = tuple[str, str | None]
"""Path of a file, and why it cannot be read, if that is known already."""


def read_documents(
    paths: Iterable[str | os.PathLike[str]],
    encoding: str | None = None,
    *,
    limits: Limits | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Document]:
    """Read files, and all files in folders whose names have a known ending.

    A named file that cannot be read is an error, and so is a folder without any readable file.
    Other unreadable files in a folder are skipped with a message.

    Args:
        paths: Files and folders; "-" is stdin. Folders are searched recursively in the order of
            names, without hidden files. Links to files are followed; links to folders outside of
            the folder are skipped with a message.
        encoding: Encoding of text and html; detected by default.
        limits: Limits for each file.
        tell: Function that is called with a message for each skipped file; by default each
            message is a warning.

    Raises:
        UnreadableError: A named file is not text, or nothing in a folder is.
        OSError: A path does not exist; raised before anything is read.
    """
    if isinstance(paths, (str, os.PathLike)):
        raise InvalidTypeError(
            f"expected several paths, received one: put it into a list, [{str(paths)!r}]"
        )
    names = [os.fspath(path) for path in paths]
    for name in names:
        if name != STDIN:
            os.stat(name)
    return _documents(names, encoding, limits or Limits(), tell or _warn)


def _documents(
    names: list[str], encoding: str | None, limits: Limits, tell: Callable[[str], None]
) -> Iterator[Document]:
    for name in names:
        if name == STDIN or not os.path.isdir(name):
            yield read_document(name, encoding, limits=limits)
            continue
        tried = readable = 0
        others: list[str] = []
        links: list[str] = []
        files = _files_in(name, os.path.realpath(name), others, links)
        for document in _read_ahead(files, encoding, limits):
            tried += 1
            if isinstance(document, Document):
                readable += 1
                yield document
            else:
                tell(f"skipped: {document}")
        if not tried:
            raise UnreadableError(f"{name} has no files of a supported kind: {READ}")
        if others:
            tell(f"skipped: {_summary(others, f'of other kinds than {READ}', 'file')}")
        if links:
            summary = _summary(links, "to other folders", "link")
            tell(f"skipped: {summary}; name a folder to read it")
        if not readable:
            raise UnreadableError(f"{name} has no file that can be read (tried {tried:,})")


def _files_in(folder: str, root: str, others: list[str], links: list[str]) -> Iterator[Found]:
    """Yield the files in a folder whose names have a known ending, in the order of names.

    Broken links and folders that may not be opened are yielded with the reason. Paths of files of
    other kinds are added to `others`, and links to folders outside of `root` to `links`.
    """
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for name in names:
        path = os.path.join(folder, name)
        known = ending(name) in ENDINGS
        try:
            mode = os.stat(path).st_mode
            if stat.S_ISDIR(mode) and not os.path.islink(path):
                yield from _files_in(path, root, others, links)
            elif stat.S_ISDIR(mode):
                if os.path.commonpath([os.path.realpath(path), root]) != root:
                    links.append(path)
            elif known and stat.S_ISREG(mode):
                yield path, None
            else:
                others.append(path)
        except OSError as error:
            if known or os.path.isdir(path):
                yield path, f"{error.strerror}: {path}"


def _summary(paths: list[str], what: str, noun: str) -> str:
    """Return the number of paths with an example, such as "2 links to folders (such as a)"."""
    if len(paths) == 1:
        return f"1 {noun} {what} ({paths[0]})"
    return f"{len(paths):,} {noun}s {what} (such as {paths[0]})"


def _read_ahead(
    files: Iterator[Found], encoding: str | None, limits: Limits
) -> Iterator[Document | str]:
    """Yield documents, or why a file cannot be read; several parsers run in parallel."""

    def read(file: str, failure: str | None) -> Document | str:
        if failure is not None:
            return failure
        try:
            return read_document(file, encoding, limits=limits)
        except UnreadableError as error:
            return str(error)
        except OSError as error:
            return f"{error.strerror}: {file}"

    ahead = os.cpu_count() or 1
    pending: deque[Future[Document | str]] = deque()
    with ThreadPoolExecutor(ahead) as pool:
        try:
            for file in files:
                pending.append(pool.submit(read, *file))
                if len(pending) > ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=3)
