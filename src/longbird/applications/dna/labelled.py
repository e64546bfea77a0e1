"""Which of the files that were given are genomes, and which are the labels of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from longbird.applications.dna.genomes import open_genome
from longbird.applications.dna.genomes.fasta import unpacked
from longbird.errors import InvalidValueError
from longbird.files.paths import check_path


def paths_of(given: str | Path | Sequence[str | Path], expected: str) -> list[str]:
    """The files that were given, of which there may be one alone.

    Args:
        given: By the caller.
        expected: What they are, in words, for a message.

    Examples:
        >>> paths_of("genome.fa", "a genome"), paths_of(["a.bed", "b.bed"], "labels")
        (['genome.fa'], ['a.bed', 'b.bed'])
    """
    several = [*given] if isinstance(given, (list, tuple, set)) else [given]
    for each in several:
        check_path(each, expected)
    return [str(each) for each in several]


class Labelled(NamedTuple):
    """A genome with the files of its labels; these may be its own (GenBank)."""

    genome: str
    labels: tuple[str, ...]


def labelled(paths: Sequence[str]) -> list[Labelled]:
    """The genomes among files, each with the labels that follow it.

    The first file is a genome. FASTA begins another, and so does GenBank after a genome in
    GenBank, unless it is about the same sequences. What has no labels after it has its own.

    Args:
        paths: Files, in the order in which they were given.
    """
    found: list[list[str]] = []
    before = ""
    for path in paths:
        kind = _kind(path)
        if not found or kind == "fasta" or (kind == before and _apart(path, found[-1][0])):
            found.append([])
            before = kind if kind == "genbank" else "no other"
        found[-1].append(path)
    check_once([own[0] for own in found])
    for own in found:
        if len(own) == 1 and _kind(own[0]) == "fasta":
            raise InvalidValueError(
                f"{own[0]} is FASTA, which has no labels: give them after it, as BED, GFF3, "
                "GenBank or bigWig"
            )
    return [Labelled(own, tuple(labels) or (own,)) for own, *labels in found]


def check_once(genomes: Sequence[str]) -> None:
    """Raises if a genome was given twice: it would count twice, with the labels of one."""
    seen: set[str] = set()
    for each in genomes:
        real = os.path.realpath(each)
        if real in seen:
            raise InvalidValueError(
                f"the genome {each} was given twice: give it once, with all of its labels after it"
            )
        seen.add(real)


def _kind(path: str) -> str:
    with unpacked(path) as opened:
        head = opened.read(256).removeprefix(b"\xef\xbb\xbf").lstrip()
    return "fasta" if head[:1] == b">" else "genbank" if head[:5] == b"LOCUS" else "labels"


def _apart(path: str, other: str) -> bool:
    """Have two genomes no sequence in common?"""
    return not {*open_genome(path).sequences} & {*open_genome(other).sequences}
