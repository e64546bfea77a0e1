"""Telling genomes and their labels apart among files, and opening them as the settings say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longbird.applications.dna.genomes import Genome, circular_in, open_genome
from longbird.applications.dna.genomes.fasta import unpacked
from longbird.applications.dna.genomes.names import read_alias
from longbird.applications.dna.labels import is_signal
from longbird.applications.dna.settings import DnaSettings
from longbird.errors import InvalidValueError
from longbird.files.paths import check_path

ALL = ("all",)


class Labelled(NamedTuple):
    """A genome and the files of its labels, which may be the genome itself (GenBank)."""

    genome: str
    labels: tuple[str, ...]


def paths_of(given: str | Path | Sequence[str | Path], expected: str) -> list[str]:
    """Return one or several paths as a list.

    Args:
        given: What the caller gave.
        expected: Description of a file for error messages.

    Examples:
        >>> paths_of("genome.fa", "a genome"), paths_of(["a.bed", "b.bed"], "labels")
        (['genome.fa'], ['a.bed', 'b.bed'])
    """
    several = [*given] if isinstance(given, (list, tuple, set)) else [given]
    for each in several:
        check_path(each, expected)
    return [str(each) for each in several]


def labelled(paths: Sequence[str]) -> list[Labelled]:
    """Return the genomes among files, each with the labels that follow it.

    The first file is a genome. A FASTA file starts another one, and so does a GenBank file after
    a genome in GenBank, unless both have the same sequences. A genome without label files has
    labels itself.

    Args:
        paths: Files in the order in which they were given.
    """
    found: list[list[str]] = []
    before = ""
    for path in paths:
        kind = _kind(path)
        if not found or kind == "fasta" or (kind == before and _are_disjoint(path, found[-1][0])):
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
    """Raise an error if a genome was given twice, which would count twice."""
    seen: set[str] = set()
    for each in genomes:
        real = os.path.realpath(each)
        if real in seen:
            raise InvalidValueError(
                f"the genome {each} was given twice: give it once, with all of its labels after it"
            )
        seen.add(real)


def open_genome_of(settings: DnaSettings, file: str, labels: Sequence[str] = ()) -> Genome:
    """Open a genome with the settings; else, labels tell which sequences are circular."""
    return _opened(file, labels, dict(_aliases(settings.alias)), settings.circular)


def open_genomes_of(settings: DnaSettings, given: Sequence[Labelled]) -> list[Genome]:
    """Open several genomes; each takes from the settings what its own sequences need."""
    if len(given) == 1:
        return [open_genome_of(settings, *given[0])]
    aliases, circular = _aliases(settings.alias), settings.circular
    has = [open_genome(each.genome).sequences for each in given]
    for option, named in (
        ("alias", [name for _, name in aliases]),
        ("circular", [] if circular == ALL else circular),
    ):
        if unknown := [name for name in named if not any(name in own for own in has)]:
            raise InvalidValueError(
                f"`{option}` names {', '.join(unknown[:5])}, which none of "
                f"{', '.join(each.genome for each in given)} has; they have "
                f"{', '.join([name for own in has for name in own][:10])}"
            )
    return [
        _opened(
            *each,
            {other: name for other, name in aliases if name in own},
            circular if circular == ALL else [name for name in circular if name in own],
        )
        for each, own in zip(given, has, strict=True)
    ]


def _opened(
    file: str, labels: Sequence[str], alias: dict[str, str], named: Sequence[str]
) -> Genome:
    circular: Any = True if tuple(named) == ALL else named or None
    genome = open_genome(file, alias=alias, circular=circular)
    if circular is not None:
        return genome
    own = {each.name for each in genome.sequences.values() if each.circular}
    by_labels = {
        genome.contig(name).name
        for label in labels
        if not is_signal(label)
        for name in circular_in(label, alias)
        if name in genome.sequences or name in genome.names.alias
    }
    if by_labels <= own:
        return genome
    return open_genome(file, alias=alias, circular=sorted(by_labels | own))


def _aliases(given: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs such as NC_000913=U00096.3, and those in files.

    Labels of two genomes may use the same alias, which then is in several pairs.
    """
    pairs: list[tuple[str, str]] = []
    for each in given:
        other, equals, name = each.partition("=")
        if equals and not Path(each).exists():
            pairs.append((other, name))
        else:
            pairs += read_alias(each).items()
    return pairs


def _kind(path: str) -> str:
    with unpacked(path) as opened:
        head = opened.read(256).removeprefix(b"\xef\xbb\xbf").lstrip()
    return "fasta" if head[:1] == b">" else "genbank" if head[:5] == b"LOCUS" else "labels"


def _are_disjoint(path: str, other: str) -> bool:
    """Return whether two genomes have no sequence in common."""
    return not {*open_genome(path).sequences} & {*open_genome(other).sequences}
