"""A question and its document as tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from longbird.reading.windows import windows


@dataclass(frozen=True)
class Encoded:
    """A question and a document as tokens: what comes before the document, it, and what follows.

    Attributes:
        ids: All tokens.
        types: Their token types.
        starts: The first character of each, in the document.
        ends: The character behind each.
        first: The number of the document's first token.
        last: The number behind its last token.
    """

    ids: list[int]
    types: list[int]
    starts: list[int]
    ends: list[int]
    first: int
    last: int

    def tokens_of(self, start: int, end: int) -> tuple[int, int] | None:
        """The first and the last token that have characters of a span; None if none has."""
        low = bisect_right(self.ends, start, self.first, self.last)
        high = bisect_left(self.starts, end, self.first, self.last) - 1
        return (low, high) if low <= high else None

    def windows(self, length: int) -> list[range]:
        """Tokens of the document, such that a window with the question has at most `length`."""
        room = length - (len(self.ids) - (self.last - self.first))
        return [range(*each) for each in windows(self.first, self.last, room)]


def encode(
    pairs: Sequence[tuple[str, str]], places: Sequence[str], tokenizer: Any, length: int
) -> Iterator[Encoded]:
    """Questions and documents as tokens.

    Raises:
        ValueError: A question leaves less than half of `length` to the document.
    """
    asked, texts = zip(*pairs, strict=True)
    encoded = tokenizer(
        list(asked), list(texts), return_offsets_mapping=True, return_token_type_ids=True,
        verbose=False,
    )  # fmt: skip
    typed = "token_type_ids" in tokenizer.model_input_names
    for row, place in enumerate(places):
        ids, of = encoded["input_ids"][row], encoded.sequence_ids(row)
        inside = [number for number, part in enumerate(of) if part == 1]
        first, last = (inside[0], inside[-1] + 1) if inside else (len(ids), len(ids))
        around = len(ids) - (last - first)
        if around > length // 2:
            raise ValueError(
                f"{place}: the question has {around:,} tokens, more than half of the "
                f"{length:,} of --length; make it shorter, or --length larger"
            )
        offsets = encoded["offset_mapping"][row]
        yield Encoded(
            ids,
            encoded["token_type_ids"][row] if typed else [0] * len(ids),
            [start for start, _ in offsets],
            [end for _, end in offsets],
            first,
            last,
        )
