"""Labels along E. coli in bins: genes, sites, starts, repeats and ChIP peaks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.ndimage import uniform_filter1d

from experiments.dna.organisms import bacterium
from experiments.dna.peaks import peaks
from experiments.dna.promoters import SEQUENCE, starts
from experiments.dna.splits import by_fifth, stretches
from experiments.sources import genomes

BIN = 200
PEAKS = 300
"""The highest peaks of the ChIP count."""
APART, SMOOTH, SUMMIT = 1001, 51, 100
"""A peak is the highest within so many bases, smoothed over so many; its summit has so many."""
SIGNAL = "NC_000913"
"""What the ChIP calls the genome."""
TARGETS = (
    "coding +", "coding -", "start +", "start -", "binding site", "repeat", "ChIP peak",
)  # fmt: skip


@dataclass(frozen=True)
class Bins:
    """Bins along a sequence; a remainder at the end is in none.

    Attributes:
        labels: [bins, targets]
        side: Training, validation or test.
        size: Number of bases.
    """

    labels: np.ndarray
    side: np.ndarray
    size: int


@cache
def profile(*, context: int, held_out: int = 2, size: int = BIN) -> Bins:
    """Return the bins of E. coli with the labels of TARGETS.

    A bin has a label if one of its bases has it.

    Args:
        context: Number of bases that are read for a bin, which is the gap between sides.
        held_out: Number of the held-out fifth.
        size: Number of bases per bin.
    """
    every = tracks()
    length = len(every[TARGETS[0]])
    labels = [in_bins(every[name], size) for name in TARGETS]
    middles = np.arange(length // size) * size + size // 2
    sides = by_fifth(length, held_out, context, circular=True)[middles]
    return Bins(np.stack(labels, 1), sides, size)


@cache
def tracks() -> dict[str, np.ndarray]:
    """Return which bases of E. coli have each label, [bases] each."""
    organism = bacterium("E. coli")
    length = len(organism.sequences[SEQUENCE])
    coding = organism.codons[SEQUENCE] >= 0
    at, minus = starts(experimental=False)
    return {
        "coding +": coding[0],
        "coding -": coding[1],
        "start +": covered(at[~minus], at[~minus] + 1, length),
        "start -": covered(at[minus], at[minus] + 1, length),
        "binding site": covered(*read_bed(genomes.binding_sites()), length),
        "repeat": covered(*read_bed(genomes.repeats()), length),
        "ChIP peak": chip_peaks(length),
    }


def write_tracks(folder: Path) -> list[Path]:
    """Write the labels as a BED file for each target, as a user would have them."""
    files: list[Path] = []
    for name, track in tracks().items():
        files.append(folder / f"{name}.bed")
        lines = (f"{SEQUENCE}\t{begin}\t{end}\n" for begin, end in stretches(track))
        files[-1].write_text("".join(lines), "ascii")
    return files


def in_bins(track: np.ndarray, size: int) -> np.ndarray:
    """Return which bins contain a base of a track, [bins].

    Examples:
        >>> in_bins(np.array([True, False, False, False, False, True]), 2).tolist()
        [True, False, True]
    """
    return np.asarray(track[: len(track) // size * size].reshape(-1, size).any(1))


def covered(begins: np.ndarray, ends: np.ndarray, length: int) -> np.ndarray:
    """Return which bases of a circle are in one of these intervals, [bases]."""
    track = np.zeros(length, bool)
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        track[np.arange(begin, end) % length] = True
    return track


def read_bed(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and ends of a BED file."""
    rows = [line.split("\t") for line in path.read_text("ascii").splitlines()]
    return np.array([int(row[1]) for row in rows]), np.array([int(row[2]) for row in rows])


def chip_peaks(length: int) -> np.ndarray:
    """Return which bases are around the summits of the highest peaks, [bases]."""
    summits = highest(signal(length), PEAKS)
    return covered(summits - SUMMIT // 2, summits + SUMMIT // 2, length)


@cache
def signal(length: int) -> np.ndarray:
    """Return the mean over both replicates of log2(1 + coverage), [bases]."""
    import pyBigWig

    values: list[np.ndarray] = []
    for path in genomes.chip():
        with pyBigWig.open(str(path)) as file:
            if file.chroms(SIGNAL) != length:
                raise ValueError(
                    f"{path.name} has {file.chroms(SIGNAL)} bases of {SIGNAL}, expected {length}"
                )
            values.append(np.log2(1 + np.nan_to_num(file.values(SIGNAL, 0, length, numpy=True))))
    return np.mean(values, 0)


def highest(signal: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of the highest peaks on a circle, the highest first."""
    smooth = uniform_filter1d(signal.astype(float), SMOOTH, mode="wrap")
    beyond = APART // 2
    at = peaks(np.concatenate([smooth[-beyond:], smooth, smooth[:beyond]]), beyond) - beyond
    at = at[(at >= 0) & (at < len(smooth))]
    return at[np.argsort(-smooth[at], kind="stable")][:count]
