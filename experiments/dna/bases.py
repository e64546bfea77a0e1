"""DNA as numbers: A, C, G and T are 0 to 3, and everything else is 4."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np

UNKNOWN = 4
"""The number of N, and of all that is neither A, C, G nor T."""
LETTERS = np.frombuffer(b"ACGTN", np.uint8)

_CODES = np.full(256, UNKNOWN, np.uint8)
_CODES[list(b"ACGT")] = _CODES[list(b"acgt")] = range(4)
_COMPLEMENT = np.array([3, 2, 1, 0, UNKNOWN], np.uint8)


def codes(text: str) -> np.ndarray:
    """Return the numbers of bases in upper or lower case.

    Examples:
        >>> codes("ACgtNR")
        array([0, 1, 2, 3, 4, 4], dtype=uint8)
    """
    return _CODES[np.frombuffer(text.encode("ascii"), np.uint8)]


def letters(sequence: np.ndarray) -> str:
    """Return the letters of numbers.

    Examples:
        >>> letters(reverse_complement(codes("AACGN")))
        'NCGTT'
    """
    return LETTERS[sequence].tobytes().decode("ascii")


def complement(sequence: np.ndarray) -> np.ndarray:
    """Return the base on the other strand at each position."""
    return _COMPLEMENT[sequence]


def reverse_complement(sequence: np.ndarray) -> np.ndarray:
    """Return the other strand in its own direction, along the last axis."""
    return _COMPLEMENT[sequence[..., ::-1]]


def ending_words(sequence: np.ndarray, longest: int) -> Iterator[np.ndarray]:
    """For each length from 1 on, return the number of the word that ends at each base, or -1.

    A number has two bits for each base, with the last base in the lowest bits.

    Args:
        sequence: [..., bases]
        longest: The last length.

    Examples:
        >>> [words.tolist() for words in ending_words(codes("CANT"), 2)]
        [[1, 0, -1, 3], [-1, 4, -1, -1]]
    """
    known = sequence != UNKNOWN
    words = np.where(known, sequence.astype(np.int64), -1)
    yield words
    for more in range(1, longest):
        words = words.copy()
        words[..., :more] = -1
        first, whole = sequence[..., :-more], (words[..., more:] >= 0) & known[..., :-more]
        longer = words[..., more:] + (first.astype(np.int64) << 2 * more)
        words[..., more:] = np.where(whole, longer, -1)
        yield words


def words(sequence: np.ndarray, length: int) -> np.ndarray:
    """Return the number of the word that begins at each base, or -1 if it has an unknown base.

    Examples:
        >>> words(codes("AACN"), 2)
        array([ 0,  1, -1])
    """
    *_, last = ending_words(sequence, length)
    return last[..., length - 1 :]


def read_fasta(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the titles and sequences of a file, plain or gzipped."""
    from Bio.SeqIO.FastaIO import SimpleFastaParser

    opened = gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="ascii")  # noqa: SIM115
    with opened as file:
        for title, text in SimpleFastaParser(file):
            yield title, codes(text)
