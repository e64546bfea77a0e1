"""Genomes with their genes, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from longbird.bench.dna.bases import read_fasta
from longbird.data import genomes


@dataclass(frozen=True)
class Organism:
    """A genome.

    Attributes:
        name: As tables have it.
        sequences: By name, [bases] each.
        circular: Are they circles?
        codons: By name, which base of a codon each base is on each of both strands, 0 to 2, and -1
            where it is not of a protein, [2, bases]. Both ways the first base of a codon is 0.
        genic: By name, is each base in a gene, of a protein or not, on any strand?
    """

    name: str
    sequences: Mapping[str, np.ndarray]
    circular: bool
    codons: Mapping[str, np.ndarray]
    genic: Mapping[str, np.ndarray]


@cache
def bacterium(name: str) -> Organism:
    """E. coli, B. theta or S. aureus."""
    annotated, circular = {
        "E. coli": (genomes.escherichia_coli, True),
        "B. theta": (genomes.bacteroides, False),
        "S. aureus": (genomes.staphylococcus, True),
    }[name]
    files = annotated()
    return organism(name, files.genome, files.features, circular=circular)


def organism(name: str, genome: Path, features: Path, *, circular: bool) -> Organism:
    """Reads a genome and its genes; proteins of pseudogenes do not count as such."""
    sequences = {title.split()[0]: bases for title, bases in read_fasta(genome)}
    codons = {key: np.full((2, len(x)), -1, np.int8) for key, x in sequences.items()}
    genic = {key: np.zeros(len(x), bool) for key, x in sequences.items()}
    for each in features_of(features):
        if each.sequence not in sequences:
            raise ValueError(
                f"{features.name} has the sequence {each.sequence}, which {genome.name} has not"
            )
        length = len(sequences[each.sequence])
        if each.end > length and not circular:
            raise ValueError(
                f"{features.name} has a feature that ends at {each.end}, and {each.sequence} has "
                f"{length} bases"
            )
        places = np.arange(each.start, each.end) % length
        if each.kind in ("gene", "pseudogene"):
            genic[each.sequence][places] = True
        elif each.kind == "CDS" and "pseudo=true" not in each.attributes:
            minus = each.strand == "-"
            along = places[::-1] if minus else places
            codons[each.sequence][int(minus), along] = (np.arange(len(along)) - each.phase) % 3
    return Organism(name, sequences, circular, codons, genic)


@dataclass(frozen=True)
class Line:
    """A line of GFF3, its place 0-based and half open; phase is 0 where there is none."""

    sequence: str
    kind: str
    start: int
    end: int
    strand: str
    phase: int
    attributes: tuple[str, ...]


def features_of(path: Path) -> Iterator[Line]:
    """The lines of a file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("##FASTA"):
                return
            if line.startswith("#") or not line.strip():
                continue
            sequence, _, kind, first, last, _, strand, phase, more = line.rstrip("\n").split("\t")
            start, skipped = int(first) - 1, 0 if phase == "." else int(phase)
            yield Line(sequence, kind, start, int(last), strand, skipped, tuple(more.split(";")))
