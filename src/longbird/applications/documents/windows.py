"""Splitting sequences of tokens into overlapping windows that a model can read.

A token shared by two windows belongs to the one in which it has more context.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

OVERLAP = 4
"""Windows share at least one part in this many with their neighbours."""
LONG, LONG_OVERLAP = 1024, 16
"""The same for windows of questions from this number of tokens on."""


def windows(first: int, last: int, size: int, overlap: int = OVERLAP) -> list[tuple[int, int]]:
    """Return the start and the end of each window over the tokens from `first` to `last`.

    If there is more than one window, all have `size` tokens and are spread evenly. Neighbours
    share at least `size // overlap` tokens.

    Examples:
        >>> windows(1, 9, 8)
        [(1, 9)]
        >>> windows(0, 18, 8)
        [(0, 8), (5, 13), (10, 18)]
    """
    excess = last - first - size
    if excess <= 0:
        return [(first, last)]
    step = max(1, size - size // overlap)
    steps = -(-excess // step)
    starts = [first + excess * number // steps for number in range(steps + 1)]
    return [(start, start + size) for start in starts]


def question_windows(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """Return the windows of a document that is read with a question.

    Long windows overlap by a sixteenth only: answers are short, and shared tokens are read twice.

    Examples:
        >>> question_windows(0, 7000, 4000)
        [(0, 4000), (3000, 7000)]
        >>> question_windows(0, 600, 400)
        [(0, 400), (200, 600)]
    """
    return windows(first, last, size, LONG_OVERLAP if size >= LONG else OVERLAP)


def owned(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the tokens that belong to each window, such that each token belongs to one.

    Examples:
        >>> owned([(0, 8), (5, 13), (10, 18)])
        [(0, 6), (6, 11), (11, 18)]
    """
    inner = [(end + start) // 2 for (_, end), (start, _) in itertools.pairwise(places)]
    return list(itertools.pairwise([places[0][0], *inner, places[-1][1]]))
