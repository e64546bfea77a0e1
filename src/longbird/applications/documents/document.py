"""A file as text, and the places in it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from longbird.errors import InvalidValueError

STRIDE = 2**16
"""Line ends are counted once for each stretch of that many characters."""

BLANK = re.compile(r"\n[^\S\n]*\n\s*")
"""What is between paragraphs."""


@dataclass(frozen=True)
class Place:
    """Where something stands in a file, counted from 1.

    Examples:
        >>> print(Place(page=3, line=12, column=5))
        page 3, line 12
    """

    page: int | None
    line: int
    column: int
    page_is: str = "page"
    """What a page is called: "part" for the files that an epub is made of."""

    def __str__(self) -> str:
        page = f"{self.page_is} {self.page}, " if self.page is not None else ""
        return f"{page}line {self.line}"


@dataclass(frozen=True)
class Document:
    r"""A file as text.

    Args:
        file: The name of the file, as it was given.
        text: What it says. Of txt and md the file itself with "\n" at the end of each line; of
            the other kinds paragraphs with an empty line between them.
        pages: The first character of each page; empty where the format has none.
        kind: "text", "markdown", "html", "pdf", "docx" or "epub".
        notes: What its reader should be told: pages without text, an encoding that was guessed.
        lines: The first character of each line, where they are others than those of the text:
            the lines of a pdf are those that a reader sees on the page.

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
        """Where a character of the text stands; `len(text)` is the end of the file."""
        if not 0 <= character <= len(self.text):
            raise InvalidValueError(
                f"character is {character}, expected one from 0 to {len(self.text)}, "
                f"which is the length of the text of {self.file}"
            )
        page, first = None, 0
        if self.pages:
            page = max(1, bisect_right(self.pages, character))
            first = self.pages[page - 1]
        if self.lines:
            number = max(0, bisect_right(self.lines, character) - 1)
            line = max(1, number - bisect_left(self.lines, first) + 1)
            begin = self.lines[number]
        else:
            line = self._line_ends(character) - self._line_ends(first) + 1
            begin = self.text.rfind("\n", 0, character) + 1
        column = character - max(begin, first) + 1
        return Place(page, line, column, "part" if self.kind == "epub" else "page")

    def paragraphs(self) -> list[tuple[int, int]]:
        """The first character of each paragraph and the one behind its last, without space around.

        Empty lines are between them; readers of formats with paragraphs of their own write those.
        """
        begins = [0, *(found.end() for found in BLANK.finditer(self.text))]
        ends = [*(found.start() for found in BLANK.finditer(self.text)), len(self.text)]
        found: list[tuple[int, int]] = []
        for begin, end in zip(begins, ends, strict=True):
            piece = self.text[begin:end]
            if kept := piece.strip():
                begin += len(piece) - len(piece.lstrip())
                found.append((begin, begin + len(kept)))
        return found

    def _line_ends(self, character: int) -> int:
        """How many lines end before a character."""
        known = character // STRIDE
        return self._counts[known] + self.text.count("\n", known * STRIDE, character)

    @cached_property
    def _counts(self) -> list[int]:
        """Line ends before each stretch of the text, which takes no memory to speak of."""
        stretches = range(0, len(self.text), STRIDE)
        each = (self.text.count("\n", start, start + STRIDE) for start in stretches)
        return list(accumulate(each, initial=0))
