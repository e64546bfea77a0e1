"""The tokens of a text, and the units that have a tag: words, or tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

PIECE = 2**20
"""Characters that the tokenizer reads at once, so that a book does not fill the memory."""


class Tokens(NamedTuple):
    """The tokens of a text without special ones, and where each begins and ends in it."""

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class Units(NamedTuple):
    """What has a tag: where it is in the text, its first token and its tag; labels of tokens."""

    starts: np.ndarray
    ends: np.ndarray
    at: np.ndarray
    truth: np.ndarray
    labels: np.ndarray
    widened: int = 0
    unseen: int = 0

    @classmethod
    def of_tokens(cls, tokens: Tokens, labels: np.ndarray) -> Units:
        """Every token that stands for characters is a unit."""
        at = np.flatnonzero(tokens.starts < tokens.ends)
        return cls(tokens.starts[at], tokens.ends[at], at, labels[at], labels)


def special_tokens(tokenizer: Any) -> tuple[np.ndarray, np.ndarray]:
    """The special tokens before and after a text."""
    found = tokenizer("a", return_special_tokens_mask=True)
    ids = np.array(found["input_ids"], dtype=np.int64)
    inside = [number for number, x in enumerate(found["special_tokens_mask"]) if not x]
    if not inside:  # a vocabulary in which "a" is nothing
        return ids[:1], ids[1:]
    return ids[: inside[0]], ids[inside[-1] + 1 :]


def tokens_of(text: str, tokenizer: Any) -> Tokens:
    """The tokens of a text, with the spaces that some tokenizers begin one with left out."""
    ids: list[int] = []
    offsets: list[np.ndarray] = [np.zeros((0, 2), dtype=np.int64)]
    begin = 0
    while begin < len(text):
        end = begin + PIECE
        if end < len(text):  # before a space, where tokens begin
            end = next((at for at in range(end, begin, -1) if text[at].isspace()), end)
        found = tokenizer(
            text[begin:end],
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        ids += found["input_ids"]
        offsets.append(np.array(found["offset_mapping"], dtype=np.int64).reshape(-1, 2) + begin)
        begin = end
    starts, ends = np.concatenate(offsets).T.copy()
    for number, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while start < end - 1 and text[start].isspace():
            start += 1
        starts[number] = start
    return Tokens(np.array(ids, dtype=np.int64), starts, ends)
