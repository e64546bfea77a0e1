"""Number the segments of a text, its sentences or paragraphs, for BigBird-ETC.

The rule for sentences is simple: segments only decide which tokens share a global token, so that a
missing or additional boundary changes little. It needs no model, no download and no other package.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from longbird.errors import InvalidTypeError, InvalidValueError

BEFORE_NAMES = frozenset(
    "al capt cf col dr ed eds gen hon jr lt mr mrs ms prof rev sgt sr st vs".split()
)
BEFORE_NUMBERS = frozenset(
    "approx art arts ca ch eq eqs fig figs no nos p pp sec secs vol vols "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
"""Abbreviations; a full stop after one of them does not end a sentence."""

# A mark, closing characters, space, opening characters, and the first character of a sentence.
# Marks of Chinese, Japanese and Hindi need no space after them, and empty lines need no mark. A
# run of marks is only tried from its first one, because trying each would take quadratic time.
END = re.compile(
    r"""(?<![.!?…؟])[.!?…؟]+["'”’»)\]]*(?=\s+["'“‘«(\[¿¡]*(\S))"""  # noqa: RUF001
    r"|[。！？।॥]+[”’」』）]*"  # noqa: RUF001
    r"|\n[^\S\n]*(?=\n)"
)
WORD = re.compile(r"[\w.]+$")
INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")


def segments(
    text: str,
    offsets: Iterable[Any],
    by: Literal["sentence", "paragraph"] = "sentence",
    most: int | None = None,
) -> list[int]:
    """Return the segment of every token of a text, the `segment_ids` of BigBird-ETC.

    Paragraphs are separated by empty lines, or by line ends where no line is empty. Sentences end
    at `.`, `!`, `?` and similar marks before a space and a character that is not a lowercase
    letter, and at empty lines. The full stops of initials (J. Smith, U.S.) and of abbreviations
    such as Dr., Fig. and et al. do not end a sentence.

    Args:
        text: The text.
        offsets: The start and the end of every token in the text, which tokenizers return with
            `return_offsets_mapping=True`. A token without text, (0, 0) or None, has no segment. In
            a pair of texts, use None for the tokens of the other one.
        by: "sentence" or "paragraph".
        most: Maximum number of segments, `num_global_tokens` of the model; neighbours are merged.

    Returns:
        A number for each token, from 0 without gaps, -1 for tokens without text.

    Raises:
        TypeError: The text, an offset or `most` is of another type.
        ValueError: `by` is another word, `most` is below 1, or an offset is beyond the text.

    Examples:
        >>> import longbird as lb
        >>> text = "Dr. Low saw it. She left!"
        >>> words = [(0, 3), (4, 7), (8, 11), (12, 14), (14, 15), (16, 19), (20, 24), (24, 25)]
        >>> lb.segments(text, [(0, 0), *words, (0, 0)])
        [-1, 0, 0, 0, 0, 0, 1, 1, 1, -1]
    """
    if not isinstance(text, str):
        raise InvalidTypeError(f"text must be a str, received {type(text).__name__}")
    if most is not None and not isinstance(most, int):
        raise InvalidTypeError(f"most must be an int or None, received {type(most).__name__}")
    if most is not None and most < 1:
        raise InvalidValueError(f"most must be at least 1, received {most}")
    ends = [end for _, end in spans(text, by)]
    found: list[int] = []
    number, names = 0, dict[int, int]()
    for start, end in _pairs(offsets):
        if end <= start:
            found.append(-1)
            continue
        if start < 0 or end > len(text):
            raise InvalidValueError(
                f"a token must end within the {len(text)} characters of the text, received the "
                f"offset {(start, end)}; are these the offsets of this text?"
            )
        if number and end <= ends[number - 1]:
            number = 0  # offsets that go back, as those of several windows do
        while end > ends[number]:
            number += 1
        found.append(names.setdefault(number, len(names)))
    if most is not None and len(names) > most:
        found = [-1 if i < 0 else i * most // len(names) for i in found]
    return found


def _pairs(offsets: Iterable[Any]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of every token, (0, 0) for None."""
    given: Any = offsets.tolist() if hasattr(offsets, "tolist") else offsets  # type: ignore[attr-defined]
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise InvalidTypeError(
            "offsets must be pairs (start, end), as a tokenizer gives with "
            f"return_offsets_mapping=True, received {type(offsets).__name__}"
        )
    for number, offset in enumerate(given):
        try:
            start, end = (0, 0) if offset is None else map(operator.index, offset)
        except (TypeError, ValueError):
            raise InvalidTypeError(
                "offsets must be pairs of integers (start, end), or None, of one text; received "
                f"{offset!r:.60} for token {number}"
            ) from None
        yield start, end


def spans(text: str, by: str) -> list[tuple[int, int]]:
    """Return the starts and ends of the segments of a text, which cover the whole text."""
    if by == "paragraph":
        breaks = [m.end() for m in re.finditer(r"\n\s*\n", text)]
        ends = breaks or [m.end() for m in re.finditer(r"\n", text)]
    elif by == "sentence":
        ends = list(_sentence_ends(text))
    else:
        raise InvalidValueError(f'by must be "sentence" or "paragraph", received {by!r}')
    ends = [end for end in ends if end < len(text)] + [len(text)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _sentence_ends(text: str) -> Iterator[int]:
    for mark in END.finditer(text):
        following = mark[1] or ""
        if following.islower():
            continue
        if re.match(r"\.(?!\.)", mark[0]):  # one full stop, which may shorten a word
            word = WORD.search(text, max(mark.start() - 40, 0), mark.start())
            last = "" if word is None else word[0].lstrip(".")
            number = following.isdigit() and last.lower() in BEFORE_NUMBERS
            if number or last.lower() in BEFORE_NAMES or INITIALS.fullmatch(last):
                continue
        yield mark.end()
