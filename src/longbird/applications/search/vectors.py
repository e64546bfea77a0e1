"""Searching in vectors that `longbird embed` wrote."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.applications.search import nearest_vectors
from longbird.applications.search.vector_files import Row, Rows, read_vectors
from longbird.errors import InvalidTypeError, InvalidValueError, MissingFileError


@dataclass(frozen=True)
class Hit:
    """A part of a document that is near to a query.

    Attributes:
        number: Index of its vector.
        score: Cosine of the angle between its vector and that of the query.
        file: Name of the document.
        page: Page on which the part begins, or None for formats without pages.
        line: Line in which the part begins; counted from the start of the page, if there is one.
        start: Index of its first character in the text of the document.
        end: Index after its last character.
        text: Text of the part; long parts are truncated.
        before: Text of the previous part of the same document; likewise truncated.
        after: Text of the next part of the same document; likewise truncated.
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


@dataclass(eq=False, repr=False)
class Vectors:
    """Vectors that `longbird embed` wrote.

    Attributes:
        path: Path of the file.
        array: The vectors, float32 [n, width].
        about: Facts about all vectors, such as the model and the unit.

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

    path: Path
    array: npt.NDArray[np.float32]
    _rows: Rows
    about: Mapping[str, Any]

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, tell: Callable[[str], None] | None = None
    ) -> Vectors:
        """Open vectors; those of an .npy file are read from the disk when they are needed.

        Args:
            path: The .npy or .parquet file that `longbird embed` wrote.
            tell: Function that is called with a message if the file cannot be verified; by
                default the message is a warning.

        Raises:
            FileNotFoundError: A file is missing.
            ValueError: The file was not written by `longbird embed`, or its vectors and rows do
                not belong together.
        """
        return cls(Path(path), *read_vectors(Path(path), tell))

    def __len__(self) -> int:
        """Return the number of vectors."""
        return len(self.array)

    def row(self, number: int) -> Row:
        """Return which part of which document a vector belongs to."""
        return self._rows(number)

    @cached_property
    def embedder(self) -> Any:
        """The model that made the vectors, loaded at its first use."""
        from longbird.applications.search.embedder import Embedder

        try:
            embedder = Embedder.from_pretrained(self.about["model"])
        except FileNotFoundError as error:
            raise MissingFileError(
                f"the model that made {self.path} is not where it was: {error}. If it has moved, "
                "name its folder with `model`"
            ) from error
        return self.checked(embedder)

    def checked(self, embedder: Any) -> Any:
        """Return an embedder unchanged if its model made these vectors.

        Raises:
            ValueError: The model is another one.
        """
        about = embedder.about
        if sorted(about.sha256.values()) != sorted(self.about["sha256"].values()):
            raise InvalidValueError(
                f"{self.path} was made with {self.about['model']}, and {about.name} has other "
                "weights or another tokenizer: their vectors cannot be compared. Search with the "
                "model that made them (`model`), or embed the documents again"
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
        """Return the parts that are nearest to each query, best first.

        Args:
            queries: Texts, or their vectors [queries, width].
            top: Maximum number of hits per query.
            index: Whether to search a million vectors or more with an approximate index, which
                is built beside them at its first use and may miss some hits. Otherwise, the
                search is exact.
        """
        if isinstance(queries, str):
            raise InvalidTypeError(
                "queries must be a list of texts, received one text: put it into a list"
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
        find: Any = nearest_vectors.nearest
        if index and len(self) >= nearest_vectors.WORTH:
            file, since = self.path.with_suffix(".usearch"), self.path.stat().st_mtime
            find = partial(nearest_vectors.nearest_by_index, file=file, since=since)
        try:
            numbers, scores = find(given, self.array, top, normalized=normalized)
        except ValueError as error:
            raise InvalidValueError(f"{self.path}: {error}") from error
        return [
            [self._hit(number, score) for number, score in zip(*pair, strict=True)]
            for pair in zip(numbers.tolist(), scores.tolist(), strict=True)
        ]

    def _hit(self, number: int, score: float) -> Hit:
        row = self.row(number)

        def neighbour(step: int) -> str:
            """Return the text of the next or the previous part of the same document."""
            if not 0 <= number + step < len(self):
                return ""
            found = self.row(number + step)
            beside = found["file"] == row["file"] and (found["start"] - row["start"]) * step > 0
            cut = " …" if found["end"] - found["start"] > len(found["text"]) else ""
            return f"{found['text']}{cut}" if beside else ""

        return Hit(number, score, **row, before=neighbour(-1), after=neighbour(+1))
