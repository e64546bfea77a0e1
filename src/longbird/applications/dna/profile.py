"""Learning several targets along a genome, bin by bin."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from longbird.applications.dna.genomes import Genome, Interval, open_signal, read_features
from longbird.applications.dna.genomes.labels import is_bed
from longbird.applications.dna.labels import Cover, is_signal, is_whole
from longbird.applications.dna.settings import DnaLabelSettings
from longbird.applications.dna.tracks import (
    SIDE_BY_SIDE,
    UNLABELLED,
    Labels,
    Tracks,
    mean_of_known,
)
from longbird.applications.training.settings.groups import Settings
from longbird.errors import InvalidValueError

_PAIRS = (("+", "-"), ("plus", "minus"), ("fwd", "rev"), ("forward", "reverse"))
STRANDS = {one: two for pair in _PAIRS for one, two in (pair, pair[::-1])}
"""Endings of the names of targets on one strand, and those of the other strand."""
Target = tuple[str, str, str | None]
"""Name, file, and kind of the features of a target."""


class Profile(Tracks):
    """Whether each bin overlaps a feature, or has a high signal, for several targets.

    A bin is labelled if any of its bases lies in a feature; for a signal (bigWig), if its mean
    lies above a quantile of the means of all bins of the genome. A target is a file, or one kind
    of its features if the settings name kinds.

    Two targets whose names end in + and -, plus and minus, fwd and rev, or forward and reverse
    belong to the two strands, and are swapped when the other strand is read.
    """

    name = "dna-profile"
    label = "profile"
    described = (*Tracks.described, "quantile")

    def prepare(self, settings: Settings, tokenizer: Any) -> None:
        """Set the bin, and the targets of the training files."""
        assert isinstance(settings, DnaLabelSettings)
        if not self.window:
            self.bin = settings.bin
        self.quantile = settings.quantile
        if settings.train and not self.channels:
            first, *_ = self.genomes(settings.train)
            self.channels = tuple(name for name, _, _ in _targets(first.labels, settings.kind))
        super().prepare(settings, tokenizer)

    def look_at_labels(self, files: Sequence[str], genome: Genome) -> None:
        """Read the labels, so that errors are found before a run begins."""
        for _, file, kind in _targets(files, self.settings.kind):
            if is_signal(file):
                open_signal(file, genome)
            else:
                read_features(file, genome, kinds=None if kind is None else [kind])

    def labels(self, files: Sequence[str], genome: Genome) -> Labels:
        """Read features and signals."""
        targets = _targets(files, self.settings.kind)
        if len(targets) != len(self.channels):
            raise InvalidValueError(
                f"the model has {len(self.channels)} targets ({', '.join(self.channels)}), and "
                f"there are {len(targets)} labels ({', '.join(name for name, _, _ in targets)}): "
                "give one for each, in the same order"
            )
        targets = self._in_order(targets)
        each = [
            self._signal(file, genome) if signal else self._features(file, kind, genome)
            for (_, file, kind), signal in ((own, is_signal(own[1])) for own in targets)
        ]
        return lambda interval: np.stack([own(interval) for own in each], -1)

    def _in_order(self, targets: list[Target]) -> list[Target]:
        """Order targets by the names of the channels, if they have the same names."""
        named = {target[0]: target for target in targets}
        if named.keys() == {*self.channels}:
            return [named[name] for name in self.channels]
        for channel, (name, _, _) in zip(self.channels, targets, strict=True):
            if name != channel and (name in self.channels or channel in named):
                raise InvalidValueError(
                    f"the model has the targets {', '.join(self.channels)}, and the labels are "
                    f"{', '.join(named)}: give them in the same order"
                )
        return targets

    def _features(self, file: str, kind: str | None, genome: Genome) -> Labels:
        found = read_features(file, genome, kinds=None if kind is None else [kind])
        parts = (part for feature in found for part in feature.parts or (feature.interval,))
        if kind is None and not is_bed(file):
            parts = (part for part in parts if not is_whole(part, genome))
        cover = Cover(parts, genome)

        def of(interval: Interval) -> np.ndarray:
            return self._bins(cover.bases(interval).astype(float), np.nanmax).astype(np.uint8)

        return of

    def _signal(self, file: str, genome: Genome) -> Labels:
        signal = open_signal(file, genome)
        means: list[np.ndarray] = []
        for contig in genome.sequences.values():
            size = 4096 * self.bin
            for start in range(0, contig.length, size):
                end = min(start + size, contig.length)
                values = signal.values(Interval(contig.name, start, end, "+"))
                means.append(self._bins(values, mean_of_known))
        every = np.concatenate(means)
        every = every[~np.isnan(every)]
        if not len(every):
            raise InvalidValueError(f"{file} has no numbers on the sequences of {genome.file}")
        limit = float(np.quantile(every, self.quantile))

        def of(interval: Interval) -> np.ndarray:
            own = self._bins(signal.values(interval), mean_of_known)
            return np.where(np.isnan(own), UNLABELLED, own > limit).astype(np.uint8)

        return of

    def _bins(self, values: np.ndarray, of: Callable[..., np.ndarray]) -> np.ndarray:
        """Reduce values to one for each bin; the last bin may have fewer bases."""
        bins = -(-len(values) // self.bin)
        padded = np.full(bins * self.bin, np.nan)
        padded[: len(values)] = values
        return of(padded.reshape(bins, self.bin), axis=1)

    def turned(self, scores: np.ndarray) -> np.ndarray:
        """Reverse the bins, and swap the targets of the two strands."""
        return scores[::-1, _opposites(self.channels)].copy()

    def notes(self) -> list[str]:
        """Return notes on the meaning of labels."""
        return [
            f"A bin has {self.bin:,} bases. It is labelled where it overlaps a feature, or where "
            f"the mean of a signal lies above the {self.quantile:g} quantile of all bins. The "
            "first figures are the means of all targets that are there.",
            SIDE_BY_SIDE,
        ]


def _targets(files: Sequence[str], kinds: Sequence[str]) -> list[Target]:
    """Return the targets of files, with distinct names."""
    found: list[Target] = []
    for file in files:
        stem = Path(file).name.removesuffix(".gz").rsplit(".", 1)[0]
        if kinds and not is_signal(file) and not is_bed(file):
            found += [(kind, file, kind) for kind in kinds]
        else:
            found.append((stem, file, None))
    stems = [name for name, _, _ in found]
    found = [
        (Path(file).name if kind is None and stems.count(name) > 1 else name, file, kind)
        for name, file, kind in found
    ]
    names = [name for name, _, _ in found]
    return [
        (f"{name} {1 + names[:at].count(name)}" if names.count(name) > 1 else name, file, kind)
        for at, (name, file, kind) in enumerate(found)
    ]


@cache
def _opposites(names: tuple[str, ...]) -> list[int]:
    """Return the index of the same target on the other strand, or its own if it has no strand.

    Examples:
        >>> _opposites(("genes +", "sites", "genes -", "rna.fwd", "rna.rev", "minus"))
        [2, 1, 0, 4, 3, 5]
    """
    keys: list[tuple[str, str]] = []
    for name in names:
        found = re.fullmatch(rf"(.+?)[ ._-]?({'|'.join(map(re.escape, STRANDS))})", name, re.I)
        keys.append((found[1], found[2].lower()) if found else (name, ""))
    others = [(stem, STRANDS.get(word, "")) for stem, word in keys]
    return [keys.index(other) if other in keys else at for at, other in enumerate(others)]
