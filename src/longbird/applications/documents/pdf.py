"""pdf: lines of pages, joined into paragraphs according to their positions.

A pdf has neither paragraphs nor words, only characters at positions. pdfium joins these into
lines, in the order in which they were written. This module joins lines into paragraphs: a line
that has room for the first word of the next line was ended on purpose, and larger gaps and
indents start a new paragraph.
"""

from __future__ import annotations

import ctypes
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from longbird.applications.documents.characters import clean
from longbird.applications.documents.document import Document
from longbird.applications.documents.errors import NotTextError
from longbird.applications.documents.separate_process import Limits

HYPHEN = "\x02"
"""Character that pdfium writes for a hyphen that divides a word between lines."""

STOPS = (".", "!", "?", ":", ";", '."', ".”", ".’", ".)", "。")  # noqa: RUF001
ITEM = re.compile(r"[•▪■●◦‣·]|[-–*]\s|\(?\d{1,3}[.)]\s|\(?[a-z][.)]\s")  # noqa: RUF001
LEADERS = re.compile(r"\.(?: ?\.){3}")  # dots in a table of contents
EDGE = 2
"""Number of lines at the top and the bottom of a page that may be running heads."""
PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|p|pg|seite|s|página|pagina|side|sida)\b)?\W*#"
    r"(?:\W*(?:of|von|de|di|av)?\W*#)?\W*",
    re.IGNORECASE,
)
"""Lines that contain only a page number, with digits replaced by #."""


@dataclass
class Line:
    """A line of a page; coordinates are points from the lower left corner of the page."""

    text: str
    left: float
    right: float
    base: float
    size: float
    kept: bool = True


def read(data: bytes, _limits: Limits, _encoding: str | None = None) -> Document:
    """Read a pdf with its pages and lines.

    Raises:
        NotTextError: The file is damaged, protected, or has no text.
    """
    pages = list(_pages(data))
    empty = sum(not page for page in pages)
    if empty == len(pages):
        count = "its only page" if len(pages) == 1 else f"any of its {len(pages):,} pages"
        raise NotTextError(
            f"has no text on {count}, only pictures, like a scan: run it through OCR first, for "
            "example with ocrmypdf"
        )
    notes: list[str] = []
    if empty:
        verb = "has" if empty == 1 else "have"
        notes.append(f"{empty:,} of {len(pages):,} pages {verb} no text; scanned pages need OCR")
    usual = _usual_distance(pages)
    if _drop_running_heads(pages, usual):
        notes.append("running heads and page numbers are skipped")
    text, starts, lines = _assemble(pages, usual)
    if len(re.findall("[\ue000-\uf8ff\ufffd]", text)) > 0.1 * len(text):
        notes.append("many of its characters are unknown: its fonts do not map them to Unicode")
    return Document("", text, tuple(starts), "pdf", tuple(notes), tuple(lines))


def _pages(data: bytes) -> Iterator[list[Line]]:
    import pypdfium2
    import pypdfium2.raw as pdfium

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        why = pdfium.FPDF_GetLastError()
        if why == pdfium.FPDF_ERR_SECURITY:
            raise NotTextError(
                "is encrypted with an unknown method: save an unencrypted copy, and read that"
            ) from error
        if why == pdfium.FPDF_ERR_PASSWORD:
            raise NotTextError(
                "is protected by a password: save a copy without a password, and read that"
            ) from error
        raise NotTextError(f"is a damaged or incomplete pdf ({error})") from error
    if not len(document):
        raise NotTextError("is a pdf without pages; it is probably damaged or incomplete")
    for number in range(len(document)):
        try:
            page = document[number]
            text = page.get_textpage()
        except pypdfium2.PdfiumError:  # a damaged page; others may be readable
            yield []
            continue
        yield list(_lines(text.raw, pdfium))
        text.close()
        page.close()


def _lines(page: Any, pdfium: Any) -> Iterator[Line]:
    letter = pdfium.FPDFText_GetUnicode
    letters = [letter(page, number) for number in range(pdfium.FPDFText_CountChars(page))]
    begin = 0
    for number, code in enumerate([*letters, 10]):
        if code not in (2, 10, 13):
            continue
        visible = [at for at in range(begin, number) if not chr(letters[at]).isspace()]
        text = "".join(map(chr, letters[begin:number]))
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        text = " ".join(clean(text).split())
        if text:
            left, _, base, size = _place(page, visible[0], pdfium)
            _, right, _, _ = _place(page, visible[-1], pdfium)
            yield Line(text + HYPHEN * (code == 2), left, right, base, size)
        begin = number + 1


def _place(page: Any, number: int, pdfium: Any) -> tuple[float, float, float, float]:
    """Return the left edge, the right edge, the baseline and the height of a character."""
    box, x, base = pdfium.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetLooseCharBox(page, number, box)
    pdfium.FPDFText_GetCharOrigin(page, number, x, base)
    return box.left, box.right, base.value, max(abs(box.top - box.bottom), 1.0)


def _drop_running_heads(pages: list[list[Line]], usual: float) -> bool:
    """Mark running heads as skipped, and return whether there are any.

    Each head is kept once, at its first occurrence that does not interrupt a sentence. Page
    numbers are never kept.
    """
    often = _often_at_edges(pages)
    edges = [(_apart(page, often, usual), _apart(page[::-1], often, usual)) for page in pages]
    for line in (line for both in edges for heads in both for line in heads):
        line.kept = False
    bodies = [[line for line in page if line.kept] for page in pages]
    continues = [
        bool(above and below) and _continues(above[-1], below[0])
        for above, below in pairwise(bodies)
    ]
    seen: set[str] = set()
    for above, below, ends in zip([False, *continues], [*continues, False], edges, strict=True):
        for inside, heads in zip((above, below), ends, strict=True):
            for line in heads:
                form = _form(line)
                line.kept = not (inside or form in seen or PAGE_NUMBER.fullmatch(form))
                if line.kept:
                    seen.add(form)
    return not all(line.kept for page in pages for line in page)


def _often_at_edges(pages: list[list[Line]]) -> set[str]:
    """Return lines that recur at the edges of many pages, with digits replaced by #.

    In documents of two or three pages, such lines must be alike on all of them.
    """
    edges = [(*page[:EDGE], *page[-EDGE:]) for page in pages]
    counts = Counter(form for lines in edges for form in {_form(line) for line in lines})
    minimum = max(2, min(4, len(pages)), 0.3 * len(pages))
    often = {form for form, count in counts.items() if count >= minimum}
    if len(pages) >= 4:
        return often
    variants = {form: set[tuple[str, int]]() for form in often}
    for line in (line for lines in edges for line in lines if _form(line) in often):
        number = PAGE_NUMBER.fullmatch(_form(line)) is not None
        variants[_form(line)].add(("" if number else line.text, round(line.base)))
    return {form for form, found in variants.items() if len(found) == 1}


def _apart(page: list[Line], often: set[str], usual: float) -> list[Line]:
    """Return the first lines of a page that other pages share, if a gap follows them."""
    for number in range(min(EDGE, len(page) - 1), 0, -1):
        inner, outer = page[number], page[number - 1]
        near = _is_below(*sorted((inner, outer), key=lambda line: -line.base))
        distance = abs(inner.base - outer.base) / outer.size
        heads = page[:number]
        if all(_form(line) in often for line in heads) and (not near or distance > 1.25 * usual):
            return heads
    return []


def _form(line: Line) -> str:
    return re.sub(r"\d+", "#", line.text)


def _assemble(pages: list[list[Line]], usual: float) -> tuple[str, list[int], list[int]]:
    """Join the lines of all pages; return the text, and the start of each page and line."""
    words = Counter(
        word
        for page in pages
        for line in page
        for word in re.findall(r"\w+(?:-\w+)*(?!\x02)", line.text.lower())
    )
    pieces: list[str] = []
    starts: list[int] = []
    lines: list[int] = []
    length = 0
    before: Line | None = None
    new_pages = 0  # pages that start at the next line
    for page in pages:
        between = _between_lines([line for line in page if line.kept], usual)
        new_pages += 1
        new_lines = 0  # lines that start at the next one that is kept
        for line in page:
            new_lines += 1
            if not line.kept:
                continue
            gap = next(between)
            if before is not None:
                if new_pages:
                    gap = " " if _continues(before, line) else "\n\n"
                if before.text.endswith(HYPHEN):
                    gap = _divided(before.text, line.text, words) if gap == " " else "-" + gap
                pieces.append(gap)
                length += len(gap)
            starts += [length] * new_pages
            lines += [length] * new_lines
            new_pages = new_lines = 0
            pieces.append(line.text.removesuffix(HYPHEN))
            length += len(pieces[-1])
            before = line
    starts += [length] * new_pages
    return "".join(pieces), starts, lines


def _divided(before: str, after: str, words: Counter[str]) -> str:
    """Return what joins a divided word: nothing, or the hyphen that it has elsewhere."""
    left = re.findall(r"\w+(?:-\w+)*", before.lower())
    right = re.match(r"\w+", after.lower())
    if not left or right is None:
        return "-"
    if after[0].isupper() or before.removesuffix(HYPHEN)[-1:].isdigit():
        return "-"
    hyphenated, joined = f"{left[-1]}-{right[0]}", f"{left[-1]}{right[0]}"
    return "-" if words[hyphenated] > words[joined] else ""


def _usual_distance(pages: list[list[Line]]) -> float:
    """Return the median distance between lines of a paragraph, in line heights."""
    found = [
        (above.base - below.base) / above.size
        for page in pages
        for above, below in pairwise(page)
        if _is_below(above, below)
    ]
    return statistics.median(found) if found else 1.5


def _is_below(above: Line, below: Line) -> bool:
    """Return whether a line is the next one of the same column, in a similar font size."""
    return (
        0.4 * above.size < above.base - below.base < 2.5 * above.size
        and _is_alike(above, below)
        and min(above.right, below.right) > max(above.left, below.left)
    )


def _is_alike(one: Line, other: Line) -> bool:
    return 0.85 < one.size / other.size < 1.18


def _between_lines(lines: list[Line], usual: float) -> Iterator[str]:
    """Yield the separator before each line: a space, a line end, or an empty line."""
    yield from [""] * bool(lines)
    begin = 0
    for number in range(1, len(lines) + 1):
        inside = number < len(lines) and _is_below(lines[number - 1], lines[number])
        if inside:
            continue
        block = lines[begin:number]
        for place in range(1, len(block)):
            yield _between(block, place, usual)
        if number < len(lines):
            above, below = lines[number - 1], lines[number]
            beside = abs(above.base - below.base) <= 0.4 * above.size and below.left >= above.left
            elsewhere = abs(above.base - below.base) > 2.5 * above.size  # the next column
            yield " " if beside or (elsewhere and _continues(above, below)) else "\n\n"
        begin = number


def _between(block: list[Line], place: int, usual: float) -> str:
    above, below = block[place - 1], block[place]
    if (above.base - below.base) / above.size > 1.25 * usual:
        return "\n\n"
    if above.text.endswith(HYPHEN):
        return " "
    ended = above.text.endswith(STOPS)
    room = max(line.right for line in block) - above.right
    word = below.text.split(maxsplit=1)[0]
    word_width = len(word) * (below.right - below.left) / len(below.text)
    forced = room > word_width + 0.3 * above.size
    left = min(line.left for line in block)
    if below.left > left + 0.8 * below.size and (forced or ended) and above.left < below.left:
        return "\n" if ITEM.match(above.text) and not ended else "\n\n"
    if LEADERS.search(above.text):
        return "\n"
    if ITEM.match(below.text) and (forced or ended or not word[0].isalnum()):
        return "\n"
    if not forced or (below.text[0].islower() and not ended):
        return " "
    return "\n\n" if ended else "\n"


def _continues(above: Line, below: Line) -> bool:
    """Return whether a sentence continues in the next column or on the next page."""
    continues = below.text[0].islower() and not above.text.endswith(STOPS)
    return continues and _is_alike(above, below)
