"""Features as they stand in a file, before they are located in a genome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

REGULATORY = ("regulatory", "regulatory_region")
"""Kinds for promoters, terminators and others in INSDC; `regulatory_class` tells which."""


@dataclass(slots=True)
class Raw:
    """A feature as it stands in a file, with positions that are 0-based and exclude the end.

    Attributes:
        name: Name of the sequence in the file.
        parts: Start, end and strand of each part.
        where: Location in the file, for messages.
        kind: Kind of the feature.
        id: Identifier of the feature.
        score: Score of the feature.
        attributes: Other attributes in the file.
        phases: Number of bases at the start of each part before the first whole codon, if known.
        in_order: Whether the parts are in reading order, as in GenBank; otherwise, their order
            has no meaning.
    """

    name: str
    parts: list[tuple[int, int, str]]
    where: str
    kind: str
    id: str | None = None
    score: float | None = None
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    phases: list[int | None] = field(default_factory=lambda: [None])
    in_order: bool = False


def kind_of(kind: str, attributes: Mapping[str, str]) -> str:
    """Return the kind of a feature; for regulatory features this is their class, if it is known.

    Examples:
        >>> kind_of("regulatory", {"regulatory_class": "promoter"}), kind_of("CDS", {})
        ('promoter', 'CDS')
    """
    return attributes.get("regulatory_class", kind) if kind in REGULATORY else kind
