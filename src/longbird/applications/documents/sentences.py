"""Splitting text into sentences with rules that hold for most prose.

Trained splitters (Punkt, spaCy) need a download of their own. These rules select evidence that a
person reads, where a sentence that is too long or too short does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from longbird.applications.documents.document import BLANK, between, stripped

ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr gen col lt sgt capt rev hon gov sen rep pres vs etc al cf ca "
    "approx fig figs eq eqs sec ch vol no nos pp ed eds dept univ inc ltd co corp bros est jan "
    "feb mar apr jun jul aug sep sept oct nov dec mt ft e.g i.e u.s u.k a.m p.m".split()
)
"""Abbreviations in lowercase, without their last full stop."""

# Capitals, letters of scripts without capitals, and digits.
_letters = (x for x in map(chr, range(0x2000)) if x.isalpha() and not x.islower())
BEGINS = "0-9぀-ヿ一-鿿가-힣" + "".join(_letters)
# A stop with closing punctuation, whitespace, and a character that can begin a sentence. Only the
# first of several stops is tried, since a line of thousands of dots would take minutes otherwise.
STOP = re.compile(
    rf"(?<![.!?…؟۔।])[.!?…؟۔।]+[\"'”’»)\]]*(?=\s+[\"'“‘„«¿¡(\[]*[{BEGINS}])|[。！？]+"  # noqa: RUF001
)
# The gap between two paragraphs, or the start of a list item.
BREAK = re.compile(BLANK.pattern + r"|\n(?=[ \t]*(?:[-*•]|\d{1,3}[.)])\s)")
LONGEST = 1000
"""Maximum number of characters; longer text without stops, such as a table, is cut."""


def sentences(text: str) -> list[tuple[int, int]]:
    r"""Return the start and the end of each sentence, without surrounding whitespace.

    Examples:
        >>> text = "Dr. Ann Lee left at 5 p.m. on Monday. She came back!\n\nA heading"
        >>> [text[start:end] for start, end in sentences(text)]
        ['Dr. Ann Lee left at 5 p.m. on Monday.', 'She came back!', 'A heading']
    """
    return [
        (start, end)
        for low, high in between(BREAK, text)
        for first, last in _between_stops(text, low, high)
        for start, end in _cut(text, first, last)
    ]


def _between_stops(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for found in STOP.finditer(text, start, end):
        if not _is_abbreviation(text, start, found):
            yield start, found.end()
            start = found.end()
    yield start, end


def _is_abbreviation(text: str, start: int, found: re.Match[str]) -> bool:
    """Return whether the stop belongs to a title, an initial, a month or a number."""
    if found.group() != ".":
        return False
    # Only the last word is examined, since the whole text may be one sentence.
    before = text[max(start, found.start() - 20) : found.start()].strip()
    number = before.replace(".", "")
    if not number or number.isdigit():
        return True  # the number of an item or a section
    last = before.split()[-1].lstrip("\"'“‘([")  # noqa: RUF001
    return last.lower() in ABBREVIATIONS or (len(last) == 1 and last.isupper() and last != "I")


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Strip whitespace, and cut what is too long for a sentence at a line end or a space."""
    while end - start > LONGEST:
        found = (text.rfind(gap, start + 1, start + LONGEST) for gap in "\n ")
        at = next((each for each in found if each > start), start + LONGEST)
        yield from stripped(text, start, at)
        start = at
    yield from stripped(text, start, end)
