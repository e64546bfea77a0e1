"""Reading GenBank files with Biopython."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from longbird.applications.dna.genomes.extra import need
from longbird.applications.dna.genomes.fasta import SequenceContents, unpacked
from longbird.applications.dna.genomes.raw import Raw, kind_of
from longbird.errors import InvalidValueError

STRANDS = {1: "+", -1: "-", 0: ".", None: "."}
NAMING = ("locus_tag", "protein_id", "gene", "label", "standard_name")
"""Attributes that identify a feature, in order of preference."""


def records(path: str, *, features: bool) -> Iterator[Any]:
    """Yield the records of a GenBank file, as SeqRecord of Biopython."""
    scanner = need("Bio.GenBank.Scanner", "reading GenBank").GenBankScanner()
    warned = need("Bio", "reading GenBank").BiopythonParserWarning
    with unpacked(path) as opened:
        stream: Any = opened
        lines = io.TextIOWrapper(stream, encoding="utf-8", errors="replace")
        parsed = iter(scanner.parse_records(lines, do_features=features))
        try:
            while (record := _next(parsed, path, warned)) is not None:
                yield record
        finally:
            lines.detach()


def _next(parsed: Iterator[Any], path: str, warned: type[Warning]) -> Any:
    with warnings.catch_warnings():
        # Most warnings are about columns. These mean that something is missing.
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", ".*(Premature end|Expected sequence length)", warned)
        try:
            return next(parsed, None)
        except (warned, ValueError, AssertionError, IndexError) as error:
            raise InvalidValueError(f"{path} is damaged or truncated: {error}") from error


def scan(path: str, take: Callable[[str, bytes], Any]) -> SequenceContents:
    """Read the sequences of a GenBank file, check them, and pass each to `take`."""
    found = SequenceContents()
    undefined = need("Bio.Seq", "reading GenBank").UndefinedSequenceError
    for record in records(path, features=False):
        if not record.id or any(letter.isspace() for letter in record.id):
            raise InvalidValueError(f"{path} has a record without a name, or with a space in it")
        found.add(record.id, path)
        try:
            bases = bytes(record.seq)
        except undefined:
            raise InvalidValueError(
                f"{path}: {record.id} comes without its bases (no ORIGIN). Download it with them: "
                "at NCBI, choose 'GenBank (full)'"
            ) from None
        found.count(record.id, bases, path)
        take(record.id, bases)
        if record.annotations.get("topology") == "circular":
            found.circular.append(record.id)
    found.finish(path)
    return found


def circular_names(path: str) -> list[str]:
    """Return the names of the circular records."""
    return [
        record.id
        for record in records(path, features=False)
        if record.annotations.get("topology") == "circular"
    ]


def features(path: str, lengths: dict[str, int], tell: Callable[[str], None]) -> Iterator[Raw]:
    """Yield the features of all records, and store the lengths of these in `lengths`."""
    elsewhere = 0
    for record in records(path, features=True):
        lengths[record.id] = len(record.seq)
        for feature in record.features:
            parts = [] if feature.location is None else feature.location.parts
            try:
                places = [(int(part.start), int(part.end), STRANDS[part.strand]) for part in parts]
            except TypeError:  # an unknown end
                places = []
            if not places or any(part.ref is not None for part in parts):
                elsewhere += 1
                continue
            attributes = {name: ",".join(values) for name, values in feature.qualifiers.items()}
            codon_start = attributes.get("codon_start", "1")
            if feature.type == "CDS" and codon_start not in ("1", "2", "3"):
                raise InvalidValueError(
                    f"{path}, {feature.type} at {feature.location}: expected /codon_start of 1, "
                    f"2 or 3, received {codon_start!r:.80}"
                )
            phase = int(codon_start) - 1 if feature.type == "CDS" else None
            yield Raw(
                record.id,
                places,
                f"{path}, {feature.type} at {feature.location}",
                kind_of(feature.type, attributes),
                next((attributes[name] for name in NAMING if name in attributes), None),
                None,
                attributes,
                [phase] + [None] * (len(places) - 1),
                in_order=True,
            )
    if elsewhere:
        tell(f"{path}: {elsewhere:,} features in other records or without a position are skipped")
