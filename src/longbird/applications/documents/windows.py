"""Documents longer than the model: windows that overlap, so that every token has context.

Of two windows that share a token, it belongs to the one where it is farther from the edge.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

SHARED = 4
"""A window shares at least one of so many parts of it with the next."""
LONG, LONG_SHARED = 1024, 16
"""From so many tokens on, windows of questions share one of so many parts."""


def windows(first: int, last: int, size: int, shared: int = SHARED) -> list[tuple[int, int]]:
    """Where windows over the tokens from `first` to before `last` begin and end.

    All have `size` tokens if there is more than one, and are spread evenly; two neighbours share
    at least one of `shared` parts.

    Examples:
        >>> windows(1, 9, 8)
        [(1, 9)]
        >>> windows(0, 18, 8)
        [(0, 8), (5, 13), (10, 18)]
    """
    more = last - first - size
    if more <= 0:
        return [(first, last)]
    step = max(1, size - size // shared)
    steps = -(-more // step)
    begins = [first + more * number // steps for number in range(steps + 1)]
    return [(begin, begin + size) for begin in begins]


def question_windows(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """The windows in which the document of a question is read: long ones share a sixteenth.

    Answers are short, and what two windows share is read twice.

    Examples:
        >>> question_windows(0, 7000, 4000)
        [(0, 4000), (3000, 7000)]
        >>> question_windows(0, 600, 400)
        [(0, 400), (200, 600)]
    """
    return windows(first, last, size, LONG_SHARED if size >= LONG else SHARED)


def owned(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The tokens that belong to each window: each token to one, that where it has most context.

    Examples:
        >>> owned([(0, 8), (5, 13), (10, 18)])
        [(0, 6), (6, 11), (11, 18)]
    """
    inner = [(end + begin) // 2 for (_, end), (begin, _) in itertools.pairwise(places)]
    edges = [places[0][0], *inner, places[-1][1]]
    return list(itertools.pairwise(edges))
