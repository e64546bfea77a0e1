"""Dividing a genome into the parts for training, validation and testing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from longbird.applications.dna.genomes import Contig, Genome, Interval
from longbird.errors import InvalidValueError

SHARE = 0.2
"""Share of the bases that is held out by default."""
MEASURED = 4_000_000
"""Maximum number of bases of validation windows; promoters are not limited."""
NONE = "none"
PLACE = re.compile(r"(.+):([\d,]+)-([\d,]+)")
"""Notation of a region: chr1:1-1,000."""


class Division:
    """A genome divided into held-out parts and the rest, with gaps between them.

    Args:
        genome: The genome.
        held: Texts for `stretches` of each part, "validation" or "test".
        gap: Number of bases on both sides of each held-out stretch that belong to no part.

    Attributes:
        spans: Intervals of each part on the plus strand; "train" is the rest.
    """

    def __init__(self, genome: Genome, held: dict[str, Sequence[str]], gap: int) -> None:
        self.genome, self.gap = genome, gap
        self.spans: dict[str, list[Interval]] = {"train": []}
        taken: dict[str, list[tuple[int, int, str]]] = {name: [] for name in genome.sequences}
        for part, texts in held.items():
            self.spans[part] = []
            for text in texts:
                for each in stretches(text, genome):
                    taken[each.name].append((each.start, each.end, part))
        for name, contig in genome.sequences.items():
            for span, part in _divided(contig, sorted(taken[name]), gap):
                self.spans[part].append(span)

    @classmethod
    def measuring(cls, genome: Genome, on: Sequence[Interval]) -> Division:
        """Return a division whose test part is a whole genome, or some stretches of it."""
        division = cls(genome, {}, 0)
        division.spans = {"test": _apart(on) or division.spans["train"]}
        return division

    def part_of(self, interval: Interval) -> str | None:
        """Return the part that contains an interval completely, or None."""
        contig = self.genome.contig(interval.name)
        for part, span in self._by_name.get(contig.name, ()):
            if _contains(span, interval, contig):
                return part
        return None

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[str, Interval]]]:
        """The spans and parts by sequence, of which an assembly may have 100,000."""
        found: dict[str, list[tuple[str, Interval]]] = {}
        for part, spans in self.spans.items():
            for span in spans:
                found.setdefault(span.name, []).append((part, span))
        return found

    def windows(self, part: str, size: int) -> Iterator[Interval]:
        """Yield the windows of a part; the last window of each span may be shorter.

        Of a large validation part, only evenly spaced windows are used.
        """
        every, number = self._every(part), 0
        for span in self.spans[part]:
            for start in range(span.start, span.end, size):
                if number % every == 0:
                    yield Interval(span.name, start, min(start + size, span.end), "+")
                number += 1

    def _every(self, part: str) -> int:
        """Return the step between the windows that are used."""
        bases = sum(map(len, self.spans[part]))
        return -(-bases // MEASURED) if part == "validation" and bases else 1

    def words(self) -> dict[str, str]:
        """Return a description of each part."""
        return {
            part: ", ".join(str(span).removesuffix("(+)") for span in spans[:4])
            + (f" and {len(spans) - 4:,} more stretches" if len(spans) > 4 else "")
            + (f" (one in {self._every(part)} windows)" if self._every(part) > 1 else "")
            for part, spans in self.spans.items()
        }


def names(text: str, genome: Genome) -> bool:
    """Return whether a text names a part of this genome, rather than of another."""
    return (
        any(
            name in known
            for name in (text, text.rpartition(":")[0])
            for known in (genome.sequences, genome.names.alias)
        )
        or bool(re.fullmatch(r"\d+/\d+", text))
        or is_file_of(text, genome)
    )


def is_file_of(text: str, genome: Genome) -> bool:
    """Return whether a text is the path or the file name of a genome, which means all of it."""
    return text in (genome.file, Path(genome.file).name)


def stretches(text: str, genome: Genome) -> list[Interval]:
    """Return the intervals for a sequence, chr1:1-1000, 5/5 of every sequence, or a file."""
    if text in genome.sequences or text in genome.names.alias:
        contig = genome.contig(text)
        return [Interval(contig.name, 0, contig.length, "+")]
    if is_file_of(text, genome):
        every = genome.sequences.values()
        return [Interval(each.name, 0, each.length, "+") for each in every]
    if share := re.fullmatch(r"(\d+)/(\d+)", text):
        which, many = int(share[1]), int(share[2])
        if not 1 <= which <= many:
            raise InvalidValueError(f"received {text}; expected a part such as 1/5 or 5/5")
        cut = [
            Interval(
                each.name, each.length * (which - 1) // many, each.length * which // many, "+"
            )
            for each in genome.sequences.values()
        ]
        return [each for each in cut if len(each)]
    if place := PLACE.fullmatch(text):
        contig = genome.contig(place[1])
        start, end = (int(place[each].replace(",", "")) for each in (2, 3))
        if not 1 <= start <= end <= contig.length:
            raise InvalidValueError(
                f"{text} is not a stretch of {contig.name}, which has the bases 1 to "
                f"{contig.length:,}"
            )
        return [Interval(contig.name, start - 1, end, "+")]
    genome.contig(text)  # raises an error that lists the names
    return []


def usual(genome: Genome, seed: int) -> list[str]:
    """Return what is held out by default: whole sequences, or the last fifth of each.

    Whole sequences are held out if none has more than half of the bases: up to a fifth of the
    bases, in the order of the hashes of their names.
    """
    lengths = {name: contig.length for name, contig in genome.sequences.items()}
    total = sum(lengths.values())
    if max(lengths.values()) > total / 2:
        return ["5/5"]

    def drawn(name: str) -> str:
        return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()

    chosen: list[str] = []
    held = 0
    for name in sorted(lengths, key=drawn):
        if held + lengths[name] <= max(SHARE * total, lengths[name]):
            chosen.append(name)
            held += lengths[name]
    return chosen


def _apart(intervals: Sequence[Interval]) -> list[Interval]:
    """Merge overlapping intervals."""
    apart: list[Interval] = []
    for each in sorted(intervals, key=lambda own: (own.name, own.start)):
        last = apart[-1] if apart else None
        if last is not None and last.name == each.name and each.start < last.end:
            apart[-1] = replace(last, end=max(last.end, each.end))
        else:
            apart.append(each)
    return apart


def _divided(
    contig: Contig, taken: list[tuple[int, int, str]], gap: int
) -> Iterator[tuple[Interval, str]]:
    name, length = contig.name, contig.length
    for (_, end, one), (start, _, other) in pairwise(taken):
        if start < end:
            raise InvalidValueError(
                f"{one} and {other} both have base {start + 1:,} of {name}: name stretches that "
                "do not overlap"
            )
    if not taken:
        yield Interval(name, 0, length, "+"), "train"
        return
    free = 0 if not contig.circular else taken[-1][1] - length + gap
    edges: list[tuple[int, int]] = []
    before = (
        taken[-1][2] if contig.circular else ""
    )  # on a circle, the last one precedes the first
    for start, end, part in taken:
        own = start if part == before or not before else max(start, free)
        edges.append((free, start - gap))
        if own < end:
            yield Interval(name, own, end, "+"), part
        free, before = end + gap, part
    if not contig.circular:
        edges.append((free, length))
    for start, end in edges:
        if start < end:
            moved = length if start < 0 else 0  # across the origin
            yield Interval(name, start + moved, end + moved, "+"), "train"


def _contains(span: Interval, interval: Interval, contig: Contig) -> bool:
    if not contig.circular:
        # Positions beyond the ends are N, and belong to the part that has the end.
        start, end = max(interval.start, 0), min(interval.end, contig.length)
        return span.start <= start and end <= span.end
    if len(span) == contig.length:
        return True
    return any(
        span.start <= interval.start + turn and interval.end + turn <= span.end
        for turn in (-contig.length, 0, contig.length)
    )
