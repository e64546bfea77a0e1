"""Vectors in files, with where each comes from and which model made it; and searching in them.

An .npy file has the vectors alone, beside it .jsonl has a row for each and .json what is known of
all of them; a .parquet file has all of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.applications.search import approximate_index
from longbird.applications.search.exact_search import nearest
from longbird.errors import (
    ExistingFileError,
    InvalidTypeError,
    InvalidValueError,
    MissingFileError,
    MissingPackageError,
)
from longbird.files.writing import writing_files

SHOWN = 1000
"""Characters that are kept of a text, to be shown."""
ENDINGS = (".npy", ".parquet")
COLUMNS = ("file", "page", "line", "start", "end", "text", "vector")
NO_TEXT = "backslashreplace"
"""How the name of a file that is not UTF-8 is written: as \\udcff, which JSON reads back."""
NEEDED = ("model", "sha256", "pooling", "normalized", "unit", "context", "width")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Hit:
    """A part of a document that is near to a query.

    Attributes:
        number: Of its vector.
        score: The cosine of the angle between the two: 1 for the same direction.
        file: The document.
        page: The page on which it begins, where there are pages.
        line: The line in which it begins; on its page, where there are pages.
        start: Its first character in the text of the document.
        end: The character behind its last.
        text: The text, or the first characters of a long one.
        before: The part of the same document before it; of a long one, the first characters.
        after: The part behind it, likewise.
    """

    number: int
    score: float
    file: str
    page: int | None
    line: int | None
    start: int
    end: int
    text: str
    before: str
    after: str


class Vectors:
    """Vectors that `longbird embed` wrote.

    Examples:
        >>> import longbird as lb, pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> file, out = (pathlib.Path(folder.name, name) for name in ("mill.txt", "mill.npy"))
        >>> _ = file.write_text("The mill was built in 1790. It closed in 1931.")
        >>> vectors = lb.embed_files([file], out, unit="sentence")
        >>> (hits,) = lb.Vectors.load(out).search(["When did it shut down?"], top=1)
        >>> hits[0].text
        'It closed in 1931.'
        >>> folder.cleanup()
    """

    def __init__(
        self, path: Path, array: npt.NDArray[np.float32], rows: Any, about: Mapping[str, Any]
    ) -> None:
        self.path, self.array, self._rows, self.about = path, array, rows, about

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vectors:
        """Opens vectors; those of an .npy file stay on the disk.

        Raises:
            FileNotFoundError: A file is missing.
            ValueError: It is not what `longbird embed` writes.
        """
        path = Path(path)
        check_name(path)
        if not path.is_file():
            raise MissingFileError(f"there is no file {path}")
        return _load_parquet(path) if path.suffix == ".parquet" else _load_npy(path)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.array)

    def row(self, number: int) -> Row:
        """Where a vector comes from."""
        return self._rows[number]

    @cached_property
    def embedder(self) -> Any:
        """The model that made them; it is loaded when it is first needed."""
        from longbird.applications.search.embedder import Embedder

        try:
            made_them = Embedder.from_pretrained(self.about["model"])
        except FileNotFoundError as error:
            raise MissingFileError(
                f"the model that made {self.path} is not where it was: {error}. If it has moved, "
                "name its folder with --model"
            ) from error
        return self.checked(made_them)

    def checked(self, embedder: Any) -> Any:
        """The model itself.

        Raises:
            ValueError: It is not the one that made these vectors.
        """
        about = embedder.about
        if sorted(about.sha256.values()) != sorted(self.about["sha256"].values()):
            raise InvalidValueError(
                f"{self.path} was made with {self.about['model']}, and {about.name} has other "
                "weights or another tokenizer: their vectors cannot be compared. Search with the "
                "model that made them (--model), or embed the documents again"
            )
        if about.pooling != self.about["pooling"] or about.width != self.about["width"]:
            raise InvalidValueError(
                f"{self.path} has vectors of {self.about['width']} numbers with "
                f"pooling={self.about['pooling']}, and {about.name} now has {about.width} with "
                f"pooling={about.pooling}: embed the documents again"
            )
        return embedder

    def search(
        self,
        queries: Sequence[str] | npt.NDArray[np.float32],
        top: int = 10,
        *,
        index: bool = False,
    ) -> list[list[Hit]]:
        """The parts nearest to each query, best first.

        Args:
            queries: Texts, or their vectors [queries, width].
            top: How many for each.
            index: From a million vectors on, look them up in an index, which is built beside them
                on first use and can miss some; otherwise the search is exact.
        """
        if isinstance(queries, str):
            raise InvalidTypeError(
                "queries must be a list of texts, received one: put it into a list"
            )
        if not isinstance(top, int) or top < 1:
            raise InvalidValueError(f"top must be a whole number of at least 1, received {top!r}")
        if not isinstance(queries, np.ndarray):
            queries = self.embedder.embed_queries(queries)
        given = np.asarray(queries, np.float32)
        if given.ndim != 2 or given.shape[1] != self.array.shape[1]:
            raise InvalidValueError(
                f"vectors of queries must be of shape [queries, {self.array.shape[1]}], received "
                f"{list(given.shape)}"
            )
        given = given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-12)
        normalized = bool(self.about["normalized"])
        try:
            if index and len(self) >= approximate_index.WORTH:
                file, since = self.path.with_suffix(".usearch"), self.path.stat().st_mtime
                numbers, scores = approximate_index.nearest_by_index(
                    given, self.array, top, file, since=since, normalized=normalized
                )
            else:
                numbers, scores = nearest(given, self.array, top, normalized=normalized)
        except ValueError as error:
            raise InvalidValueError(f"{self.path}: {error}") from error
        return [
            [self._hit(number, score) for number, score in zip(*pair, strict=True)]
            for pair in zip(numbers.tolist(), scores.tolist(), strict=True)
        ]

    def _hit(self, number: int, score: float) -> Hit:
        row = self.row(number)

        def neighbour(by: int) -> str:
            """The text beside it in the same document, whose vector is the next or the last."""
            if not 0 <= number + by < len(self):
                return ""
            found = self.row(number + by)
            beside = found["file"] == row["file"] and (found["start"] - row["start"]) * by > 0
            cut = " …" if found["end"] - found["start"] > len(found["text"]) else ""
            return f"{found['text']}{cut}" if beside else ""

        names = ("file", "page", "line", "start", "end", "text")
        return Hit(
            number,
            score,
            *(row[name] for name in names),
            before=neighbour(-1),
            after=neighbour(+1),
        )


def as_json(hit: Hit) -> dict[str, Any]:
    """A hit as JSON."""
    return asdict(hit)


def check_name(path: Path) -> None:
    """Raises for a file of another kind."""
    if path.suffix not in ENDINGS:
        raise InvalidValueError(f"{path} ends in {path.suffix!r}; expected {' or '.join(ENDINGS)}")


def check_parquet() -> None:
    """Raises if parquet can be neither read nor written."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise MissingPackageError(
            "parquet needs pyarrow: pip install 'longbird[search]', or choose .npy"
        )


# ---- npy


class _Lines(Sequence[Row]):
    """The rows of a .jsonl file, each read when it is asked for."""

    def __init__(self, file: Path) -> None:
        self.file = file
        ends: list[npt.NDArray[np.int64]] = []
        with file.open("rb") as opened:
            first = 0
            while piece := opened.read(2**24):
                ends.append(np.flatnonzero(np.frombuffer(piece, np.uint8) == 10) + first + 1)
                first += len(piece)
        self.ends = np.concatenate([np.zeros(1, np.int64), *ends])

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, number: Any) -> Any:
        start, end = self.ends[number : number + 2].tolist()
        with self.file.open("rb") as opened:
            opened.seek(start)
            line = opened.read(end - start)
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        return _checked_row(f"{self.file}, line {number + 1}", row)


def _checked_row(where: str, row: Any) -> Row:
    kinds = {"file": str, "text": str, "start": int, "end": int}
    if not (
        isinstance(row, Mapping)
        and all(name in row for name in COLUMNS[:-1])
        and all(isinstance(row[name], kind) for name, kind in kinds.items())
        and all(row[name] is None or isinstance(row[name], int) for name in ("page", "line"))
    ):
        raise InvalidValueError(
            f"{where}, is not a row that `longbird embed` wrote: embed the documents again"
        )
    return {name: row[name] for name in COLUMNS[:-1]}


def _load_npy(path: Path) -> Vectors:
    beside, rows = path.with_suffix(".json"), path.with_suffix(".jsonl")
    for file in (beside, rows):
        if not file.is_file():
            raise MissingFileError(
                f"there is no {file.name} beside {path}: `longbird embed` writes both, and a kill "
                "may have come between; embed the documents again"
            )
    about = _checked_about(beside, beside.read_bytes())
    try:
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidValueError(
            f"{path} cannot be read as an array of numbers: {error}"
        ) from error
    if getattr(array, "dtype", None) != np.float32 or array.ndim != 2:
        kind = f"{array.dtype} {list(array.shape)}" if hasattr(array, "dtype") else "several"
        raise InvalidValueError(
            f"{path} must be an array of float32 [vectors, width], received {kind}"
        )
    lines = _Lines(rows)
    if array.shape != (len(lines), about["width"]):
        raise InvalidValueError(
            f"{path} has {array.shape[0]:,} vectors of {array.shape[1]:,} numbers, and beside it "
            f"are {len(lines):,} rows of a model with {about['width']:,}: they do not belong "
            "together; embed the documents again"
        )
    return Vectors(path, array, lines, about)


def _checked_about(file: Path, text: str | bytes) -> dict[str, Any]:
    try:
        about = json.loads(text)
        kinds = {"sha256": dict, "width": int}
        if not (
            all(name in about for name in NEEDED)
            and all(isinstance(about[name], kind) for name, kind in kinds.items())
        ):
            raise ValueError
    except (ValueError, TypeError):
        raise InvalidValueError(
            f"{file} does not say which model made the vectors, as `longbird embed` writes it"
        ) from None
    return about


class _NpyWriter:
    """Vectors and rows, as they come."""

    def __init__(self, files: Sequence[Path], about: Mapping[str, Any]) -> None:
        self.count, self.width, self.about = 0, about["width"], about
        self.array = files[0].open("wb")
        self.rows = files[1].open("w", encoding="utf-8", errors=NO_TEXT)
        self.beside = files[2]
        self._header()

    def add(self, vectors: npt.NDArray[np.float32], rows: Sequence[Row]) -> None:
        """Writes them."""
        self.array.write(np.ascontiguousarray(vectors).tobytes())
        self.rows.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        self.count += len(vectors)

    def finish(self) -> None:
        """Writes how many there are."""
        self.array.seek(0)
        self._header()
        for opened in (self.array, self.rows):
            opened.flush()
            os.fsync(opened.fileno())
        about = {**self.about, "vectors": self.count}
        self.beside.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def close(self) -> None:
        """Closes the files, whether they are whole or not."""
        self.array.close()
        self.rows.close()

    def _header(self) -> None:
        """NumPy leaves room in it for any number of rows."""
        shape = {"descr": "<f4", "fortran_order": False, "shape": (self.count, self.width)}
        np.lib.format.write_array_header_1_0(self.array, shape)


# ---- parquet


def _load_parquet(path: Path) -> Vectors:
    check_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise InvalidValueError(f"{path} cannot be read as parquet: {error}") from error
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise InvalidValueError(
            f"{path} has no column {', '.join(missing)}: it is not what `longbird embed` writes"
        )
    about = _checked_about(path, (table.schema.metadata or {}).get(b"longbird", b""))
    expected = pa.list_(pa.float32(), about["width"])
    if table.schema.field("vector").type != expected:
        raise InvalidValueError(
            f"{path} must have a column vector of {expected}, received "
            f"{table.schema.field('vector').type}"
        )
    column = table.column("vector")
    if column.null_count:
        raise InvalidValueError(f"{path} has {column.null_count:,} rows without a vector")
    pieces = [piece.flatten().to_numpy() for piece in column.chunks]
    flat = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    rows = _TableRows(path, table.drop_columns(["vector"]))
    return Vectors(path, flat.reshape(-1, about["width"]), rows, about)


class _TableRows(Sequence[Row]):
    def __init__(self, path: Path, table: Any) -> None:
        self.path, self.table = path, table

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, number: Any) -> Any:
        row = self.table.slice(number, 1).to_pylist()[0]
        return _checked_row(f"{self.path}, row {number + 1}", row)


class _ParquetWriter:
    """The same in one file."""

    def __init__(self, files: Sequence[Path], about: Mapping[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.count, self.pa = 0, pa
        kinds = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int64(), pa.string())
        kinds = (*kinds, pa.list_(pa.float32(), about["width"]))
        schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
        self.schema = schema.with_metadata({"longbird": json.dumps(about, ensure_ascii=False)})
        self.writer = pq.ParquetWriter(files[0], self.schema)
        self.waiting: list[Any] = []
        self.size = 0

    def add(self, vectors: npt.NDArray[np.float32], rows: Sequence[Row]) -> None:
        """Writes them, many at a time."""
        pa = self.pa
        rows = [
            {**row, "file": row["file"].encode("utf-8", NO_TEXT).decode("utf-8")} for row in rows
        ]
        columns: list[Any] = [
            pa.array([row[name] for row in rows], self.schema.field(name).type)
            for name in COLUMNS[:-1]
        ]
        flat = pa.array(np.ascontiguousarray(vectors).ravel(), pa.float32())
        columns.append(pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]))
        self.waiting.append(pa.table(columns, schema=self.schema))
        self.count += len(vectors)
        self.size += len(vectors)
        if self.size >= 2**14:
            self._write()

    def finish(self) -> None:
        """Writes the rest."""
        self._write()

    def close(self) -> None:
        """Closes the file, whether it is whole or not."""
        self.writer.close()

    def _write(self) -> None:
        if self.waiting:
            self.writer.write_table(self.pa.concat_tables(self.waiting))
        self.waiting, self.size = [], 0


# ---- both


def files_of(path: Path) -> list[Path]:
    """The files that vectors are in; the last is written last, and says that all are there."""
    if path.suffix == ".parquet":
        return [path]
    return [path, path.with_suffix(".jsonl"), path.with_suffix(".json")]


def check_out(path: Path, force: bool) -> None:
    """Raises if vectors cannot be written there, before there are any."""
    check_name(path)
    if path.suffix == ".parquet":
        check_parquet()
    for file in files_of(path):
        if file.is_dir():
            raise IsADirectoryError(f"{file} is a folder; expected the name of a new file")
        if file.exists() and not force:
            raise ExistingFileError(
                f"{file} exists already: name another --out, or overwrite it with --force"
            )


@contextmanager
def writing_vectors(path: Path, about: Mapping[str, Any]) -> Generator[Any, None, None]:
    """What takes vectors and rows; the files are there when it is done, or not at all."""
    about = {"longbird": version("longbird"), **about}
    with writing_files(files_of(path)) as files:
        writer = (_ParquetWriter if path.suffix == ".parquet" else _NpyWriter)(files, about)
        try:
            yield writer
            writer.finish()
        finally:
            writer.close()
