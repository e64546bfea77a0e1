"""Reading GFF3, whose positions are 1-based and include the last base."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from urllib.parse import unquote

from longbird.applications.dna.genomes.raw import REGULATORY, Raw, kind_of
from longbird.errors import InvalidValueError

STRANDS = {"+": "+", "-": "-", ".": ".", "?": ".", "": "."}


class Gff3:
    """The content of a GFF3 file.

    Lines with the same ID are parts of one feature; so are CDS lines that have no ID but the same
    parent.

    Args:
        file: Name of the file.
        lines: Numbered lines.
        kinds: Kinds of features to read; all by default.

    Attributes:
        features: Features in the order of the file.
        lengths: Lengths of sequences by name, as far as the file gives them.
        reaches: Last base of sequences of which the file describes a stretch not starting at 1.
        circular: Names of circular sequences.
        kinds: Number of features of each kind, whether or not they are read.
        names: Names of all sequences, in the order of the file.
    """

    def __init__(
        self, file: str, lines: Iterable[tuple[int, str]], kinds: Collection[str] | None = None
    ) -> None:
        self.features: list[Raw] = []
        self.lengths: dict[str, int] = {}
        self.reaches: dict[str, int] = {}
        self.circular: list[str] = []
        self.kinds: dict[str, int] = {}
        self.names: dict[str, None] = {}
        whole: dict[tuple[str, str, str, str], Raw] = {}
        for number, columns in self._rows(file, lines):
            raw = self._read(f"{file}, line {number}", columns, kinds)
            if raw is None:
                continue
            key = _key(raw)
            if key is not None and key in whole:
                whole[key].parts += raw.parts
                whole[key].phases += raw.phases
                continue
            if key is not None:
                whole[key] = raw
            self.features.append(raw)

    def _rows(
        self, file: str, lines: Iterable[tuple[int, str]]
    ) -> Iterator[tuple[int, list[str]]]:
        for number, line in lines:
            if line.startswith("##FASTA") or line.startswith(">"):
                return
            if line.startswith("##sequence-region"):
                words = line.split()
                if len(words) == 4 and words[2].isdecimal() and words[3].isdecimal():
                    self._note(unquote(words[1]), int(words[2]), int(words[3]))
            if not line.strip() or line.startswith("#"):
                continue
            columns = line.split("\t")
            if len(columns) != 9:
                raise InvalidValueError(
                    f"{file}, line {number}: expected 9 columns separated by tabs, as GFF3 has; "
                    f"received {len(columns)}: {line!r:.80}"
                )
            yield number, columns

    def _note(self, name: str, first: int, last: int) -> None:
        """Record a described stretch of a sequence; one that begins at 1 is all of it."""
        (self.lengths if first == 1 else self.reaches)[name] = last

    def _read(self, where: str, columns: list[str], kinds: Collection[str] | None) -> Raw | None:
        name, _, kind, first, last, score, strand, phase, more = columns
        name = unquote(name)
        self.names[name] = None
        if kind in REGULATORY:
            kind = kind_of(kind, _attributes(more, where))
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if kinds is not None and kind not in kinds and "Is_circular" not in more:
            return None
        if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last)):
            raise InvalidValueError(
                f"{where}: expected the first and the last base in columns 4 and 5, counted from "
                f"1; received {first!r} and {last!r}"
            )
        if strand not in STRANDS or phase not in (".", "0", "1", "2", ""):
            raise InvalidValueError(
                f"{where}: expected a strand (+, -, . or ?) and a phase (0, 1, 2 or .) in columns "
                f"7 and 8; received {strand!r} and {phase!r}"
            )
        attributes = _attributes(more, where)
        if attributes.get("Is_circular", "").lower() == "true":
            self.circular.append(name)
            self._note(name, int(first), int(last))
        if kinds is not None and kind not in kinds:
            return None
        try:
            number = None if score in (".", "") else float(score)
        except ValueError:
            raise InvalidValueError(
                f"{where}: expected a score or '.', received {score!r}"
            ) from None
        return Raw(
            name,
            [(int(first) - 1, int(last), STRANDS[strand])],
            where,
            kind,
            attributes.get("ID"),
            number,
            attributes,
            [int(phase) if phase.isdecimal() else None],
        )


def _attributes(text: str, where: str) -> dict[str, str]:
    pairs = [pair for pair in text.strip().split(";") if pair.strip() not in ("", ".")]
    if any("=" not in pair for pair in pairs):
        if '"' in text:
            raise InvalidValueError(
                f"{where}: this is GTF; expected GFF3. Convert it, for example with `gffread "
                "labels.gtf -o labels.gff3`"
            )
        raise InvalidValueError(
            f"{where}: expected attributes as name=value;name=value in column 9; received "
            f"{text!r:.80}"
        )
    split = (pair.strip().partition("=") for pair in pairs)
    return {unquote(name): unquote(value) for name, _, value in split}


def _key(raw: Raw) -> tuple[str, str, str, str] | None:
    """Return what all lines of a feature have in common."""
    if raw.id is not None:
        return raw.name, raw.kind, "ID", raw.id
    parent = raw.attributes.get("Parent")
    if raw.kind == "CDS" and parent is not None:
        return raw.name, raw.kind, "Parent", parent
    return None
