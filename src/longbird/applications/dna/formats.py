"""Scores along a genome as files that genome browsers open."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longbird.applications.dna.genomes.bed import is_heading
from longbird.applications.dna.genomes.extra import need
from longbird.applications.dna.genomes.labels import BIGWIG
from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from longbird.applications.dna.scan import Track

ENDINGS = ("bed", "bedgraph", "gff3", "bw", "parquet")
DIGITS = 4
"""Of a score that count."""
PROMOTER = "promoter"
"""What scores are of, where only the highest of a stretch counts."""
TYPES = {"coding": "CDS_region"}
"""What GFF3 calls it (the Sequence Ontology), where that is another word."""


def ending_of(file: Path) -> str:
    """What a file is to be, by its ending.

    Raises:
        ValueError: By another.
    """
    ending = file.suffix.lower().removeprefix(".")
    ending = {"bigwig": "bw", "bdg": "bedgraph", "bg": "bedgraph", "gff": "gff3"}.get(
        ending, ending
    )
    if ending not in ENDINGS:
        raise InvalidValueError(
            f"{file} ends in {file.suffix!r}, expected one of "
            f"{', '.join(f'.{each}' for each in ENDINGS)}"
        )
    return ending


def check_names(ending: str, names: Iterable[str]) -> None:
    """Raises if a kind of file cannot have the names of some sequences."""
    if ending in ("bed", "bedgraph"):
        for name in names:
            if is_heading(f"{name}\t0\t1"):
                raise InvalidValueError(
                    f"in .{ending}, lines of a sequence called {name} would be no data: write "
                    ".gff3, .bw or .parquet, or give it another name"
                )


class Found(NamedTuple):
    """A stretch whose scores reach the threshold."""

    name: str
    start: int
    end: int
    channel: int
    score: float


class Stretch(NamedTuple):
    """Bins side by side that reach the threshold; of promoters the best of them counts."""

    begin: int
    beyond: int
    start: int
    end: int
    total: float
    """The highest score, or the sum of those of all bases."""

    def joined(self, other: Stretch, peaks: bool) -> Stretch:
        """With the one that follows."""
        if not peaks:
            total = self.total + other.total
            return Stretch(self.begin, other.beyond, self.start, other.end, total)
        best = other if other.total > self.total else self
        return Stretch(self.begin, other.beyond, best.start, best.end, best.total)


def found(track: Track) -> Iterator[Found]:
    """Stretches whose scores reach the threshold, by sequence, start and channel.

    Of promoters, the bin with the highest score of each stretch, also over the origin of a
    circle; otherwise all of it, with its mean score, and over the origin in two pieces. Few are in
    memory at a time, however long a sequence or a stretch is.
    """
    circles = {each.contig.name for each in track.sweeps if each.contig.circular}
    lower = _lower_at_origins(track) if circles and track.label == PROMOTER else set[Found]()
    return (each for each, _ in _stretches(track) if each not in lower)


def _lower_at_origins(track: Track) -> set[Found]:
    """Of stretches that meet at the origin of a circle, the best bins that are not the best."""
    length = {
        each.contig.name: each.contig.length for each in track.sweeps if each.contig.circular
    }
    first: dict[tuple[str, int], Found] = {}
    lower: set[Found] = set()
    for each, (begin, end) in _stretches(track):
        if each.name not in length or (begin > 0 and end < length[each.name]):
            continue
        if begin == 0:
            first[each.name, each.channel] = each
        elif other := first.get((each.name, each.channel)):
            lower.add(min(each, other, key=lambda one: one.score))
    return lower


def _stretches(track: Track) -> Iterator[tuple[Found, tuple[int, int]]]:
    """What was found along each sequence, with the begin and the end of its stretch."""
    peaks = track.label == PROMOTER
    waiting: list[tuple[Found, tuple[int, int]]] = []
    going: dict[int, Stretch] = {}
    before = None

    def end(channel: int, name: str) -> None:
        begin, beyond, start, end, total = going.pop(channel)
        score = total if peaks else total / (end - start)
        waiting.append((Found(name, start, end, channel, score), (begin, beyond)))

    def ready(name: str, *, all_of_it: bool) -> list[tuple[Found, tuple[int, int]]]:
        """Those that nothing can come before any more, in order."""
        if all_of_it:
            for channel in [*going]:
                end(channel, name)
        first = min((each.begin for each in going.values()), default=None)
        chosen = [each for each in waiting if first is None or each[0].start < first]
        waiting[:] = [each for each in waiting if first is not None and each[0].start >= first]
        return sorted(chosen, key=lambda each: (each[0].start, each[0].channel))

    for sweep, starts, ends, scores in track.blocks():
        name = sweep.contig.name
        if before is not None and name != before:
            yield from ready(before, all_of_it=True)
        before = name
        over = np.nan_to_num(scores, nan=0.0) >= track.threshold
        for channel in range(len(track.channels)):
            own = scores[:, channel].astype(np.float64)
            edges = np.flatnonzero(np.diff(over[:, channel], prepend=False, append=False))
            if channel in going and not (len(edges) and edges[0] == 0):
                end(channel, name)
            for first, last in edges.reshape(-1, 2).tolist():
                begin, beyond = int(starts[first]), int(ends[last - 1])
                if peaks:
                    best = first + int(own[first:last].argmax())
                    at = int(starts[best]), int(ends[best])
                    new = Stretch(begin, beyond, *at, float(own[best]))
                else:
                    wide = ends[first:last] - starts[first:last]
                    total = float((wide * own[first:last]).sum())
                    new = Stretch(begin, beyond, begin, beyond, total)
                old = going.get(channel)
                going[channel] = new if old is None else old.joined(new, peaks)
                if last < len(own):
                    end(channel, name)
        yield from ready(name, all_of_it=False)
    if before is not None:
        yield from ready(before, all_of_it=True)


def _names(track: Track, each: Found) -> tuple[str, str]:
    """The name of what was found, and its strand."""
    channel = track.channels[each.channel]
    return (track.label, channel) if channel in ("+", "-") else (channel, ".")


def write_bed(track: Track, file: Path, channel: int | None) -> int:
    """BED of 6 columns: the score is a number up to 1000, as BED has it. Returns the places."""
    number = 0
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write(f'track name="{track.label}" description="longbird" useScore=1\n')
        for each in found(track):
            number += 1
            name, strand = _names(track, each)
            name = " ".join(name.split())  # a tab would be another column
            score = round(1000 * min(max(each.score, 0.0), 1.0))
            opened.write(f"{each.name}\t{each.start}\t{each.end}\t{name}\t{score}\t{strand}\n")
    return number


def write_gff3(track: Track, file: Path, channel: int | None) -> int:
    """GFF3, which counts from 1. Returns the places."""
    number = 0
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write("##gff-version 3\n")
        for contig in track.genome.sequences.values():
            opened.write(f"##sequence-region {_escaped(contig.name)} 1 {contig.length}\n")
        for number, each in enumerate(found(track), 1):
            name, strand = _names(track, each)
            kind = TYPES.get(name) or _escaped(name)
            opened.write(
                f"{_escaped(each.name)}\tlongbird\t{kind}\t{each.start + 1}\t{each.end}"
                f"\t{each.score:.{DIGITS}g}\t{strand}\t.\tID={_escaped(name)}{number}\n"
            )
    return number


def _escaped(text: str) -> str:
    """As GFF3 has it; what begins with > or # would be no feature.

    Examples:
        >>> _escaped("#1 of >2;")
        '%231%20of%20%3E2%3B'
    """
    return "".join(f"%{ord(x):02X}" if x in "%;=&,#> \x7f" or x < " " else x for x in text)


def numbers(track: Track, channel: int | None) -> Iterator[tuple[str, np.ndarray, Any, Any]]:
    """Starts, ends and numbers of a channel, or the highest; equal neighbours are one."""
    for sweep, starts, ends, scores in track.blocks():
        values = scores[:, channel] if channel is not None else _highest(scores)
        values = _rounded(values.astype(np.float64))
        there = ~np.isnan(values)
        starts, ends, values = starts[there], ends[there], values[there]
        if not len(values):
            continue
        new = np.ones(len(values), dtype=bool)
        new[1:] = (values[1:] != values[:-1]) | (starts[1:] != ends[:-1])
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(values)) - 1
        yield sweep.contig.name, starts[first], ends[last], values[first]


def _highest(scores: np.ndarray) -> np.ndarray:
    return np.fmax.reduce(scores, axis=1)


def _rounded(values: np.ndarray) -> np.ndarray:
    """To digits that count, since scores in a whole genome may all be small.

    Examples:
        >>> _rounded(np.array([0.123456, 0.000123456, 0.0])).tolist()
        [0.1235, 0.0001235, 0.0]
    """
    scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.maximum(values, 1e-30))))
    return np.round(values * scale) / scale


def write_bedgraph(track: Track, file: Path, channel: int | None) -> None:
    """Numbers of bins, in order and without overlaps."""
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write(f'track type=bedGraph name="{track.label}" viewLimits=0:1\n')
        for name, starts, ends, values in numbers(track, channel):
            lines = zip(starts.tolist(), ends.tolist(), values.tolist(), strict=True)
            opened.writelines(f"{name}\t{a}\t{b}\t{x:.{DIGITS}g}\n" for a, b, x in lines)


def write_bigwig(track: Track, file: Path, channel: int | None) -> None:
    """The same, by index.

    Raises:
        OSError: The disk is full. pyBigWig only prints that; a whole file ends as it begins.
    """
    opened = need("pyBigWig", "writing bigWig").open(str(file), "w")
    try:
        sizes = [(each.name, each.length) for each in track.genome.sequences.values()]
        opened.addHeader(sizes)
        for name, starts, ends, values in numbers(track, channel):
            opened.addEntries(
                [name] * len(starts), starts.tolist(), ends=ends.tolist(), values=values.tolist()
            )
    finally:
        opened.close()
    with file.open("rb") as written:
        first = written.read(4)
        written.seek(-4, os.SEEK_END)
        last = written.read(4)
    if first not in BIGWIG or last != first:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(file))


def write_parquet(track: Track, file: Path, channel: int | None) -> None:
    """All scores: sequence, start, end and a column for each channel."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"{track.label} {each}" if each in ("+", "-") else each for each in track.channels]
    types: Any = [("sequence", pa.string()), ("start", pa.int64()), ("end", pa.int64())]
    schema = pa.schema([*types, *((name, pa.float32()) for name in names)])
    with pq.ParquetWriter(file, schema) as writer:
        for sweep, starts, ends, scores in track.blocks():
            columns = [[sweep.contig.name] * len(starts), starts, ends, *scores.T.copy()]
            arrays = [pa.array(x, each.type) for x, each in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


WRITERS: dict[str, Callable[[Track, Path, int | None], int | None]] = {
    "bed": write_bed,
    "bedgraph": write_bedgraph,
    "gff3": write_gff3,
    "bw": write_bigwig,
    "parquet": write_parquet,
}
