"""Texts as tokens, cut to what a model reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

LETTERS = 200
"""Characters of a token at most, for the part of a text that the tokenizer gets to see."""


def cut_to(length: int, texts: Sequence[str], tokenizer: Any) -> Iterator[tuple[list[int], int]]:
    """The first tokens of each text with the special ones, and how many it has without a limit.

    That is estimated by the beginning where a text is so long that the tokenizer would read 300 MB
    to keep 4,096 tokens.
    """
    stripped = [text.strip() for text in texts]
    begins = [text[: LETTERS * length] for text in stripped]
    encoded = tokenizer(begins, verbose=False)["input_ids"]
    for whole, begin, text in zip(encoded, begins, stripped, strict=True):
        ids = whole
        if len(whole) > length:
            ids = tokenizer(begin, truncation=True, max_length=length)["input_ids"]
        yield ids, len(whole) * len(text) // max(1, len(begin))
