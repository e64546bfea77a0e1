"""Where the sentences of a text begin and end, by rules that hold for most prose.

A splitter that is trained (Punkt, spaCy) would bring files of its own to download; these rules are
for evidence that a person reads, where a sentence too long or too short does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from longbird.applications.documents.document import BLANK

ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr gen col lt sgt capt rev hon gov sen rep pres vs etc al cf ca "
    "approx fig figs eq eqs sec ch vol no nos pp ed eds dept univ inc ltd co corp bros est jan "
    "feb mar apr jun jul aug sep sept oct nov dec mt ft e.g i.e u.s u.k a.m p.m".split()
)
"""Words that a full stop belongs to, in lower case and without their last stop."""

# Capitals, letters of scripts that have none, and digits.
_letters = (x for x in map(chr, range(0x2000)) if x.isalpha() and not x.islower())
BEGINS = "0-9぀-ヿ一-鿿가-힣" + "".join(_letters)
# A stop with what closes after it, space, and what can begin a sentence. Of a row of stops, only
# the first is tried: a line of thousands of dots would take minutes otherwise.
STOP = re.compile(
    rf"(?<![.!?…؟۔।])[.!?…؟۔।]+[\"'”’»)\]]*(?=\s+[\"'“‘„«¿¡(\[]*[{BEGINS}])|[。！？]+"  # noqa: RUF001
)
# What is between paragraphs, or the beginning of an item of a list.
BREAK = re.compile(BLANK.pattern + r"|\n(?=[ \t]*(?:[-*•]|\d{1,3}[.)])\s)")
LONGEST = 1000
"""Characters after which text without any stop, such as a table, is cut at a line or a space."""


def sentences(text: str) -> list[tuple[int, int]]:
    r"""The first character of each sentence and the one behind its last, without space around.

    Examples:
        >>> text = "Dr. Ann Lee left at 5 p.m. on Monday. She came back!\n\nA heading"
        >>> [text[start:end] for start, end in sentences(text)]
        ['Dr. Ann Lee left at 5 p.m. on Monday.', 'She came back!', 'A heading']
    """
    return [
        (start, end)
        for low, high in _between_breaks(text)
        for first, last in _between_stops(text, low, high)
        for start, end in _cut(text, first, last)
    ]


def _between_breaks(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in BREAK.finditer(text):
        yield start, found.start()
        start = found.end()
    yield start, len(text)


def _between_stops(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for found in STOP.finditer(text, start, end):
        if not _is_abbreviation(text, start, found):
            yield start, found.end()
            start = found.end()
    yield start, end


def _is_abbreviation(text: str, start: int, found: re.Match[str]) -> bool:
    """Does the stop belong to its word: a title, an initial, a month?"""
    if found.group() != ".":
        return False
    # No more than the last word, since all of the text may be one sentence.
    before = text[max(start, found.start() - 20) : found.start()].strip()
    number = before.replace(".", "")
    if not number or number.isdigit():
        return True  # of an item, or of a section
    last = before.split()[-1].lstrip("\"'“‘([")  # noqa: RUF001
    return last.lower() in ABBREVIATIONS or (len(last) == 1 and last.isupper() and last != "I")


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Without space around it, and in pieces where it is too long for a sentence."""
    while end - start > LONGEST:
        at = max(text.rfind("\n", start + 1, start + LONGEST), start)
        if at == start:
            at = max(text.rfind(" ", start + 1, start + LONGEST), start)
        if at == start:
            at = start + LONGEST
        yield from _stripped(text, start, at)
        start = at
    yield from _stripped(text, start, end)


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    kept = piece.strip()
    if kept:
        begins = start + len(piece) - len(piece.lstrip())
        yield begins, begins + len(kept)
