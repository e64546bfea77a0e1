"""The windows in which a scan reads a sequence, and the bins that get scores.

Windows are symmetric, so that a sequence and its reverse complement are read in the same windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from longbird.applications.dna.genomes import Contig, Genome, Interval
from longbird.applications.dna.genomes.letters import opposite

Scores = Callable[[list[str]], list[np.ndarray]]
"""Function that returns an array of scores for each window."""
STARTS_AT_ONCE, WINDOWS_AT_ONCE, BASES_AT_ONCE = 256, 8, 2**15
NO_BASE = "-"
"""Fills the last bin of a sequence, so that bins are the same from both ends of a window."""


def bases_around(genome: Genome, window: Interval) -> str:
    """Return the bases of a window: N beyond linear ends, and several rounds of small circles."""
    contig = genome.contig(window.name)
    if not contig.circular or len(window) <= contig.length:
        return genome.bases(window, pad=True)
    once = genome.bases(Interval(contig.name, 0, contig.length, "+"))
    first = window.start % contig.length
    rounds = once * (1 + (first + len(window)) // contig.length)
    bases = rounds[first : first + len(window)]
    return opposite(bases) if window.strand == "-" else bases


class Sweep(Protocol):
    """The jobs of scoring one sequence, in order; a job scores one or several bins.

    Attributes:
        contig: The sequence.
        jobs: Number of jobs.
        at_once: Number of jobs that are run together.
    """

    contig: Contig
    jobs: int
    at_once: int

    def first_bin(self, job: int) -> int:
        """Return the first bin that a job scores; for `jobs`, the number of bins."""
        ...

    def edges(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the starts and the ends of bins in the sequence."""
        ...

    def run(self, scores: Scores, genome: Genome, first: int, last: int) -> np.ndarray:
        """Return the scores of some jobs, float32 [bins, channels]; NaN if a window has only N."""
        ...


@dataclass
class Starts:
    """Windows at equally spaced starts, on both strands.

    The starts are the same for the reverse complement, which is possible if the step is odd, or
    the number of bases. A sequence that is shorter than a step has a window at every base.
    """

    contig: Contig
    step: int
    window_at: Callable[[str, int, str], Interval]
    at_once: int = STARTS_AT_ONCE

    def __post_init__(self) -> None:
        last = self.contig.length - 1
        if last < self.step:  # an even number of bases has none in the middle
            self.step = 1
        if self.step % 2:
            self.first = (
                last * ((self.step + 1) // 2) % self.step
            )  # half of `last`, modulo the odd step
        else:
            self.first = last % self.step // 2
        self.jobs = (last - self.first) // self.step + 1

    def first_bin(self, job: int) -> int:
        """See `Sweep`."""
        return job

    def edges(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Return bins around the starts; the first and the last extend to the ends."""
        bins = np.arange(first, last, dtype=np.int64)
        starts = self.first + bins * self.step - self.step // 2
        ends = starts + self.step
        starts, ends = np.maximum(starts, 0), np.minimum(ends, self.contig.length)
        starts[bins == 0] = 0
        ends[bins == self.jobs - 1] = self.contig.length
        return starts, ends

    def run(self, scores: Scores, genome: Genome, first: int, last: int) -> np.ndarray:
        """See `Sweep`."""
        found = np.full((last - first, 2), np.nan, np.float32)
        if self._all_n(genome, first, last):
            return found
        windows: list[str] = []
        places: list[tuple[int, int]] = []
        for job in range(first, last):
            base = self.first + job * self.step
            for channel, strand in enumerate("+-"):
                bases = bases_around(genome, self.window_at(self.contig.name, base, strand))
                if bases.strip("N"):
                    windows.append(bases)
                    places.append((job - first, channel))
        for place, score in zip(places, scores(windows), strict=True):
            found[place] = score
        return found

    def _all_n(self, genome: Genome, first: int, last: int) -> bool:
        """Return whether the windows of some jobs have only N, as in centromeres."""
        ends = [
            self.window_at(self.contig.name, self.first + job * self.step, strand)
            for job in (first, last - 1)
            for strand in "+-"
        ]
        low, high = min(each.start for each in ends), max(each.end for each in ends)
        return not bases_around(genome, Interval(self.contig.name, low, high, "+")).strip("N")


@dataclass
class Tiles:
    """Overlapping windows, of which only the core is scored, with context on both sides.

    On a circle, the context crosses the origin, several times if the circle is small.

    Args:
        contig: The sequence.
        window: Number of bases of a window.
        bin: Number of bases that share a score.
        channels: Number of scores of a bin.
    """

    contig: Contig
    window: int
    bin: int
    channels: int

    def __post_init__(self) -> None:
        self.at_once = max(WINDOWS_AT_ONCE, BASES_AT_ONCE // self.window)
        self.bins = -(-self.contig.length // self.bin)
        core = max(1, self.window // 2 // self.bin)
        alone = self.contig.length <= self.window and not self.contig.circular
        cores = 1 if alone else -(-self.bins // core)  # on a circle, context is on both sides
        self.jobs = min(
            cores + 1 - cores % 2, self.bins
        )  # odd, so that no border is in the middle
        while 1 < self.jobs < self.bins and self._middle() > core:  # rounding can make it longer
            self.jobs = min(self.jobs + 2, self.bins)
        self.margin = max(0, (self.window - core * self.bin) // 2 // self.bin * self.bin)

    def _middle(self) -> int:
        """Return the number of bins of the core in the middle."""
        middle = self.jobs // 2
        return self.first_bin(middle + 1) - self.first_bin(middle)

    def first_bin(self, job: int) -> int:
        """Return the start of a core; cores are the same from both ends."""
        if 2 * job <= self.jobs:
            return job * self.bins // self.jobs
        return self.bins - (self.jobs - job) * self.bins // self.jobs

    def edges(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Sweep`."""
        starts = np.arange(first, last, dtype=np.int64) * self.bin
        return starts, np.minimum(starts + self.bin, self.contig.length)

    def run(self, scores: Scores, genome: Genome, first: int, last: int) -> np.ndarray:
        """See `Sweep`."""
        begin = self.first_bin(first)
        found = np.full((self.first_bin(last) - begin, self.channels), np.nan, np.float32)
        windows: list[str] = []
        places: list[tuple[int, int, int]] = []
        for job in range(first, last):
            core = self.first_bin(job), self.first_bin(job + 1)
            window, before = self._window(genome, *core)
            if window.strip(f"N{NO_BASE}"):
                windows.append(window)
                places.append((*core, before))
        for (low, high, before), own in zip(places, scores(windows), strict=True):
            found[low - begin : high - begin] = own[before : before + high - low]
        return found

    def _window(self, genome: Genome, low: int, high: int) -> tuple[str, int]:
        """Return a core with its context in whole bins, and the number of bins before the core."""
        start, end = low * self.bin, min(high * self.bin, self.contig.length)
        left, right = start - self.margin, end + self.margin
        if not self.contig.circular:
            left, end = max(left, 0), min(right, self.contig.length)
            right = end
        bases = bases_around(genome, Interval(self.contig.name, left, right, "+"))
        cut = end - left
        short = NO_BASE * (-cut % self.bin)
        return bases[:cut] + short + bases[cut:], (start - left) // self.bin
