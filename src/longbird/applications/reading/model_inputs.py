"""Questions and documents as inputs of a model."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longbird.applications.documents.characters import valid_unicode
from longbird.applications.documents.document import BLANK
from longbird.applications.documents.windows import question_windows
from longbird.errors import InvalidValueError

SHORT = 24
"""Number of tokens below which paragraphs are joined before their positions restart."""


@dataclass(frozen=True)
class EncodedQuestion:
    """The tokens of a question and a document, with the special tokens around them.

    Attributes:
        ids: Token ids.
        types: Token types.
        starts: Index of the first character of each token in the document.
        ends: Index after the last character of each token.
        first: Index of the first token of the document.
        last: Index after the last token of the document.
    """

    ids: list[int]
    types: list[int]
    starts: list[int]
    ends: list[int]
    first: int
    last: int

    def tokens_of(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the first and the last token of a span of characters, or None."""
        low = bisect_right(self.ends, start, self.first, self.last)
        high = bisect_left(self.starts, end, self.first, self.last) - 1
        return (low, high) if low <= high else None

    def paragraphs(self, text: str) -> list[int]:
        """Return the first token of each paragraph of the document, which is `text`."""
        begins = (found.end() for found in BLANK.finditer(text))
        tokens = (bisect_right(self.ends, start, self.first, self.last) for start in begins)
        later = (token for token in tokens if self.first < token < self.last)
        return list(dict.fromkeys([self.first, *later]))

    def row(self, text: str) -> dict[str, Any]:
        """Return the fields by which the document, which is `text`, is read and answered."""
        return {
            "starts": self.starts,
            "ends": self.ends,
            "input_ids": self.ids,
            "token_type_ids": self.types,
            "first": self.first,
            "last": self.last,
            "paragraphs": self.paragraphs(text),
        }

    def windows(self, length: int) -> list[range]:
        """Return the windows of the document that have, with the question, `length` tokens."""
        room = length - (len(self.ids) - (self.last - self.first))
        return [range(*each) for each in question_windows(self.first, self.last, room)]


def encode(
    pairs: Sequence[tuple[str, str]], places: Sequence[str], tokenizer: Any, length: int
) -> Iterator[EncodedQuestion]:
    """Tokenize questions with their documents, of which `length` tokens are read at once.

    In error messages, pairs are named by their `places`.

    Raises:
        ValueError: A question leaves less than half of `length` to the document.
    """
    asked, texts = ([valid_unicode(each) for each in some] for some in zip(*pairs, strict=True))
    encoded = tokenizer(
        asked, texts, return_offsets_mapping=True, return_token_type_ids=True, verbose=False
    )
    typed = "token_type_ids" in tokenizer.model_input_names
    for row, place in enumerate(places):
        ids, parts = encoded["input_ids"][row], encoded.sequence_ids(row)
        inside = [number for number, part in enumerate(parts) if part == 1]
        first, last = (inside[0], inside[-1] + 1) if inside else (len(ids), len(ids))
        around = len(ids) - (last - first)
        if around > length // 2:
            raise InvalidValueError(
                f"{place}: the question has {around:,} tokens, more than half of the {length:,} "
                "that are read at once; make it shorter"
            )
        offsets = encoded["offset_mapping"][row]
        types = encoded["token_type_ids"][row] if typed else [0] * len(ids)
        starts, ends = ([each[side] for each in offsets] for side in (0, 1))
        yield EncodedQuestion(ids, types, starts, ends, first, last)


def window_inputs(
    row: Mapping[str, Any], start: int, stop: int, rows: int | None = None
) -> dict[str, list[int]]:
    """Return the inputs for a window of a document; the tokens around the document are global.

    Args:
        row: Document with its question, from `EncodedQuestion.row`, and its `sentence_tokens`.
        start: First token of the window.
        stop: Token after the window.
        rows: Number of positions of the model, if positions restart in each paragraph.
    """
    ids, types = row["input_ids"], row["token_type_ids"]
    first, last = row["first"], row["last"]
    inputs = {
        "input_ids": [*ids[:first], *ids[start:stop], *ids[last:]],
        "token_type_ids": [*types[:first], *types[start:stop], *types[last:]],
        "global_attention_mask": [1] * first + [0] * (stop - start) + [1] * (len(ids) - last),
        "sentence_positions": _columns(row["sentence_tokens"], first, start, stop),
        "paragraph_positions": _columns(row["paragraphs"], first, start, stop),
    }
    if rows is not None:
        inputs["position_ids"] = positions(
            len(ids), first, last, start, stop, row["paragraphs"], rows
        )
    return inputs


def _joined(paragraphs: Sequence[int], last: int) -> list[int]:
    """Return the first token of each paragraph up to `last`, with short paragraphs joined.

    If positions restarted in every short paragraph, all of them would have the same few
    positions, and a model that sees them at once could not tell which word belongs to which
    paragraph: of ten lines such as "Anna lives in Paris." with blank lines between them, the
    reader told one city right; with joined paragraphs it tells nine.

    Examples:
        >>> _joined([10, 15, 60, 120, 130], 140)
        [10, 60]
        >>> _joined([10, 15], 20)
        [10]
    """
    found = list(paragraphs[:1])
    for token in paragraphs[1:]:
        if token - found[-1] >= SHORT:
            found.append(token)
    if len(found) > 1 and last - found[-1] < SHORT:
        found.pop()
    return found


def _columns(tokens: Sequence[int], first: int, start: int, stop: int) -> list[int]:
    """Return the columns of document tokens among the inputs of a window; -1 if outside of it.

    Examples:
        >>> _columns([5, 8, 20], first=3, start=8, stop=16)
        [-1, 3, -1]
    """
    return [first + token - start if start <= token < stop else -1 for token in tokens] or [-1]


def positions(
    count: int, first: int, last: int, start: int, stop: int, paragraphs: Sequence[int], rows: int
) -> list[int]:
    """Return the positions of the tokens of a window, which restart in each paragraph.

    The question keeps its positions, and every paragraph has those after it, as if it were the
    only one; short paragraphs are joined.

    The document has the tokens from `first` to `last` of `count`, and the window those from
    `start` to `stop`. After `rows`, the positions of the model, those of a paragraph restart too.

    Examples:
        >>> places = positions(91, 2, 90, 12, 90, [2, 42], 512)
        >>> places[:3], places[30:34], places[-2:]
        ([0, 1, 12], [40, 41, 2, 3], [49, 50])
    """
    inside: list[int] = []
    if stop > start:
        ahead = bisect_right(paragraphs, start)
        begins = _joined([each for each in paragraphs[ahead - 1 :] if each < stop], stop)
        for begin, end in zip(begins, [*begins[1:], stop], strict=True):
            places = range(max(start - begin, 0), end - begin)
            inside += [first + place % (rows - first) for place in places]
    after = (inside[-1] + 1 if inside else first) % rows
    return [*range(first), *inside, *((after + more) % rows for more in range(count - last))]
