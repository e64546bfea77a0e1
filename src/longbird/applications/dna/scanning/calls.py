"""Calls: the stretches of a genome whose scores reach the threshold."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from longbird.applications.dna.scanning.track import Bins, Track
from longbird.applications.dna.settings import ScanSettings


@dataclass(frozen=True)
class CallSettings:
    """How scores become calls.

    Attributes:
        smoothing: Bases over which scores are averaged before they are compared with the
            threshold.
        merge_gap: Longest gap, in bases, over which two stretches are merged.
        minimum_length: Shortest stretch that is called, in bases.
        peaks: Whether only the highest bin of each stretch is called.
    """

    smoothing: int = 0
    merge_gap: int = 0
    minimum_length: int = 0
    peaks: bool = False

    @classmethod
    def of(cls, label: str, settings: ScanSettings) -> CallSettings:
        """Return the defaults for a label, except for options that are set.

        Examples:
            >>> CallSettings.of("promoter", ScanSettings("dna-scan", (), merge_gap=5))
            CallSettings(smoothing=0, merge_gap=5, minimum_length=0, peaks=True)
        """
        names = ("smoothing", "merge_gap", "minimum_length")
        chosen = {name: getattr(settings, name) for name in names}
        given = {name: value for name, value in chosen.items() if value is not None}
        return replace(DEFAULTS.get(label, cls()), **given)


DEFAULTS = {
    "coding": CallSettings(smoothing=101, merge_gap=30, minimum_length=90),
    "promoter": CallSettings(peaks=True),
}
"""Defaults by label. The scores of single bases flicker around the threshold and are smoothed."""


@dataclass(frozen=True)
class CalledStretch:
    """A stretch of one channel.

    Attributes:
        name: Name of the sequence.
        start: First base, counted from 0; of a promoter, that of the highest bin.
        end: End of the call, exclusive.
        channel: Number of the channel.
        score: Mean score of all bases of the stretch; of a promoter, the highest score.
        extent: Start and end of the whole stretch.
    """

    name: str
    start: int
    end: int
    channel: int
    score: float
    extent: tuple[int, int]

    @property
    def length(self) -> int:
        """Number of bases of the whole stretch."""
        return self.extent[1] - self.extent[0]


def calls(track: Track, settings: CallSettings) -> Iterator[CalledStretch]:
    """Yield the calls of a track, ordered by sequence, start and channel.

    A stretch that crosses the origin of a circular sequence is one promoter, or else two calls
    whose common length counts. Few calls are in memory at a time.
    """
    dropped, kept = _at_origins(track, settings)
    for call in _stretches(track, settings):
        if call not in dropped and (call.length >= settings.minimum_length or call in kept):
            yield call


def _at_origins(
    track: Track, settings: CallSettings
) -> tuple[set[CalledStretch], set[CalledStretch]]:
    """Return the calls next to origins that are dropped, and those that are kept though short."""
    lengths = {
        each.contig.name: each.contig.length for each in track.sweeps if each.contig.circular
    }
    if not lengths or not (settings.peaks or settings.minimum_length):
        return set(), set()
    first: dict[tuple[str, int], CalledStretch] = {}
    last: dict[tuple[str, int], CalledStretch] = {}
    for call in _stretches(track, settings):
        if call.name in lengths:
            first.setdefault((call.name, call.channel), call)
            last[call.name, call.channel] = call
    dropped: set[CalledStretch] = set()
    kept: set[CalledStretch] = set()
    for key, one in first.items():
        other, length = last[key], lengths[key[0]]
        gap = one.extent[0] + length - other.extent[1]
        if one is other or gap > settings.merge_gap:
            continue
        if settings.peaks:
            dropped.add(min(other, one, key=lambda call: call.score))
        if one.length + gap + other.length >= settings.minimum_length:
            kept |= {one, other}
    return dropped, kept


@dataclass
class _Stretch:
    """A stretch that may still grow, with the running sums of `_Channel` at both of its ends."""

    start: int
    end: int
    sums_at_start: np.ndarray
    sums_at_end: np.ndarray
    best: tuple[float, int, int]
    """Highest score, and the bin that has it."""


class _Channel:
    """Stretches of one channel of one sequence, block by block.

    `sums` are running sums over all bases: of their scores, and of their number if they have one.
    """

    def __init__(self, number: int, name: str, settings: CallSettings) -> None:
        self.number, self.name, self.settings = number, name, settings
        self.sums = np.zeros(2)
        self.open: _Stretch | None = None

    def add(self, bins: Bins, smoothed: np.ndarray, threshold: float) -> Iterator[CalledStretch]:
        """Add a block; yield the calls that cannot grow any more."""
        starts, ends, scores = bins.starts, bins.ends, bins.scores[:, self.number]
        known = ~np.isnan(scores)
        widths = np.where(known, ends - starts, 0)
        steps = np.stack([np.where(known, scores, 0).astype(np.float64) * widths, widths], -1)
        sums = np.concatenate([self.sums[None], self.sums + np.cumsum(steps, 0)])
        self.sums = sums[-1]
        over = np.nan_to_num(smoothed[:, self.number], nan=-1.0) >= threshold
        edges = np.flatnonzero(np.diff(over, prepend=False, append=False)).reshape(-1, 2)
        for first, last in edges.tolist():
            best = first + int(np.nan_to_num(scores[first:last], nan=-1.0).argmax())
            new = _Stretch(
                int(starts[first]),
                int(ends[last - 1]),
                sums[first],
                sums[last],
                (float(scores[best]), int(starts[best]), int(ends[best])),
            )
            if self.open is not None and new.start - self.open.end <= self.settings.merge_gap:
                self.open.end, self.open.sums_at_end = new.end, new.sums_at_end
                if new.best[0] > self.open.best[0]:
                    self.open.best = new.best
            else:
                yield from self.close()
                self.open = new
        if self.open is not None and int(ends[-1]) - self.open.end > self.settings.merge_gap:
            yield from self.close()

    def close(self) -> Iterator[CalledStretch]:
        """Yield the stretch that is open, if there is one."""
        if self.open is None:
            return
        own, self.open = self.open, None
        score, start, end = own.best
        if not self.settings.peaks:
            total, bases = own.sums_at_end - own.sums_at_start
            score, start, end = total / bases, own.start, own.end
        yield CalledStretch(self.name, start, end, self.number, float(score), (own.start, own.end))


def _stretches(track: Track, settings: CallSettings) -> Iterator[CalledStretch]:
    """Yield all stretches, ordered by sequence, start and channel."""
    channels: list[_Channel] = []
    waiting: list[CalledStretch] = []

    def ready() -> Iterator[CalledStretch]:
        """Yield the calls that no open stretch can precede, in order."""
        limit = min((each.open.start for each in channels if each.open), default=None)
        waiting.sort(key=lambda call: (call.start, call.channel))
        starts = [call.start for call in waiting]
        count = len(waiting) if limit is None else bisect_left(starts, limit)
        yield from waiting[:count]
        del waiting[:count]

    def finish() -> Iterator[CalledStretch]:
        for channel in channels:
            waiting.extend(channel.close())
        yield from ready()

    name = None
    for sweep, bins, smoothed in track.smoothed_blocks(settings.smoothing):
        if sweep.contig.name != name:
            yield from finish()
            name = sweep.contig.name
            channels = [_Channel(each, name, settings) for each in range(len(track.channels))]
        for channel in channels:
            waiting.extend(channel.add(bins, smoothed, track.threshold))
        yield from ready()
    yield from finish()
