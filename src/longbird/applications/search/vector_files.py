"""Files of vectors: .npy with .jsonl and .json beside it, or everything in one .parquet file.

The .jsonl file has a row for each vector, and the .json file has facts about all of them and
checksums, so that vectors and rows of different runs are not mixed up.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from array import array
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.errors import (
    ExistingFileError,
    InvalidValueError,
    MissingFileError,
    MissingPackageError,
)
from longbird.files.writing import writing_files

SHOWN = 1000
"""Maximum number of characters of a text that are stored, to be shown."""
ENDINGS = (".npy", ".parquet")
COLUMNS = ("file", "page", "line", "start", "end", "text")
ESCAPED = "backslashreplace"
"""How bytes of file names that are not UTF-8 are written: as \\udcff, which JSON reads back."""
NEEDED = ("model", "sha256", "pooling", "normalized", "unit", "context", "width")
VERIFIED = 2**16
"""Number of evenly spaced vectors that the checksum of an .npy file covers."""

Row = Mapping[str, Any]
Rows = Callable[[int], Row]
"""Function that reads the row of a vector from the file."""
Content = tuple[npt.NDArray[np.float32], Rows, Mapping[str, Any]]
"""Vectors, their rows, and facts about all of them."""


def read_vectors(path: Path, tell: Callable[[str], None] | None = None) -> Content:
    """Open a file of vectors; see `Vectors.load`."""
    _check_name(path)
    if not path.is_file():
        raise MissingFileError(f"there is no file {path}")
    if path.suffix == ".parquet":
        return _read_parquet(path)
    return _read_npy(path, tell or (lambda line: warnings.warn(line, stacklevel=5)))


@contextmanager
def writing_vectors(path: Path, about: Mapping[str, Any]) -> Generator[Any, None, None]:
    """Yield a writer of vectors and rows; the files appear complete, or not at all."""
    about = {"longbird": version("longbird"), **about}
    kind = _ParquetWriter if path.suffix == ".parquet" else _NpyWriter
    with writing_files(_files_of(path)) as files, closing(kind(files, about)) as writer:
        yield writer
        writer.finish()


def check_out(path: Path, force: bool) -> None:
    """Raise an error if vectors cannot be written to a path, before any are computed."""
    _check_name(path)
    if path.suffix == ".parquet":
        _check_parquet()
    for file in _files_of(path):
        if file.is_dir():
            raise IsADirectoryError(f"{file} is a folder; expected the name of a new file")
        if file.exists() and not force:
            raise ExistingFileError(
                f"{file} exists already: name another `out`, or overwrite it with `force=True`"
            )


def _files_of(path: Path) -> list[Path]:
    """Return the files of vectors; the last one is written last, and marks them as complete."""
    if path.suffix == ".parquet":
        return [path]
    return [path, path.with_suffix(".jsonl"), path.with_suffix(".json")]


def _check_name(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise InvalidValueError(f"{path} ends in {path.suffix!r}; expected {' or '.join(ENDINGS)}")


def _check_parquet() -> None:
    if find_spec("pyarrow") is None:
        raise MissingPackageError(
            "parquet needs pyarrow: pip install 'longbird[search]', or choose .npy"
        )


def _checked_row(where: str, row: Any) -> Row:
    types = {"file": str, "text": str, "start": int, "end": int}
    if not (
        isinstance(row, Mapping)
        and all(name in row for name in COLUMNS)
        and all(isinstance(row[name], kind) for name, kind in types.items())
        and all(row[name] is None or isinstance(row[name], int) for name in ("page", "line"))
    ):
        raise InvalidValueError(
            f"{where}, is not a row that `longbird embed` wrote: embed the documents again"
        )
    return {name: row[name] for name in COLUMNS}


def _checked_about(file: Path, text: str | bytes) -> dict[str, Any]:
    with suppress(ValueError, TypeError):
        about = json.loads(text)
        known = all(name in about for name in NEEDED)
        if known and isinstance(about["sha256"], dict) and isinstance(about["width"], int):
            return about
    raise InvalidValueError(
        f"{file} does not say which model made the vectors, as `longbird embed` writes it"
    )


# ---- npy


def _json_rows(file: Path) -> tuple[Rows, int, str]:
    """Return a function that reads a row of a .jsonl file, the number of rows, and a checksum."""
    starts, digest = array("q", [0]), hashlib.sha256()
    with file.open("rb") as opened:
        for line in opened:
            digest.update(line)
            starts.append(starts[-1] + len(line))

    def row(number: int) -> Row:
        with file.open("rb") as opened:
            opened.seek(starts[number])
            line = opened.readline()
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        return _checked_row(f"{file}, line {number + 1}", found)

    return row, len(starts) - 1, digest.hexdigest()


def _read_npy(path: Path, tell: Callable[[str], None]) -> Content:
    _, rows_file, about_file = _files_of(path)
    for file in (about_file, rows_file):
        if not file.is_file():
            raise MissingFileError(
                f"there is no {file.name} beside {path}: `longbird embed` writes both, and may "
                "have been killed in between; embed the documents again"
            )
    about = _checked_about(about_file, about_file.read_bytes())
    try:
        vectors: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidValueError(
            f"{path} cannot be read as an array of numbers: {error}"
        ) from error
    if getattr(vectors, "dtype", None) != np.float32 or vectors.ndim != 2:
        kind = f"{vectors.dtype} {list(vectors.shape)}" if hasattr(vectors, "dtype") else "several"
        raise InvalidValueError(
            f"{path} must be an array of float32 [vectors, width], received {kind}"
        )
    rows, count, sha256 = _json_rows(rows_file)
    if vectors.shape != (count, about["width"]):
        raise InvalidValueError(
            f"{path} has {len(vectors):,} vectors of {vectors.shape[1]:,} numbers, and beside it "
            f"are {count:,} rows of a model with {about['width']:,}: they do not belong "
            "together; embed the documents again"
        )
    checksums = about.get("checksums")
    if checksums is None:
        tell(
            f"{path} was written by an earlier version of Longbird, without checksums: that its "
            "vectors and rows belong together cannot be verified until it is embedded again"
        )
    elif checksums != _checksums(vectors, sha256):
        raise InvalidValueError(
            f"{path} and the files beside it do not belong together: they were written by "
            "different runs, or one of them was modified; embed the documents again"
        )
    return vectors, rows, about


def _checksums(vectors: npt.NDArray[np.float32], rows_sha256: str) -> dict[str, str]:
    count = len(vectors)
    chosen = np.linspace(0, max(count - 1, 0), min(count, VERIFIED)).astype(np.int64)
    return {"rows": rows_sha256, "vectors": hashlib.sha256(vectors[chosen].tobytes()).hexdigest()}


class _NpyWriter:
    """Writes vectors and rows as they come."""

    def __init__(self, files: Sequence[Path], about: Mapping[str, Any]) -> None:
        self.count, self.width, self.about = 0, about["width"], about
        self.array, self.rows = files[0].open("wb"), files[1].open("wb")
        self.beside, self.digest = files[2], hashlib.sha256()
        self._write_header()

    def add(self, vectors: npt.NDArray[np.float32], rows: Sequence[Row]) -> None:
        """Write vectors with their rows."""
        self.array.write(np.ascontiguousarray(vectors).tobytes())
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        self.rows.write(written := lines.encode("utf-8", ESCAPED))
        self.digest.update(written)
        self.count += len(vectors)

    def finish(self) -> None:
        """Write the number of vectors and the facts about them."""
        self.array.seek(0)
        self._write_header()
        for opened in (self.array, self.rows):
            opened.flush()
            os.fsync(opened.fileno())
        written = np.load(self.array.name, mmap_mode="r") if self.count else np.zeros((0, 1), "f4")
        checksums = _checksums(written, self.digest.hexdigest())
        about = {**self.about, "vectors": self.count, "checksums": checksums}
        self.beside.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", "utf-8")

    def close(self) -> None:
        """Close the files, whether they are complete or not."""
        self.array.close()
        self.rows.close()

    def _write_header(self) -> None:
        """Write the header, in which NumPy leaves room for any number of rows."""
        shape = {"descr": "<f4", "fortran_order": False, "shape": (self.count, self.width)}
        np.lib.format.write_array_header_1_0(self.array, shape)


# ---- parquet


def _read_parquet(path: Path) -> Content:
    _check_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, memory_map=True)
    except (pa.ArrowException, OSError) as error:
        raise InvalidValueError(f"{path} cannot be read as parquet: {error}") from error
    missing = [name for name in (*COLUMNS, "vector") if name not in table.column_names]
    if missing:
        raise InvalidValueError(
            f"{path} has no column {', '.join(missing)}: it is not what `longbird embed` writes"
        )
    about = _checked_about(path, (table.schema.metadata or {}).get(b"longbird", b""))
    expected, received = pa.list_(pa.float32(), about["width"]), table.schema.field("vector").type
    if received != expected:
        raise InvalidValueError(
            f"{path} must have a column vector of {expected}, received {received}"
        )
    column = table.column("vector")
    if column.null_count:
        raise InvalidValueError(f"{path} has {column.null_count:,} rows without a vector")
    pieces = [piece.flatten().to_numpy() for piece in column.chunks]
    flat = np.concatenate(pieces) if pieces else np.zeros(0, np.float32)
    rows = table.drop_columns(["vector"])

    def row(number: int) -> Row:
        return _checked_row(f"{path}, row {number + 1}", rows.slice(number, 1).to_pylist()[0])

    return flat.reshape(-1, about["width"]), row, about


class _ParquetWriter:
    """Writes vectors and rows into one file, in groups of at least 16,384."""

    def __init__(self, files: Sequence[Path], about: Mapping[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.count, self.pa = 0, pa
        integers = {name: pa.int64() for name in ("page", "line", "start", "end")}
        columns = [(name, integers.get(name, pa.string())) for name in COLUMNS]
        schema = pa.schema([*columns, ("vector", pa.list_(pa.float32(), about["width"]))])
        self.schema = schema.with_metadata({"longbird": json.dumps(about, ensure_ascii=False)})
        self.writer = pq.ParquetWriter(files[0], self.schema)
        self.waiting: list[Any] = []

    def add(self, vectors: npt.NDArray[np.float32], rows: Sequence[Row]) -> None:
        """Write vectors with their rows."""
        pa = self.pa
        rows = [
            {**row, "file": row["file"].encode("utf-8", ESCAPED).decode("utf-8")} for row in rows
        ]
        *fields, vector = self.schema
        flat = pa.array(np.ascontiguousarray(vectors).ravel(), pa.float32())
        column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        table = pa.Table.from_pylist(rows, pa.schema(fields))
        self.waiting.append(table.append_column(vector, column))
        self.count += len(vectors)
        if sum(map(len, self.waiting)) >= 2**14:
            self.finish()

    def finish(self) -> None:
        """Write the vectors that wait for others of their group."""
        if self.waiting:
            self.writer.write_table(self.pa.concat_tables(self.waiting))
        self.waiting = []

    def close(self) -> None:
        """Close the file, whether it is complete or not."""
        self.writer.close()
