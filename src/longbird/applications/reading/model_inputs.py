"""A question and its document as tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from longbird.applications.documents.characters import valid_unicode
from longbird.applications.documents.document import BLANK
from longbird.applications.documents.windows import question_windows
from longbird.errors import InvalidValueError


@dataclass(frozen=True)
class EncodedQuestion:
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

    def paragraphs(self, text: str) -> list[int]:
        """The first token of each paragraph of the document, which is `text`."""
        begins = (found.end() for found in BLANK.finditer(text))
        tokens = (bisect_right(self.ends, start, self.first, self.last) for start in begins)
        later = (token for token in tokens if self.first < token < self.last)
        return list(dict.fromkeys([self.first, *later]))

    def windows(self, length: int) -> list[range]:
        """Tokens of the document, such that a window with the question has at most `length`."""
        room = length - (len(self.ids) - (self.last - self.first))
        return [range(*each) for each in question_windows(self.first, self.last, room)]


def encode(
    pairs: Sequence[tuple[str, str]], places: Sequence[str], tokenizer: Any, length: int
) -> Iterator[EncodedQuestion]:
    """Questions and documents as tokens.

    Raises:
        ValueError: A question leaves less than half of `length` to the document.
    """
    asked, texts = ([valid_unicode(each) for each in some] for some in zip(*pairs, strict=True))
    encoded = tokenizer(
        asked, texts, return_offsets_mapping=True, return_token_type_ids=True, verbose=False
    )
    typed = "token_type_ids" in tokenizer.model_input_names
    for row, place in enumerate(places):
        ids, of = encoded["input_ids"][row], encoded.sequence_ids(row)
        inside = [number for number, part in enumerate(of) if part == 1]
        first, last = (inside[0], inside[-1] + 1) if inside else (len(ids), len(ids))
        around = len(ids) - (last - first)
        if around > length // 2:
            raise InvalidValueError(
                f"{place}: the question has {around:,} tokens, more than half of the {length:,} "
                "that are read at once; make it shorter"
            )
        offsets = encoded["offset_mapping"][row]
        yield EncodedQuestion(
            ids,
            encoded["token_type_ids"][row] if typed else [0] * len(ids),
            [start for start, _ in offsets],
            [end for _, end in offsets],
            first,
            last,
        )


def window_inputs(
    ids: Sequence[int], types: Sequence[int], first: int, last: int, start: int, stop: int
) -> dict[str, list[int]]:
    """What the model takes of a window, with what is around the document, which is global.

    Args:
        ids: Of all tokens.
        types: Of all tokens.
        first: The first of the document.
        last: The one behind it.
        start: The first of the window.
        stop: The one behind it.
    """
    before, after = slice(0, first), slice(last, len(ids))
    return {
        "input_ids": [*ids[before], *ids[start:stop], *ids[after]],
        "token_type_ids": [*types[before], *types[start:stop], *types[after]],
        "global_attention_mask": [1] * first + [0] * (stop - start) + [1] * (len(ids) - last),
    }


LEAST = 24
"""Tokens: positions count on from a shorter paragraph to the next."""


def joined(paragraphs: Sequence[int], last: int) -> list[int]:
    """The first token of each paragraph, short ones put together.

    If all of them counted anew, short ones would have the same few positions, and a model that
    sees them at once could not tell which word stands in which: of ten lines such as "Anna lives
    in Paris." with blank lines between them, the reader told one city right; it tells nine.

    Args:
        paragraphs: The first token of each.
        last: The one behind the last paragraph.

    Examples:
        >>> joined([10, 15, 60, 120, 130], 140)
        [10, 60]
        >>> joined([10, 15], 20)
        [10]
    """
    found = list(paragraphs[:1])
    for token in paragraphs[1:]:
        if token - found[-1] >= LEAST:
            found.append(token)
    if len(found) > 1 and last - found[-1] < LEAST:
        found.pop()
    return found


def columns(tokens: Sequence[int], first: int, start: int, stop: int) -> list[int]:
    """Where tokens of the document are among the inputs of a window; -1 for those of others.

    Examples:
        >>> columns([5, 8, 20], first=3, start=8, stop=16)
        [-1, 3, -1]
    """
    return [first + token - start if start <= token < stop else -1 for token in tokens] or [-1]


def positions(
    count: int, first: int, last: int, start: int, stop: int, paragraphs: Sequence[int], rows: int
) -> list[int]:
    """Positions of the tokens of a window, which count anew in every paragraph (see `joined`).

    The question keeps its own, and every paragraph has those behind it, as if it were alone.

    Args:
        count: Of all tokens.
        first: The first of the document.
        last: The one behind it.
        start: The first of the window.
        stop: The one behind it.
        paragraphs: The first token of each paragraph.
        rows: Of the table of positions; a longer paragraph begins again.

    Examples:
        >>> places = positions(91, 2, 90, 12, 90, [2, 42], 512)
        >>> places[:3], places[30:34], places[-2:]
        ([0, 1, 12], [40, 41, 2, 3], [49, 50])
    """
    inside: list[int] = []
    if stop > start:
        ahead = bisect_right(paragraphs, start)
        begins = joined([each for each in paragraphs[ahead - 1 :] if each < stop], stop)
        for begin, end in zip(begins, [*begins[1:], stop], strict=True):
            places = range(max(start - begin, 0), end - begin)
            inside += [first + place % (rows - first) for place in places]
    after = (inside[-1] + 1 if inside else first) % rows
    return [*range(first), *inside, *((after + more) % rows for more in range(count - last))]
