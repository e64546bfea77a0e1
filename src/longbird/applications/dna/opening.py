"""Genomes as settings say: what else their sequences are called, and which are circular."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longbird.applications.dna.genomes import Genome, circular_in, open_genome
from longbird.applications.dna.genomes.names import read_alias
from longbird.applications.dna.labelled import Labelled
from longbird.applications.dna.labels import is_signal
from longbird.applications.dna.settings import DnaSettings
from longbird.errors import InvalidValueError

ALL = ("all",)


def open_genome_of(settings: DnaSettings, file: str, labels: Sequence[str] = ()) -> Genome:
    """A genome as the settings say; what labels say is circular, is, if these say nothing.

    Raises:
        ValueError: The settings name sequences that it does not have.
    """
    return _opened(file, labels, dict(_aliases(settings.alias)), settings.circular)


def open_genomes_of(settings: DnaSettings, given: Sequence[Labelled]) -> list[Genome]:
    """The same of several: each takes what the settings say of its own sequences.

    Raises:
        ValueError: The settings name sequences that none of them has.
    """
    if len(given) == 1:
        return [open_genome_of(settings, *given[0])]
    aliases, circular = _aliases(settings.alias), settings.circular
    has = [open_genome(each.genome).sequences for each in given]
    for option, named in (
        ("--alias", [name for _, name in aliases]),
        ("--circular", [] if circular == ALL else circular),
    ):
        if unknown := [name for name in named if not any(name in own for own in has)]:
            raise InvalidValueError(
                f"{option} names {', '.join(unknown[:5])}, which none of "
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
    said = {
        genome.contig(name).name
        for label in labels
        if not is_signal(label)
        for name in circular_in(label, alias)
        if name in genome.sequences or name in genome.names.alias
    }
    if said <= own:
        return genome
    return open_genome(file, alias=alias, circular=sorted(said | own))


def _aliases(given: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs such as NC_000913=U00096.3, and those in files.

    Labels of two genomes may use one name, so that it may be in several pairs.
    """
    pairs: list[tuple[str, str]] = []
    for each in given:
        other, equals, name = each.partition("=")
        if equals and not Path(each).exists():
            pairs.append((other, name))
        else:
            pairs += read_alias(each).items()
    return pairs
