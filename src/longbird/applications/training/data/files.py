"""The user's files, row by row: texts, json, jsonl, csv, tsv, parquet, folders of classes, gzip.

A row is a dict from column to value. Values of csv and tsv are text, as they stand in the file: a
label "007" stays "007", and "NA" is a word. Nothing is held in memory but the row (json files,
which are one value, and parquet, whose rows come in groups, excepted).
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from longbird.applications.documents import read_document
from longbird.applications.documents.errors import NotTextError
from longbird.applications.documents.formats import ENDINGS, HEAD, kind_of
from longbird.errors import InvalidValueError, MissingFileError
from longbird.files.digest import sha256_of

GZIP = b"\x1f\x8b"
TEXTS = (".txt", ".md", ".rst", ".text", "")  # a LICENSE has no ending
PAPERS = tuple(end for end, kind in ENDINGS.items() if kind not in ("text", "markdown"))
CONLL = (".conll", ".bio", ".iob", ".iob2")  # a word and its tag in each line


class Row(NamedTuple):
    """One row of a file, and where it stands."""

    values: dict[str, Any]
    file: Path
    line: int

    @property
    def place(self) -> str:
        """For messages, and for columns of text, which takes no bytes that are not UTF-8."""
        name = os.fsencode(self.file).decode("utf-8", "replace")
        return f"{name}, line {self.line}" if self.line else name


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files that these paths name, those of a folder in the order of their names.

    Raises:
        FileNotFoundError: There is no such file, or nothing in a folder.
        ValueError: None was given, or a file is of another kind.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [file for file in _files_in(path) if kind(file) in READERS]
            if not inside:
                raise MissingFileError(f"{path} has no files of a kind that is read: {_kinds()}")
            found += inside
        elif not path.exists():
            raise MissingFileError(f"there is no file {path}")
        elif kind(path) not in READERS:
            raise InvalidValueError(f"{path} ends in {path.suffix!r}, expected one of {_kinds()}")
        else:
            found.append(path)
    if not found:
        raise InvalidValueError("give at least one file")
    return found


def left_out(paths: Iterable[str | Path]) -> list[Path]:
    """The files in folders that are of a kind which is not read."""
    folders = [path for path in map(Path, paths) if path.is_dir()]
    return [file for path in folders for file in _files_in(path) if kind(file) not in READERS]


def _files_in(folder: Path) -> Iterator[Path]:
    """In the order of their names, without those that are hidden or in a hidden folder."""
    for file in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.is_file() and not hidden:
            yield file


def rows(
    paths: Iterable[str | Path], encoding: str = "utf-8", texts: Reader | None = None
) -> Iterator[Row]:
    """Every row of the files and folders.

    A text file is one row, with its `text`, unless `texts` reads it in another way; in a folder
    that was given, also the `label` that the subfolder's name is.

    Raises:
        ValueError: A file is not what its name says; says which, and the line.
    """
    for path in map(Path, paths):
        for file in find_files([path]):
            label = {}
            if path.is_dir() and file.parent != path and kind(file) in (*TEXTS, *PAPERS):
                label = {"label": file.relative_to(path).parts[0]}
            for line, values in _read(file, encoding, texts):
                yield Row({**values, **label}, file, line)


def fingerprint(paths: Iterable[str | Path]) -> dict[str, str]:
    """The sha256 of every file; of what is in a folder, of those that are read."""
    found: dict[str, str] = {}
    for path in map(Path, paths):
        for file in [path] if path.is_file() else find_files([path]):
            found[str(file)] = sha256_of(file)
    return found


def kind(file: Path) -> str:
    """The ending of a file, without that of gzip."""
    return (file.with_suffix("") if file.suffix == ".gz" else file).suffix.lower()


def _kinds() -> str:
    return f"{', '.join(filter(None, READERS))}, these with .gz, or no ending (text)"


def _read(file: Path, encoding: str, texts: Reader | None) -> Numbered:
    if kind(file) in PAPERS or (kind(file) in TEXTS and _is_paper(file, encoding)):
        said = None if encoding == "utf-8" else encoding  # many pages name their own
        yield from (texts or _whole)(io.StringIO(read_document(file, said).text))
        return
    try:
        with file.open("rb") as raw:
            zipped = raw.read(2) == GZIP
            raw.seek(0)
            binary: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
            reader = READERS[kind(file)]
            if reader is _whole and texts is not None:
                reader = texts
            if reader is _parquet:
                yield from reader(binary)
                return
            # A byte-order mark is no part of the first column's name.
            codec = "utf-8-sig" if encoding == "utf-8" else encoding
            # Line ends of a text are one character, as for `longbird ask`; csv knows its own.
            newline = None if kind(file) in TEXTS else ""
            with io.TextIOWrapper(binary, codec, newline=newline) as text:
                yield from reader(text)
    except UnicodeDecodeError as error:
        _looked_at(file)  # a picture, say
        byte = error.object[error.start]
        raise InvalidValueError(
            f"{file} is not {encoding}: it has the byte {byte:#04x} where that cannot be. Name "
            f"the encoding of the file, for example `encoding={_guess(error.object)}`"
        ) from error
    except io.UnsupportedOperation as error:
        raise InvalidValueError(
            f"{file} is a pipe, and it is read more than once: write it into a file first"
        ) from error
    except UnicodeError as error:  # of a codec that says no more, such as utf-16
        raise InvalidValueError(f"{file} is not {encoding}: {error}") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise InvalidValueError(f"{file} is not a whole gzip file: {error}") from error
    except _Broken as error:
        raise InvalidValueError(f"{file}{error}") from error.__cause__


def _guess(content: bytes) -> str:
    """An encoding that a file may have that is not UTF-8: by its byte-order mark, if any."""
    marks = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}
    marks |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
    return next((name for mark, name in marks.items() if content.startswith(mark)), "latin-1")


def _is_paper(file: Path, encoding: str) -> bool:
    """Is a file with the name of a text a pdf, docx or epub, as `longbird ask` would see?"""
    if not file.is_file():  # a pipe, of which nothing may be taken
        return False
    found, head = _looked_at(file)
    if found == "text" and b"\0" in head and encoding == "utf-8":
        raise InvalidValueError(
            f"{file} has NUL bytes: it is not text, or in another encoding, for example "
            "`encoding=utf-16`"
        )
    return found in ("pdf", "zip")


def _looked_at(file: Path) -> tuple[str, bytes]:
    """What kind a file is of by its content, and its first bytes.

    Raises:
        ValueError: It is no text, but something that can be named, such as a picture.
    """
    with file.open("rb") as raw:
        head = raw.read(HEAD)
    try:
        return kind_of(head, file.name), head
    except NotTextError as error:
        raise InvalidValueError(f"{file} {error}") from error


class _Broken(Exception):
    """What is wrong with a file, to stand after its name."""


Numbered = Iterator[tuple[int, dict[str, Any]]]
"""Rows with the number of their line; 0 for a whole file."""
Reader = Callable[[Any], Numbered]
"""Of an open file."""


def _whole(text: io.TextIOBase) -> Numbered:
    yield 0, {"text": text.read()}


def text_reader(documents: str, most: int) -> Reader:
    """Reads text files by what is a document in them.

    Args:
        documents: "line", "paragraph" (empty lines are between them), or "file".
        most: Characters of a row: a file with more is several, one after the other.
    """
    return {"file": _in_parts(most), "line": _lines, "paragraph": _paragraphs}[documents]


def _in_parts(most: int) -> Reader:
    def read(text: io.TextIOBase) -> Numbered:
        waiting = ""
        while more := text.read(most):
            *parts, waiting = cut(waiting + more, most)
            yield from ((0, {"text": part}) for part in parts)
        if waiting:
            yield 0, {"text": waiting}

    return read


def _lines(text: io.TextIOBase) -> Numbered:
    for line, each in enumerate(text, 1):
        if each.strip():
            yield line, {"text": each.strip()}


def _paragraphs(text: io.TextIOBase) -> Numbered:
    numbered = enumerate(text, 1)
    for is_text, lines in itertools.groupby(numbered, lambda pair: bool(pair[1].strip())):
        if is_text:
            numbers, texts = zip(*lines, strict=True)
            yield numbers[0], {"text": "".join(texts).strip()}


def cut(text: str, most: int) -> Iterator[str]:
    """A text in parts of at most that many characters: between lines, or between words.

    Examples:
        >>> list(cut("a long text", 8))
        ['a long', ' text']
    """
    begin = 0
    while len(text) - begin > most:
        middle, end = begin + most // 2, begin + most
        at = text.rfind("\n", middle, end) + 1 or text.rfind(" ", middle, end)
        at = at if at > begin else end
        yield text[begin:at]
        begin = at
    yield text[begin:]


def _table(separator: str | None) -> Reader:
    def read(text: io.TextIOBase) -> Numbered:
        csv.field_size_limit(2**31 - 1)  # a document may be longer than the default of 131,072
        between = separator
        if between is None:
            header = text.readline()
            between = max(",;\t", key=header.count)
            text.seek(0)
        # Strictly: a quotation mark that is never closed would swallow all rows up to the next.
        form: dict[str, Any] = {"delimiter": between, "strict": True}
        if between == "\t" and not _is_quoted(text, form):
            form["quoting"] = csv.QUOTE_NONE
        reader = csv.reader(text, **form)
        yield from _rows_of(reader)

    return read


def _is_quoted(text: io.TextIOBase, form: dict[str, Any]) -> bool:
    """Do quotation marks enclose fields, as in csv? In many tsv files they are just marks."""
    try:
        for _ in csv.reader(text, **form):
            pass
    except csv.Error:
        return False
    finally:
        text.seek(0)
    return True


def _rows_of(reader: Any) -> Numbered:
    line = 0
    try:
        names = next(reader, [])
        if not names:
            raise _Broken(" is empty, expected a first line with the names of its columns")
        if len(set(names)) < len(names):
            raise _Broken(f" has two columns of one name in its first line: {', '.join(names)}")
        line = reader.line_num
        for values in reader:
            line = reader.line_num
            if len(values) == len(names):
                yield line, dict(zip(names, values, strict=True))
            elif values:  # not an empty line
                raise _Broken(
                    f", line {line}: the number of fields is {len(values)}, and in the first line "
                    f"it is {len(names)} ({', '.join(names)})"
                )
    except csv.Error as error:
        raise _Broken(
            f", after line {line}, has a quotation mark that is not closed, or not doubled inside "
            f"a quoted field ({error})"
        ) from error


def _json_lines(text: io.TextIOBase) -> Numbered:
    for line, each in enumerate(text, 1):
        if each.strip():
            yield line, _object(_parsed(each, line), line)


def _json(text: io.TextIOBase) -> Numbered:
    value = _parsed(text.read(), 0)
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        value = value["data"]
    if not isinstance(value, list):
        raise _Broken(f" holds a {type(value).__name__}, expected a list of objects")
    for number, each in enumerate(value, 1):
        yield number, _object(each, number)


def _parsed(text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        where = f", line {line}," if line else ""
        raise _Broken(f"{where} is not JSON: {error}") from error


def _object(value: Any, line: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Broken(f", line {line}, holds {json.dumps(value)[:60]}, expected an object {{...}}")
    return value


def _parquet(binary: Any) -> Numbered:
    import pyarrow
    import pyarrow.parquet

    try:
        if isinstance(binary, gzip.GzipFile):
            binary = io.BytesIO(binary.read())
        table = pyarrow.parquet.ParquetFile(binary)
        number = 0
        for batch in table.iter_batches(batch_size=256):
            for values in batch.to_pylist():
                number += 1
                yield number, values
    except pyarrow.ArrowException as error:
        raise _Broken(f" is not a parquet file: {error}") from error


READERS: dict[str, Reader] = {
    **dict.fromkeys((*TEXTS, *PAPERS, *CONLL), _whole),
    ".csv": _table(None),
    ".tsv": _table("\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".parquet": _parquet,
}
