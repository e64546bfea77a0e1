"""Scores along a genome as files that genome browsers open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from longbird.genomes.extra import need

if TYPE_CHECKING:
    from longbird.dna.scan import Track

ENDINGS = ("bed", "bedgraph", "gff3", "bw", "parquet")
DIGITS = 4
TYPES = {"coding": "CDS_region"}
"""What GFF3 calls it (the Sequence Ontology), where that is another word."""


def ending_of(file: Path) -> str:
    """What a file is to be, by its ending.

    Raises:
        ValueError: By another.
    """
    ending = file.suffix.lower().removeprefix(".")
    ending = {"bigwig": "bw", "bdg": "bedgraph", "gff": "gff3"}.get(ending, ending)
    if ending not in ENDINGS:
        raise ValueError(
            f"{file} ends in {file.suffix!r}, expected one of "
            f"{', '.join(f'.{each}' for each in ENDINGS)}"
        )
    return ending


class Found(NamedTuple):
    """A stretch whose scores reach the threshold."""

    name: str
    start: int
    end: int
    channel: int
    score: float


def found(track: Track) -> Iterator[Found]:
    """Stretches whose scores reach the threshold, by sequence, start and channel.

    Of promoters, the bin with the highest score of each stretch; otherwise all of it, with its
    mean score.
    """
    peaks = track.label == "promoter"
    waiting: list[Found] = []
    before = None
    going: dict[int, list[tuple[int, int, float]]] = {}

    def ended(channel: int, name: str) -> Iterator[Found]:
        bins = going.pop(channel, [])
        if not bins:
            return
        if peaks:
            start, end, score = max(bins, key=lambda each: each[2])
        else:
            start, end = bins[0][0], bins[-1][1]
            score = sum((b - a) * x for a, b, x in bins) / (end - start)
        yield Found(name, start, end, channel, score)

    def by_start(name: str | None) -> list[Found]:
        ready = sorted(waiting, key=lambda each: (each.start, each.channel))
        waiting.clear()
        return ready

    for sweep, starts, ends, scores in track.blocks():
        name = sweep.contig.name
        if before is not None and name != before:
            for channel in list(going):
                waiting.extend(ended(channel, before))
            yield from by_start(before)
        before = name
        over = np.nan_to_num(scores, nan=0.0) >= track.threshold
        for channel in range(len(track.channels)):
            own = over[:, channel]
            if channel in going and not (len(own) and own[0]):
                waiting.extend(ended(channel, name))
            at = np.flatnonzero(own)
            for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(at) else []:
                if run[0] and channel in going:
                    waiting.extend(ended(channel, name))
                bins = zip(
                    starts[run].tolist(), ends[run].tolist(), scores[run, channel].tolist(),
                    strict=True,
                )  # fmt: skip
                going.setdefault(channel, []).extend(bins)
                if run[-1] != len(own) - 1:
                    waiting.extend(ended(channel, name))
    if before is not None:
        for channel in list(going):
            waiting.extend(ended(channel, before))
        yield from by_start(before)


def _names(track: Track, each: Found) -> tuple[str, str]:
    """The name of what was found, and its strand."""
    channel = track.channels[each.channel]
    return (track.label, channel) if channel in ("+", "-") else (channel, ".")


def write_bed(track: Track, file: Path, channel: int | None) -> None:
    """BED of 6 columns: the score is a number up to 1000, as BED has it."""
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write(f'track name="{track.label}" description="longbird" useScore=1\n')
        for each in found(track):
            name, strand = _names(track, each)
            score = round(1000 * min(max(each.score, 0.0), 1.0))
            opened.write(f"{each.name}\t{each.start}\t{each.end}\t{name}\t{score}\t{strand}\n")


def write_gff3(track: Track, file: Path, channel: int | None) -> None:
    """GFF3, which counts from 1."""
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write("##gff-version 3\n")
        for contig in track.genome.sequences.values():
            opened.write(f"##sequence-region {_escaped(contig.name)} 1 {contig.length}\n")
        for number, each in enumerate(found(track), 1):
            name, strand = _names(track, each)
            kind = TYPES.get(name) or _escaped(name)
            opened.write(
                f"{_escaped(each.name)}\tlongbird\t{kind}\t{each.start + 1}\t{each.end}"
                f"\t{each.score:.{DIGITS}f}\t{strand}\t.\tID={_escaped(name)}{number}\n"
            )


def _escaped(text: str) -> str:
    return "".join(f"%{ord(x):02X}" if x in "\t\n\r%;=&, " else x for x in text)


def numbers(track: Track, channel: int | None) -> Iterator[tuple[str, np.ndarray, Any, Any]]:
    """Starts, ends and numbers of a channel, or the highest; equal neighbours are one."""
    for sweep, starts, ends, scores in track.blocks():
        values = scores[:, channel] if channel is not None else _highest(scores)
        values = np.round(values.astype(np.float64), DIGITS)
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


def write_bedgraph(track: Track, file: Path, channel: int | None) -> None:
    """Numbers of bins, in order and without overlaps."""
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write(f'track type=bedGraph name="{track.label}" viewLimits=0:1\n')
        for name, starts, ends, values in numbers(track, channel):
            lines = zip(starts.tolist(), ends.tolist(), values.tolist(), strict=True)
            opened.writelines(f"{name}\t{a}\t{b}\t{x:.{DIGITS}f}\n" for a, b, x in lines)


def write_bigwig(track: Track, file: Path, channel: int | None) -> None:
    """The same, by index."""
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


WRITERS: dict[str, Callable[[Track, Path, int | None], None]] = {
    "bed": write_bed,
    "bedgraph": write_bedgraph,
    "gff3": write_gff3,
    "bw": write_bigwig,
    "parquet": write_parquet,
}
