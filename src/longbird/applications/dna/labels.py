"""Selecting the features that are labels, and finding the bases that they cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from longbird.applications.dna.genomes import Feature, Genome, Interval, read_features
from longbird.applications.dna.genomes.labels import BIGWIG, is_bed, is_bedgraph
from longbird.errors import InvalidValueError

GENES = ("gene", "CDS", "mRNA", "tRNA", "rRNA", "ncRNA", "pseudogene", "exon")
"""Kinds of features outside of which a genome is intergenic."""


def features_of(
    files: Sequence[str | Path], genome: Genome, kinds: Sequence[str], usual: Sequence[str]
) -> list[Feature]:
    """Return the features of files that are labels.

    Args:
        files: GFF3, BED or GenBank files.
        genome: Genome that they belong to.
        kinds: Kinds of features to select; by default all of BED files, and the `usual` kinds of
            other files.
        usual: Default kinds.

    Raises:
        ValueError: There are none; the message lists the kinds in the files. Or a file has a
            signal instead of features.
    """
    if signals := [str(file) for file in files if is_signal(str(file))]:
        raise InvalidValueError(
            f"{', '.join(signals)} is a signal (bigWig or bedGraph), which `longbird dna finetune "
            "profile` learns from; expected features: BED, GFF3 or GenBank"
        )
    found = {file: read_features(file, genome) for file in dict.fromkeys(files)}
    chosen: list[Feature] = []
    for file, own in found.items():
        every = not kinds and is_bed(file)
        chosen += [each for each in own if every or each.kind in (kinds or usual)]
    if not chosen:
        there = sorted({each.kind for own in found.values() for each in own})
        raise InvalidValueError(
            f"{', '.join(map(str, found))} has no features of kind "
            f"{', '.join(sorted(kinds or usual))}; it has {', '.join(there[:20])}. Select others "
            "with `kind`"
        )
    return chosen


def is_whole(part: Interval, genome: Genome) -> bool:
    """Return whether a part covers a whole sequence, as the first line of annotations does."""
    return len(part) == genome.sequences[part.name].length


def is_signal(file: str) -> bool:
    """Return whether a file has a signal along a genome, rather than features."""
    with open(file, "rb") as opened:
        head = opened.read(4)
    return head in BIGWIG or is_bedgraph(file)


class Cover:
    """The bases of a genome that intervals cover, also across the origin of a circle."""

    def __init__(self, intervals: Iterable[Interval], genome: Genome) -> None:
        self.genome = genome
        found: dict[str, list[tuple[int, int]]] = {name: [] for name in genome.sequences}
        for interval in intervals:
            for piece in genome.pieces(interval):
                if len(piece):
                    found[piece.name].append((piece.start, piece.end))
        self._spans = {name: _merged(spans) for name, spans in found.items()}

    def bases(self, interval: Interval) -> np.ndarray:
        """Return which bases of an interval are covered, along the plus strand, bool [bases]."""
        return np.concatenate([self._piece(piece) for piece in self.genome.pieces(interval)])

    def _piece(self, piece: Interval) -> np.ndarray:
        starts, ends = self._spans[piece.name]
        covered = np.zeros(len(piece), dtype=bool)
        first = int(np.searchsorted(ends, piece.start, "right"))
        last = int(np.searchsorted(starts, piece.end, "left"))
        for start, end in zip(starts[first:last], ends[first:last], strict=True):
            covered[max(start - piece.start, 0) : end - piece.start] = True
        return covered

    def touches(self, interval: Interval) -> bool:
        """Return whether any base of an interval is covered."""
        for piece in self.genome.pieces(interval):
            starts, ends = self._spans[piece.name]
            at = int(np.searchsorted(ends, piece.start, "right"))
            if at < len(starts) and starts[at] < piece.end:
                return True
        return False

    def has(self, name: str, base: int) -> bool:
        """Return whether a base is covered."""
        starts, ends = self._spans[name]
        at = int(np.searchsorted(ends, base, "right"))
        return at < len(starts) and bool(starts[at] <= base)


def _merged(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Sort spans, and merge those that touch or overlap."""
    merged: list[list[int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    both = np.array(merged, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
