"""Genomes with their genes, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from experiments.dna.bases import codes
from experiments.sources import genomes
from longbird.applications.dna.genomes import Interval, open_genome, read_features


@dataclass(frozen=True)
class Organism:
    """A genome.

    Attributes:
        name: Name in tables.
        sequences: Sequences by name, [bases] each.
        circular: Whether the sequences are circular.
        codons: By name, the position of each base in its codon on each strand, 0 to 2, and -1
            outside of proteins, [2, bases]. On both strands the first base of a codon is 0.
        genic: By name, whether each base is in a gene, coding for a protein or not, on any strand.
    """

    name: str
    sequences: Mapping[str, np.ndarray]
    circular: bool
    codons: Mapping[str, np.ndarray]
    genic: Mapping[str, np.ndarray]


@cache
def bacterium(name: str) -> Organism:
    """Return E. coli, B. theta or S. aureus."""
    annotated, circular = {
        "E. coli": (genomes.escherichia_coli, True),
        "B. theta": (genomes.bacteroides, False),
        "S. aureus": (genomes.staphylococcus, True),
    }[name]
    files = annotated()
    return organism(name, files.genome, files.features, circular=circular)


def organism(name: str, genome: Path, features: Path, *, circular: bool) -> Organism:
    """Read a genome and its genes; pseudogenes do not count as proteins."""
    with open_genome(genome, circular=circular) as opened:
        found = read_features(features, opened, kinds=("gene", "pseudogene", "CDS"))
        sequences = {
            contig.name: codes(opened.bases(Interval(contig.name, 0, contig.length, "+")))
            for contig in opened.sequences.values()
        }
    codons = {key: np.full((2, len(x)), -1, np.int8) for key, x in sequences.items()}
    genic = {key: np.zeros(len(x), bool) for key, x in sequences.items()}
    for each in found:
        own, strand = each.interval.name, each.interval.strand
        places = np.concatenate([_read(part) for part in each.parts]) % len(sequences[own])
        if each.kind != "CDS":
            genic[own][places] = True
        elif each.attributes.get("pseudo") != "true":
            codons[own][int(strand == "-"), places] = (
                np.arange(len(places)) - (each.phase or 0)
            ) % 3
    return Organism(name, sequences, circular, codons, genic)


def _read(part: Interval) -> np.ndarray:
    """Return the positions of a stretch in the order in which it is read."""
    places = np.arange(part.start, part.end)
    return places[::-1] if part.strand == "-" else places
