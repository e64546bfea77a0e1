"""A genome with a motif before every start."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

MOTIF = "TTGACATATAAT"
LENGTH = 12_000


class Planted(NamedTuple):
    """Files of a genome, and where starts were planted."""

    genome: Path
    labels: Path
    bases: str
    starts: list[tuple[int, str]]


def write_fasta(path: Path, **sequences: str) -> Path:
    lines: list[str] = []
    for name, bases in sequences.items():
        lines += [f">{name}", *(bases[at : at + 60] for at in range(0, len(bases), 60))]
    path.write_text("\n".join(lines) + "\n")
    return path


def other_strand(bases: str) -> str:
    return bases.translate(str.maketrans("ACGTN", "TGCAN"))[::-1]


def planted(folder: Path, length: int = LENGTH, seed: int = 0) -> Planted:
    """A start at about every 120 bases, on either strand, with the motif right before it."""
    drawn = random.Random(seed)
    bases = drawn.choices("ACGT", k=length)
    starts: list[tuple[int, str]] = []
    at = 60
    while at < length - 60:
        strand = drawn.choice("+-")
        if strand == "+":
            bases[at - len(MOTIF) : at] = MOTIF
        else:
            bases[at + 1 : at + 1 + len(MOTIF)] = other_strand(MOTIF)
        starts.append((at, strand))
        at += drawn.randint(90, 150)
    text = "".join(bases)
    genome = write_fasta(folder / "genome.fa", chrA=text)
    labels = folder / "starts.bed"
    labels.write_text("".join(f"chrA\t{at}\t{at + 1}\tp\t0\t{strand}\n" for at, strand in starts))
    return Planted(genome, labels, text, starts)
