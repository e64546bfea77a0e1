"""Intervals of sequences."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, replace

from longbird.errors import InvalidTypeError, InvalidValueError

STRANDS = ("+", "-", ".")


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a sequence on one of its strands: 0-based, excluding its end.

    Positions are counted along the plus strand, whatever the strand is. On a circular sequence,
    the end may lie beyond its length; the interval then continues at the origin.

    Args:
        name: Name of the sequence.
        start: Position of the first base.
        end: Position after the last base.
        strand: "+", "-", or "." for none.

    Examples:
        >>> gene = Interval("chr1", 100, 112, "-")
        >>> len(gene), str(gene)
        (12, 'chr1:101-112(-)')
        >>> gene.position(0)  # on the minus strand, the first base is the right end
        111
    """

    name: str
    start: int
    end: int
    strand: str = "."

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidTypeError(f"expected the name of a sequence, received {self.name!r:.80}")
        for field in ("start", "end"):  # NumPy's integers become Python's
            object.__setattr__(self, field, operator.index(getattr(self, field)))
        if self.end < self.start:
            raise InvalidValueError(
                f"the end of an interval must not lie before its start; received start "
                f"{self.start} and end {self.end} on {self.name}"
            )
        if self.strand not in STRANDS:
            raise InvalidValueError(
                f"strand must be '+', '-' or '.'; received {self.strand!r:.80}"
            )

    @classmethod
    def parse(cls, text: str) -> Interval:
        """Parse the notation of genome browsers: 1-based, including the last base.

        Examples:
            >>> Interval.parse("chr1:1,001-2,000")
            Interval(name='chr1', start=1000, end=2000, strand='.')
            >>> Interval.parse("chr1:101-112(-)") == Interval("chr1", 100, 112, "-")
            True
        """
        found = re.fullmatch(r"(.+):([\d,]+)(?:-|\.\.)([\d,]+)(?:\(([+-])\))?", text.strip())
        first, last = (int(found[i].replace(",", "") or 0) for i in (2, 3)) if found else (0, 0)
        if found is None or not 1 <= first <= last:
            raise InvalidValueError(
                f"expected a place such as chr1:1001-2000, with the first base and the last; "
                f"received {text!r:.80}"
            )
        return cls(found[1], first - 1, last, found[4] or ".")

    def __len__(self) -> int:
        return self.end - self.start

    def __bool__(self) -> bool:
        return True  # even if it has no bases

    def __str__(self) -> str:
        """Return the notation of genome browsers: 1-based, including the last base."""
        strand = "" if self.strand == "." else f"({self.strand})"
        return f"{self.name}:{self.start + 1}-{self.end}{strand}"

    def position(self, base: int) -> int:
        """Return the position of a base that is counted in reading direction."""
        return self.end - 1 - base if self.strand == "-" else self.start + base

    def base(self, position: int) -> int:
        """Return the number of the base at a position, counted in reading direction."""
        return self.end - 1 - position if self.strand == "-" else position - self.start

    def part(self, start: int, end: int) -> Interval:
        """Return a part of the interval, counted in reading direction.

        Examples:
            >>> str(Interval("chr1", 100, 112, "-").part(0, 3))
            'chr1:110-112(-)'
        """
        if self.strand == "-":
            return replace(self, start=self.end - end, end=self.end - start)
        return replace(self, start=self.start + start, end=self.start + end)

    def opposite(self) -> Interval:
        """Return the same interval on the other strand, or itself if it has no strand."""
        return replace(self, strand={"+": "-", "-": "+", ".": "."}[self.strand])
