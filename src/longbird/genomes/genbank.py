"""GenBank files, read by Biopython."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from longbird.genomes.extra import need
from longbird.genomes.fasta import Found, unpacked


def records(path: str, *, features: bool) -> Iterator[Any]:
    """The records of a GenBank file, one after the other, as Biopython's SeqRecord.

    Raises:
        ValueError: It is damaged, or cut off.
    """
    scanner = need("Bio.GenBank.Scanner", "reading GenBank").GenBankScanner()
    warned = need("Bio", "reading GenBank").BiopythonParserWarning
    with unpacked(path) as opened, warnings.catch_warnings():
        # Most warnings are about columns. Two say that something is missing.
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", ".*(Premature end|Expected sequence length)", warned)
        lines = io.TextIOWrapper(opened, encoding="utf-8", errors="replace")  # pyright: ignore
        try:
            yield from scanner.parse_records(lines, do_features=features)
        except (warned, ValueError, AssertionError, IndexError) as error:
            if isinstance(error.__cause__, EOFError) or "gzip" in str(error):
                raise
            raise ValueError(f"{path} is damaged or was cut off: {error}") from error
        finally:
            lines.detach()


def scan(path: str, take: Callable[[str, bytes], Any]) -> Found:
    """Reads the sequences of a GenBank file and checks them.

    Args:
        path: Of the file; gzip is unpacked.
        take: Is called with the name of a sequence and its bases.

    Raises:
        ValueError: It is damaged, has no sequences, or not of DNA.
    """
    found = Found()
    undefined = need("Bio.Seq", "reading GenBank").UndefinedSequenceError
    for record in records(path, features=False):
        if not record.id or any(letter.isspace() for letter in record.id):
            raise ValueError(f"{path} has a record without a name, or with a space in it")
        found.add(record.id, path)
        try:
            bases = bytes(record.seq)
        except undefined:
            raise ValueError(
                f"{path}: {record.id} comes without its bases (no ORIGIN). Download it with them: "
                "at NCBI, choose 'GenBank (full)'"
            ) from None
        found.count(record.id, bases, path)
        take(record.id, bases)
        if record.annotations.get("topology") == "circular":
            found.circular.append(record.id)
    found.finish(path)
    return found
