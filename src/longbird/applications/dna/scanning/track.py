"""Scores along a genome, read from the disk in blocks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longbird.applications.dna.genomes import Genome, Interval
from longbird.applications.dna.sweeps import Sweep
from longbird.errors import InvalidValueError


class Bins(NamedTuple):
    """Consecutive bins of one sequence."""

    starts: np.ndarray
    ends: np.ndarray
    scores: np.ndarray
    """[bins, channels]; NaN where the sequence has nothing but N."""

    def overlapping(self, region: Interval) -> Bins:
        """Return the bins that overlap a region."""
        inside = (self.ends > region.start) & (self.starts < region.end)
        return Bins(*(values[inside] for values in self))


@dataclass(frozen=True)
class Track:
    """Scores along a genome, bin by bin, as a scan stores them on the disk.

    Attributes:
        genome: The genome.
        sweeps: How each sequence was scanned, in the order of the genome.
        scores: float32 [bins of all sequences, channels].
        channels: Names of the channels: "+" and "-" where these are strands.
        label: What the scores are of, such as "coding".
        threshold: Lowest score of what is called.
        shift: Added to the logits of the scores; a number, or [channels].
    """

    genome: Genome
    sweeps: Sequence[Sweep]
    scores: np.ndarray
    channels: tuple[str, ...]
    label: str
    threshold: float
    shift: Any = 0.0

    def blocks(self, size: int = 2**16) -> Iterator[tuple[Sweep, Bins]]:
        """Return the bins of each sequence, at most `size` at a time."""
        return ((sweep, bins) for sweep, bins, _ in self.smoothed_blocks(0, size))

    def smoothed_blocks(
        self, smoothing: int, size: int = 2**16
    ) -> Iterator[tuple[Sweep, Bins, np.ndarray]]:
        """Yield the same blocks, each with a moving average of its scores.

        The average is centered, crosses the origin of a circular sequence, and leaves out bins
        without a score.

        Args:
            smoothing: Bases that are averaged over; less than three bins leave scores unchanged.
            size: Maximum number of bins in a block.
        """
        for sweep, offset, count in self._sequences():
            inner = min(1, count - 1)  # the first and the last bin may have another width
            start, end = (int(edge[0]) for edge in sweep.edges(inner, inner + 1))
            half = min(smoothing // (end - start) // 2, count)
            for first in range(0, count, size):
                last = min(first + size, count)
                around = np.arange(first - half, last + half)
                outside = (around < 0) | (around >= count)
                scores = shifted(self.scores[offset + around % count], self.shift)
                if not sweep.contig.circular:
                    scores[outside] = np.nan
                own = scores[half : half + last - first]
                bins = Bins(*sweep.edges(first, last), own)
                yield sweep, bins, moving_average(scores, half) if half else own

    def count_scored(self) -> int:
        """Return the number of bins that have a score."""
        return sum(int((~np.isnan(bins.scores)).any(1).sum()) for _, bins in self.blocks())

    def region(self, region: Interval) -> Bins:
        """Return the bins that a region overlaps."""
        for sweep, offset, _ in self._sequences():
            if sweep.contig.name == region.name:
                low, high = jobs_of(sweep, region)
                first, last = sweep.first_bin(low), sweep.first_bin(high)
                scores = np.array(self.scores[offset + first : offset + last])
                bins = Bins(*sweep.edges(first, last), shifted(scores, self.shift))
                return bins.overlapping(region)
        raise InvalidValueError(f"{self.genome.file} has no sequence {region.name}")

    def _sequences(self) -> Iterator[tuple[Sweep, int, int]]:
        """Yield the sweep of each sequence, its first row in `scores`, and its number of bins."""
        offset = 0
        for sweep in self.sweeps:
            count = sweep.first_bin(sweep.jobs)
            yield sweep, offset, count
            offset += count


def moving_average(scores: np.ndarray, half: int) -> np.ndarray:
    """Average each score with `half` scores on both sides, NaN left out.

    Args:
        scores: [bins + 2 * half, channels].
        half: Number of scores on each side.

    Returns:
        [bins, channels]; NaN where the score in the middle is NaN.

    Examples:
        >>> moving_average(np.array([[0.0], [1.0], [2.0], [np.nan], [4.0]]), 1).ravel()
        array([1. , 1.5, nan])
    """
    known = ~np.isnan(scores)

    def window_sums(values: np.ndarray) -> np.ndarray:
        sums = np.cumsum(np.pad(values.astype(np.float64), ((1, 0), (0, 0))), axis=0)
        return sums[2 * half + 1 :] - sums[: -2 * half - 1]

    counts = np.maximum(window_sums(known), 1)
    means = window_sums(np.where(known, scores, 0)) / counts
    return np.where(known[half : len(scores) - half], means, np.nan)


def around_origin(region: Interval, genome: Genome, read: Callable[[Interval], Bins]) -> Bins:
    """Read the bins of a region; those after the origin of a circle continue its positions."""
    length = genome.sequences[region.name].length
    pieces = [read(piece) for piece in genome.pieces(region)]
    turned = [
        Bins(bins.starts + turn, bins.ends + turn, bins.scores)
        for turn, bins in zip((0, length), pieces, strict=False)
    ]
    return Bins(*(np.concatenate(values) for values in zip(*turned, strict=True)))


def jobs_of(sweep: Sweep, region: Interval) -> tuple[int, int]:
    """Return the range of jobs that score a region, in whole chunks."""

    def start(job: int) -> int:
        first = sweep.first_bin(job)
        return int(sweep.edges(first, first + 1)[0][0])

    low = max(0, bisect_right(range(sweep.jobs), region.start, key=start) - 1)
    high = bisect_left(range(sweep.jobs), region.end, key=start)
    size = sweep.at_once
    return low // size * size, min(-(-high // size) * size, sweep.jobs)


def logit(probability: Any) -> np.ndarray:
    """Return the log odds of a probability."""
    return np.log(probability) - np.log1p(-np.asarray(probability))


def shifted(scores: np.ndarray, shift: Any) -> np.ndarray:
    """Add a shift to the logits of scores."""
    if not np.any(shift):
        return scores
    inside = np.clip(scores.astype(np.float64), 1e-9, 1 - 1e-9)
    return (1 / (1 + np.exp(-logit(inside) - shift))).astype(np.float32)
