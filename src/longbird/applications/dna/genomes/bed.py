"""Reading BED, whose positions are 0-based and exclude the end, like those of `Interval`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from longbird.applications.dna.genomes.raw import Raw
from longbird.errors import InvalidValueError

KIND = "region"
HEADINGS = ("track", "browser")


def columns_of(line: str) -> list[str]:
    """Return the columns of a line, separated by tabs, or by spaces if there are no tabs."""
    return line.split("\t") if "\t" in line else line.split()


def is_heading(line: str) -> bool:
    r"""Return whether a line is a comment or describes how to draw the following lines.

    Examples:
        >>> is_heading("track name=peaks"), is_heading("# a remark"), is_heading("track1\t5\t9")
        (True, True, False)
    """
    words = columns_of(line)[:2]
    return line.startswith("#") or (
        line.startswith(HEADINGS)
        and words[0].split()[0] in HEADINGS
        and not words[-1].isdecimal()  # a sequence of exactly that name
    )


def is_row(columns: list[str]) -> bool:
    """Return whether a line has a start and an end, even if they are invalid."""
    return len(columns) >= 3 and all(each.removeprefix("-").isdecimal() for each in columns[1:3])


def read(file: str, lines: Iterable[tuple[int, str]]) -> Iterator[Raw]:
    """Yield features; columns 10 to 12 are parts, and columns from 7 on are attributes."""
    width, numbers = 0, True
    for number, line in lines:
        if not line.strip() or is_heading(line):
            continue
        columns, where = columns_of(line), f"{file}, line {number}"
        if len(columns) < 3 or not (columns[1].isdecimal() and columns[2].isdecimal()):
            raise InvalidValueError(
                f"{where}: expected the name of a sequence, a start and an end, as BED has, both "
                f"counted from 0 and not negative; received {line!r:.80}"
            )
        if width and len(columns) != width:
            raise InvalidValueError(
                f"{where}: expected {width} columns as in the lines before, received "
                f"{len(columns)}. If the file was truncated here, copy or download it again"
            )
        width = len(columns)
        numbers = numbers and width == 4 and _is_number(columns[3])
        yield _feature(columns, where)
    if width and numbers:
        raise InvalidValueError(
            f"{file} has numbers in its fourth and last column, as bedGraph has, where BED has "
            "names. If they are the values of a signal, let the file end in .bedgraph; if they "
            "are names, put a letter before each"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _feature(columns: list[str], where: str) -> Raw:
    start, end = int(columns[1]), int(columns[2])
    if end < start:
        raise InvalidValueError(f"{where}: the end {end} lies before the start {start}")
    id_, score, strand = [*columns[3:6], *["."] * 3][:3]
    if strand not in ("+", "-", "."):
        raise InvalidValueError(
            f"{where}: expected a strand, +, - or ., in column 6; received {strand!r}"
        )
    try:
        number = None if score in (".", "") else float(score)
    except ValueError:
        raise InvalidValueError(
            f"{where}: expected a score in column 5, or '.' for none; received {score!r}"
        ) from None
    parts = [(start, end, strand)]
    if len(columns) >= 12:
        parts = [(a, b, strand) for a, b in _blocks(columns, start, end, where)]
    extra = {f"column{7 + i}": value for i, value in enumerate(columns[6:])}
    return Raw(
        columns[0],
        parts,
        where,
        KIND,
        None if id_ in (".", "") else id_,
        number,
        extra,
        [None] * len(parts),
    )


def _blocks(columns: list[str], start: int, end: int, where: str) -> list[tuple[int, int]]:
    try:
        count = int(columns[9])
        sizes, starts = (
            [int(value) for value in text.split(",") if value] for text in columns[10:12]
        )
        blocks = [(start + a, start + a + size) for size, a in zip(sizes, starts, strict=True)]
        sound = len(blocks) == count >= 1 and blocks[0][0] == start and blocks[-1][1] == end
        sound = sound and all(size > 0 for size in sizes)
        sound = sound and all(a[1] <= b[0] for a, b in pairwise(blocks))
    except ValueError:
        blocks, sound = [], False
    if not sound:
        raise InvalidValueError(
            f"{where}: expected blocks that begin and end with the feature in columns 10 to 12 "
            f"(number, sizes, starts); received {columns[9:12]}"
        )
    return blocks
