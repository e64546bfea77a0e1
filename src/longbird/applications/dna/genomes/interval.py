"""A stretch of a genome."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass, replace

from longbird.errors import InvalidTypeError, InvalidValueError

STRANDS = ("+", "-", ".")


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of a sequence on one of its strands: 0-based, without its end.

    Positions always count along the plus strand, whatever the strand is. On a circular sequence
    the end may lie beyond its length, and the stretch then goes on at the origin.

    Args:
        name: Of the sequence.
        start: Of the first base.
        end: After the last base.
        strand: "+", "-", or "." where it has none.

    Examples:
        >>> gene = Interval("chr1", 100, 112, "-")
        >>> len(gene), str(gene)
        (12, 'chr1:101-112(-)')
        >>> gene.position(0)  # of the first base that is read: the right end
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
        """Reads what people write: 1-based, with its last base, and commas in the numbers.

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
        return True  # also where it has no bases

    def __str__(self) -> str:
        """As people and genome browsers write it: 1-based, with its last base."""
        strand = "" if self.strand == "." else f"({self.strand})"
        return f"{self.name}:{self.start + 1}-{self.end}{strand}"

    def position(self, base: int) -> int:
        """Where in the sequence a base lies, counted from the one that is read first."""
        return self.end - 1 - base if self.strand == "-" else self.start + base

    def base(self, position: int) -> int:
        """The other way round: which base, counted from the first that is read, lies there."""
        return self.end - 1 - position if self.strand == "-" else position - self.start

    def part(self, start: int, end: int) -> Interval:
        """A stretch of this one, counted in bases from the one that is read first.

        Examples:
            >>> str(Interval("chr1", 100, 112, "-").part(0, 3))
            'chr1:110-112(-)'
        """
        if self.strand == "-":
            return replace(self, start=self.end - end, end=self.end - start)
        return replace(self, start=self.start + start, end=self.start + end)

    def opposite(self) -> Interval:
        """The same stretch of the other strand; of one without a strand, itself."""
        return replace(self, strand={"+": "-", "-": "+", ".": "."}[self.strand])
