"""The text of a file, and the places of its characters."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from longbird.errors import InvalidValueError

BLANK = re.compile(r"\n[^\S\n]*\n\s*")
"""Separator of paragraphs: one or more empty lines."""


@dataclass(frozen=True)
class Place:
    """A place in a file; pages, lines and columns are counted from 1.

    Examples:
        >>> print(Place(page=3, line=12, column=5))
        page 3, line 12
    """

    page: int | None
    line: int
    column: int
    page_is: str = "page"
    """Name of a page: "part" for the files that an epub consists of."""

    def __str__(self) -> str:
        page = f"{self.page_is} {self.page}, " if self.page is not None else ""
        return f"{page}line {self.line}"


@dataclass(frozen=True)
class Document:
    r"""A file as text.

    Args:
        file: Name of the file, as the caller gave it.
        text: Text of the file. For txt and md this is the file itself with "\n" at the end of
            each line; for other formats, paragraphs separated by empty lines.
        pages: Index of the first character of each page; empty for formats without pages.
        kind: "text", "markdown", "html", "pdf", "docx" or "epub".
        notes: Messages for the reader, such as pages without text or a guessed encoding.
        lines: Index of the first character of each line, if they differ from the lines of the
            text: the lines of a pdf are those on the printed page.

    Examples:
        >>> document = Document("song.txt", "One line\nand another\n\nEnd")
        >>> document.place(13)
        Place(page=None, line=2, column=5, page_is='page')
        >>> [document.text[start:end] for start, end in document.paragraphs()]
        ['One line\nand another', 'End']
    """

    file: str
    text: str
    pages: tuple[int, ...] = ()
    kind: str = "text"
    notes: tuple[str, ...] = ()
    lines: Sequence[int] = field(default=(), repr=False)

    def place(self, character: int) -> Place:
        """Return the place of a character of the text; `len(text)` is the end of the file."""
        if not 0 <= character <= len(self.text):
            raise InvalidValueError(
                f"character is {character}, expected a number from 0 to {len(self.text)}, the "
                f"length of the text of {self.file}"
            )
        page, first = None, 0
        if self.pages:
            page = max(1, bisect_right(self.pages, character))
            first = self.pages[page - 1]
        starts = self._line_starts
        number = max(0, bisect_right(starts, character) - 1)
        line = max(1, number - bisect_left(starts, first) + 1)
        column = character - max(starts[number], first) + 1
        return Place(page, line, column, "part" if self.kind == "epub" else "page")

    def paragraphs(self) -> list[tuple[int, int]]:
        """Return the start and the end of each paragraph, without surrounding whitespace."""
        parts = between(BLANK, self.text)
        return [span for part in parts for span in stripped(self.text, *part)]

    @cached_property
    def _line_starts(self) -> Sequence[int]:
        ends = (match.end() for match in re.finditer("\n", self.text))
        return self.lines or array("Q", chain([0], ends))


def between(separator: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each part of a text between matches of a pattern."""
    start = 0
    for match in separator.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a part of a text without surrounding whitespace, unless there is nothing else."""
    part = text[start:end]
    if kept := part.strip():
        start += len(part) - len(part.lstrip())
        yield start, start + len(kept)
