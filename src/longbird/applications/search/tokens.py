"""A text as tokens that know where they stand in it, however long it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.applications.documents.characters import valid_unicode
from longbird.errors import InvalidValueError

AT_ONCE = 2**20
"""Characters that become tokens at once; of each, the tokenizer keeps a hundred bytes."""
GAP = re.compile(r"(?<=\S)\s")

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Tokenized:
    """The tokens of a text, without those that a model wants around it.

    Attributes:
        ids: int32 [n].
        starts: int64 [n], the first character of each.
        ends: int64 [n], the one behind its last.
    """

    ids: Numbers
    starts: Numbers
    ends: Numbers

    def __len__(self) -> int:
        """How many there are."""
        return len(self.ids)

    def ranges(self, units: Sequence[tuple[int, int]]) -> tuple[Numbers, Numbers]:
        """For each range of characters: the first token with some of them, and behind the last."""
        given = np.array(units, dtype=np.int64).reshape(-1, 2)
        low = np.searchsorted(self.ends, given[:, 0], side="right")
        high = np.searchsorted(self.starts, given[:, 1], side="left")
        empty = given[:, 0] >= given[:, 1]
        return low, np.where(empty, low, np.maximum(high, low))

    def behind(self, characters: int) -> tuple[Numbers, Tokenized]:
        """The ids of tokens that end in the first characters, and the text behind these alone."""
        first = int(np.searchsorted(self.ends, characters, side="right"))
        rest = [np.maximum(x[first:] - characters, 0) for x in (self.starts, self.ends)]
        return self.ids[:first], Tokenized(self.ids[first:], *rest)


def tokenized(text: str, tokenizer: Any) -> Tokenized:
    """The tokens of a text; `tokenizer` is of the library tokenizers."""
    parts = [
        Tokenized(np.array(found.ids, np.int32), *(offset + x for x in _offsets(found)))
        for offset, piece in _pieces(text)
        for found in [tokenizer.encode(valid_unicode(piece), add_special_tokens=False)]
    ]
    ids, starts, ends = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("ids", "starts", "ends")
    )
    return Tokenized(ids, np.maximum.accumulate(starts), np.maximum.accumulate(ends))


def around(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The ids that a model wants before a text, and behind it."""
    found = tokenizer.encode("a")
    inside = [number for number, special in enumerate(found.special_tokens_mask) if not special]
    if not inside:
        raise InvalidValueError("the tokenizer has no token for a letter, not even an unknown one")
    return found.ids[: inside[0]], found.ids[inside[-1] + 1 :]


def _offsets(found: Any) -> tuple[Numbers, Numbers]:
    offsets = np.array(found.offsets, np.int64).reshape(-1, 2)
    return offsets[:, 0], offsets[:, 1]


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """A long text in pieces, each but the first beginning with the space after a word."""
    start = 0
    while len(text) - start > AT_ONCE:
        gap = GAP.search(text, start + AT_ONCE - 2**12, start + AT_ONCE)
        end = gap.start() if gap else start + AT_ONCE
        yield start, text[start:end]
        start = end
    yield start, text[start:]
