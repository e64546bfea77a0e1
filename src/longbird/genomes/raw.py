"""A feature as it stands in a file, before it is looked for in a genome."""

from __future__ import annotations

from dataclasses import dataclass, field


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
