"""Splitting texts into tokens with positions, and into the parts that get vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.applications.documents import Document
from longbird.applications.documents.characters import valid_unicode
from longbird.applications.documents.sentences import sentences
from longbird.errors import InvalidValueError

UNITS = ("document", "paragraph", "sentence")
AT_ONCE = 2**20
"""Number of characters that are tokenized at once; the tokenizer keeps 100 bytes of each."""
GAP = re.compile(r"(?<=\S)\s")

Numbers = npt.NDArray[Any]
Range = tuple[int, int]
"""The index of the first character, and the index after the last."""


def units_of(text: str, unit: str) -> list[Range]:
    r"""Return the start and the end of each unit of a text, without surrounding whitespace.

    Examples:
        >>> units_of("One. Two.\n\nThree.", "paragraph")
        [(0, 9), (11, 17)]
        >>> units_of("One. Two.\n\nThree.", "sentence")
        [(0, 4), (5, 9), (11, 17)]
        >>> units_of("", "document"), units_of("", "sentence")
        ([(0, 0)], [])
    """
    if unit == "document":
        return [(0, len(text))]
    return Document("", text).paragraphs() if unit == "paragraph" else sentences(text)


@dataclass(frozen=True, eq=False)
class Tokenized:
    """The tokens of a text, without special tokens.

    Attributes:
        ids: int32 [n].
        starts: Index of the first character of each token, int64 [n].
        ends: Index after the last character of each token, int64 [n].
    """

    ids: Numbers
    starts: Numbers
    ends: Numbers

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.ids)

    def ranges(self, units: Sequence[Range]) -> tuple[Numbers, Numbers]:
        """Return the first token of each range of characters, and the one after its last."""
        given = np.array(units, dtype=np.int64).reshape(-1, 2)
        low = np.searchsorted(self.ends, given[:, 0], side="right")
        high = np.searchsorted(self.starts, given[:, 1], side="left")
        empty = given[:, 0] >= given[:, 1]
        return low, np.where(empty, low, np.maximum(high, low))

    def split_prompt(self, characters: int) -> tuple[Numbers, Tokenized]:
        """Return the token ids of the first characters, and the text after them."""
        first = int(np.searchsorted(self.ends, characters, side="right"))
        rest = [np.maximum(x[first:] - characters, 0) for x in (self.starts, self.ends)]
        return self.ids[:first], Tokenized(self.ids[first:], *rest)


def tokenized(text: str, tokenizer: Any) -> Tokenized:
    """Return the tokens of a text of any length; `tokenizer` is one of the tokenizers library."""
    parts: list[tuple[Any, Numbers]] = []
    for offset, piece in _pieces(text):
        found = tokenizer.encode(valid_unicode(piece), add_special_tokens=False)
        parts.append((found.ids, offset + np.array(found.offsets, np.int64).reshape(-1, 2)))
    ids = np.concatenate([np.array(ids, np.int32) for ids, _ in parts])
    offsets = np.maximum.accumulate(np.concatenate([offsets for _, offsets in parts]), axis=0)
    return Tokenized(ids, offsets[:, 0], offsets[:, 1])


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the ids of the special tokens before and after a text."""
    found = tokenizer.encode("a")
    inside = [number for number, special in enumerate(found.special_tokens_mask) if not special]
    if not inside:
        raise InvalidValueError("the tokenizer has no token for a letter, not even an unknown one")
    return found.ids[: inside[0]], found.ids[inside[-1] + 1 :]


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Cut a long text into pieces; each but the first begins with the space after a word."""
    start = 0
    while len(text) - start > AT_ONCE:
        gap = GAP.search(text, start + AT_ONCE - 2**12, start + AT_ONCE)
        end = gap.start() if gap else start + AT_ONCE
        yield start, text[start:end]
        start = end
    yield start, text[start:]
