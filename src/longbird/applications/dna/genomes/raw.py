"""A feature as it stands in a file, before it is looked for in a genome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

REGULATORY = ("regulatory", "regulatory_region")
"""What INSDC calls promoters, terminators and others alike; `regulatory_class` says which."""


@dataclass(slots=True)
class Raw:
    """A feature as it stands in a file, with positions that are 0-based and without the end.

    Attributes:
        name: Of the sequence, in the words of the file.
        parts: Start, end and strand.
        where: In the file, for messages.
        phases: Bases at the beginning of each part that belong to no whole codon, if known.
        in_order: Are the parts in the order in which they are read, as in GenBank? Otherwise
            their order says nothing.
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
    """The kind of a feature: of a regulatory one its class, where the file says it.

    Examples:
        >>> kind_of("regulatory", {"regulatory_class": "promoter"}), kind_of("CDS", {})
        ('promoter', 'CDS')
    """
    return attributes.get("regulatory_class", kind) if kind in REGULATORY else kind
