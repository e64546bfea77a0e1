"""Files for genome browsers and tables that a scan writes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longbird.applications.dna.genomes.bed import is_heading
from longbird.applications.dna.genomes.extra import need
from longbird.applications.dna.genomes.labels import BIGWIG
from longbird.applications.dna.scanning.calls import CalledStretch, CallSettings, calls
from longbird.applications.dna.scanning.track import Track
from longbird.errors import InvalidValueError

ONE_CHANNEL = ("bedgraph", "bw")
"""Formats that have one number for each bin."""
DIGITS = 4
"""Significant digits of a score."""
TYPES = {"coding": "CDS_region"}
"""Terms of the Sequence Ontology for labels that are not terms themselves."""


@dataclass(frozen=True)
class Content:
    """What a scan writes.

    Attributes:
        track: The scores.
        calls: How scores become calls.
        channel: Channel that formats with one number for each bin have; None for the highest of
            all.
    """

    track: Track
    calls: CallSettings
    channel: int | None


def check_names(ending: str, names: Iterable[str]) -> None:
    """Raise if a format cannot represent the names of some sequences."""
    if ending in ("bed", "bedgraph"):
        for name in names:
            if is_heading(f"{name}\t0\t1"):
                raise InvalidValueError(
                    f"lines of a sequence called {name} would be headings in .{ending}: write "
                    ".gff3, .bw or .parquet, or rename the sequence"
                )


def _name_and_strand(track: Track, call: CalledStretch) -> tuple[str, str]:
    channel = track.channels[call.channel]
    return (track.label, channel) if channel in ("+", "-") else (channel, ".")


def write_bed(content: Content, file: Path) -> int:
    """Write BED with 6 columns, scores from 0 to 1000; return the number of calls."""
    count = 0
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write(f'track name="{content.track.label}" description="longbird" useScore=1\n')
        for call in calls(content.track, content.calls):
            count += 1
            name, strand = _name_and_strand(content.track, call)
            name = " ".join(name.split())  # a tab would begin another column
            score = round(1000 * min(max(call.score, 0.0), 1.0))
            opened.write(f"{call.name}\t{call.start}\t{call.end}\t{name}\t{score}\t{strand}\n")
    return count


def write_gff3(content: Content, file: Path) -> int:
    """Write GFF3, whose positions are 1-based; return the number of calls."""
    count = 0
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write("##gff-version 3\n")
        for contig in content.track.genome.sequences.values():
            opened.write(f"##sequence-region {_escaped(contig.name)} 1 {contig.length}\n")
        for count, call in enumerate(calls(content.track, content.calls), 1):
            name, strand = _name_and_strand(content.track, call)
            kind = TYPES.get(name) or _escaped(name)
            opened.write(
                f"{_escaped(call.name)}\tlongbird\t{kind}\t{call.start + 1}\t{call.end}"
                f"\t{call.score:.{DIGITS}g}\t{strand}\t.\tID={_escaped(name)}{count}\n"
            )
    return count


def _escaped(text: str) -> str:
    """Escape text for GFF3, where a line that begins with > or # is not a feature.

    Examples:
        >>> _escaped("#1 of >2;")
        '%231%20of%20%3E2%3B'
    """
    return "".join(f"%{ord(x):02X}" if x in "%;=&,#> \x7f" or x < " " else x for x in text)


def intervals(content: Content) -> Iterator[tuple[str, np.ndarray, Any, Any]]:
    """Yield starts, ends and values of each sequence, block by block; equal neighbours are one."""
    for sweep, (starts, ends, scores) in content.track.blocks():
        channel = content.channel
        values = np.fmax.reduce(scores, axis=1) if channel is None else scores[:, channel]
        values = _rounded(values.astype(np.float64))
        known = ~np.isnan(values)
        starts, ends, values = starts[known], ends[known], values[known]
        if not len(values):
            continue
        new = np.ones(len(values), dtype=bool)
        new[1:] = (values[1:] != values[:-1]) | (starts[1:] != ends[:-1])
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(values)) - 1
        yield sweep.contig.name, starts[first], ends[last], values[first]


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round to significant digits, since all scores of a genome may be small.

    Examples:
        >>> _rounded(np.array([0.123456, 0.000123456, 0.0])).tolist()
        [0.1235, 0.0001235, 0.0]
    """
    scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.maximum(values, 1e-30))))
    return np.round(values * scale) / scale


def write_bedgraph(content: Content, file: Path) -> None:
    """Write bedGraph."""
    with file.open("w", encoding="utf-8", newline="\n") as opened:
        opened.write(f'track type=bedGraph name="{content.track.label}" viewLimits=0:1\n')
        for name, starts, ends, values in intervals(content):
            lines = zip(starts.tolist(), ends.tolist(), values.tolist(), strict=True)
            opened.writelines(f"{name}\t{a}\t{b}\t{x:.{DIGITS}g}\n" for a, b, x in lines)


def write_bigwig(content: Content, file: Path) -> None:
    """Write bigWig.

    Raises:
        OSError: The disk is full. pyBigWig only prints that; a complete file ends as it begins.
    """
    opened = need("pyBigWig", "writing bigWig").open(str(file), "w")
    try:
        sequences = content.track.genome.sequences.values()
        opened.addHeader([(each.name, each.length) for each in sequences])
        for name, starts, ends, values in intervals(content):
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


def write_parquet(content: Content, file: Path) -> None:
    """Write a table with the sequence, start and end of each bin and a column per channel."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    track = content.track
    names = [f"{track.label} {each}" if each in ("+", "-") else each for each in track.channels]
    types: Any = [("sequence", pa.string()), ("start", pa.int64()), ("end", pa.int64())]
    schema = pa.schema([*types, *((name, pa.float32()) for name in names)])
    with pq.ParquetWriter(file, schema) as writer:
        for sweep, (starts, ends, scores) in track.blocks():
            columns = [[sweep.contig.name] * len(starts), starts, ends, *scores.T.copy()]
            arrays = [pa.array(x, each.type) for x, each in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


WRITERS: dict[str, Callable[[Content, Path], int | None]] = {
    "bed": write_bed,
    "bedgraph": write_bedgraph,
    "gff3": write_gff3,
    "bw": write_bigwig,
    "parquet": write_parquet,
}
