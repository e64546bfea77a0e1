"""Letters of DNA: normalizing and checking them, and the reverse complement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from longbird.errors import InvalidValueError

PLAIN = b"ACGTNacgtn"
AMBIGUOUS = "RYSWKMBDHVX"
"""IUPAC codes for one of several bases, and X, with which old programs mask; read as N."""
PROTEIN = "EFILPQJOZ*"
"""Letters of amino acids that are not codes of bases."""

_UPPER = str.maketrans("acgtnuU" + AMBIGUOUS + AMBIGUOUS.lower(), "ACGTNTT" + "N" * 22)
_OTHER = str.maketrans("ACGTN", "TGCAN")


def plain(bases: str) -> str:
    """Return bases in capitals, with T for U, and N for codes of several bases.

    Examples:
        >>> plain("acgRuN")
        'ACGNTN'
    """
    return bases.translate(_UPPER)


def reverse_complement(bases: str) -> str:
    """Return the bases of the other strand in its reading direction.

    Args:
        bases: Bases in any case; codes for several bases become N.

    Raises:
        ValueError: There are letters that are not codes of DNA.

    Examples:
        >>> reverse_complement("AACGTN")
        'NACGTT'
    """
    bases = plain(bases)
    check_plain(bases)
    return opposite(bases)


def opposite(bases: str) -> str:
    """Return the reverse complement of bases that `plain` has converted."""
    return bases.translate(_OTHER)[::-1]


def check_plain(bases: str) -> None:
    """Raise an error if bases have letters other than A, C, G, T and N."""
    if strange := bases.translate({ord(base): None for base in "ACGTN"}):
        shown = ", ".join(repr(letter) for letter in sorted(set(strange))[:8])
        raise InvalidValueError(f"expected bases, A, C, G, T and N; received {shown}")


def check_letters(strange: Mapping[str, int], where: str) -> None:
    """Raise an error for letters (counted in capitals) that DNA does not have."""
    if protein := [letter for letter in PROTEIN if letter in strange]:
        raise InvalidValueError(
            f"{where} has the letters {', '.join(protein)}, which are amino acids: it is a "
            "protein; expected DNA"
        )
    if "-" in strange or "." in strange:
        raise InvalidValueError(
            f"{where} has gaps (- or .): it is an alignment; expected plain DNA"
        )
    if wrong := sorted(set(strange) - set(AMBIGUOUS + "U")):
        shown = ", ".join(repr(letter) for letter in wrong[:8])
        raise InvalidValueError(
            f"{where} has {shown}; expected bases: A, C, G, T, N or codes of IUPAC"
        )


def notes_on(letters: Counter[str], total: int, file: str) -> list[str]:
    """Return notes about counted letters of a file that are read as other letters."""
    notes: list[str] = []
    codes = {letter: number for letter, number in sorted(letters.items()) if letter != "U"}
    if 2 * sum(codes.values()) > total:
        raise InvalidValueError(
            f"{file}: {sum(codes.values()):,} of {total:,} letters are {', '.join(codes)}, and "
            "hardly any are A, C, G or T. It looks like a protein; expected DNA"
        )
    if codes:
        each = ", ".join(f"{letter} {number:,}" for letter, number in codes.items())
        notes.append(f"{sum(codes.values()):,} letters of {total:,} are read as N: {each}")
    if letters["U"]:
        notes.append(f"{letters['U']:,} letters of {total:,} are U (RNA), and read as T")
    return notes
