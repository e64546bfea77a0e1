"""A small artificial E. coli that replaces the downloaded one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyBigWig
import pytest

from experiments.dna import organisms, profile, promoters
from experiments.dna.bases import codes, letters, reverse_complement
from experiments.sources import genomes

LENGTH, STARTS = 60_000, 240


def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A circle with genes, starts with a box before them, and a ChIP over its motif."""
    random = np.random.default_rng(0)
    sequence = random.integers(0, 4, LENGTH).astype(np.uint8)
    at = np.arange(STARTS) * (LENGTH // STARTS) + random.integers(0, 100, STARTS)
    minus = random.random(STARTS) < 0.5
    signal = np.full(LENGTH, 10.0)
    for place in range(500, LENGTH, 2000):
        sequence[place : place + 8] = codes("ACCCATGG")
        signal[place - 100 : place + 101] += 1000 - 10 * np.abs(np.arange(-100, 101))
    for place, down in zip(at.tolist(), minus.tolist(), strict=True):
        box = np.arange(place + 8, place + 14) if down else np.arange(place - 13, place - 7)
        word = codes("TATAAT")
        sequence[box % LENGTH] = reverse_complement(word) if down else word
    name = promoters.SEQUENCE
    (tmp_path / "g.fa").write_text(f">{name} small\n{letters(sequence)}\n")
    genes = [f"{name}\tx\t{kind}\t100\t30000\t.\t+\t0\tID={kind}" for kind in ("gene", "CDS")]
    genes.append(f"{name}\tx\tCDS\t40001\t50000\t.\t-\t0\tID=other")
    (tmp_path / "g.gff").write_text("\n".join(genes))
    for file, every in (("all.bed", 1), ("experimental.bed", 2)):
        rows = zip(at[::every].tolist(), minus[::every].tolist(), strict=True)
        lines = [f"{name}\t{x}\t{x + 1}\tu\t0\t{'-' if y else '+'}" for x, y in rows]
        (tmp_path / file).write_text("\n".join(lines))
    for file in ("1.bw", "2.bw"):
        with pyBigWig.open(str(tmp_path / file), "w") as wig:
            wig.addHeader([(profile.SIGNAL, LENGTH)])
            wig.addEntries(profile.SIGNAL, 0, values=signal.tolist(), span=1, step=1)
    files = genomes.Annotated(tmp_path / "g.fa", tmp_path / "g.gff")
    bed = {True: tmp_path / "experimental.bed", False: tmp_path / "all.bed"}
    monkeypatch.setattr(genomes, "escherichia_coli", lambda: files)
    monkeypatch.setattr(genomes, "starts", lambda *, experimental: bed[experimental])
    monkeypatch.setattr(genomes, "binding_sites", lambda: bed[True])
    monkeypatch.setattr(genomes, "repeats", lambda: bed[False])
    monkeypatch.setattr(genomes, "chip", lambda: (tmp_path / "1.bw", tmp_path / "2.bw"))
    kept = [
        organisms.bacterium,
        promoters.starts,
        promoters.promoters,
        promoters.examples,
        profile.profile,
        profile.tracks,
        profile.signal,
    ]
    for each in kept:
        each.cache_clear()
    yield letters(sequence)
    for each in kept:
        each.cache_clear()
