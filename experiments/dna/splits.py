"""Splits: whole sequences, or arcs of one sequence with a gap between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

TRAIN, VALIDATION, TEST, GAP = 0, 1, 2, -1
"""Sides."""
PARTS = 5


def by_fifth(
    length: int, held_out: int, gap: int, *, circular: bool, validation: float = 0.05
) -> np.ndarray:
    """Return the side of each base of one sequence, [bases].

    One contiguous fifth is held out. The validation bases are a stretch before it (after it, if it
    is
    the first of a linear sequence). Between sides there is a gap. If it is as long as a window, no
    windows on different sides overlap.

    Args:
        length: Number of bases.
        held_out: Number of the held-out fifth, 0 to 4.
        gap: Number of bases.
        circular: Whether the sequence is circular.
        validation: Share of all bases for validation.

    Examples:
        >>> by_fifth(20, 4, 1, circular=True, validation=0.1).tolist()
        [-1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 1, 1, -1, 2, 2, 2, 2]
    """
    if not 0 <= held_out < PARTS:
        raise ValueError(f"held_out must be 0 to {PARTS - 1}, received {held_out}")
    begin, end = length * held_out // PARTS, length * (held_out + 1) // PARTS
    chosen = round(length * validation)
    if 2 * (chosen + 3 * gap) > length - (end - begin):
        raise ValueError(
            f"a gap of {gap} bases is too long for a sequence of {length}: little would be left "
            "to learn from"
        )
    before = begin - gap - chosen if circular or begin >= chosen + gap else end + gap
    sides = np.full(length, TRAIN, np.int8)

    def put(first: int, last: int, side: int) -> None:
        places = np.arange(first, last)
        sides[places % length if circular else places[(places >= 0) & (places < length)]] = side

    put(begin - gap, end + gap, GAP)
    put(before - gap, before + chosen + gap, GAP)
    put(before, before + chosen, VALIDATION)
    put(begin, end, TEST)
    return sides


def by_name(
    names: np.ndarray, test: Collection[str], validation: Collection[str] = ()
) -> np.ndarray:
    """Return the side of each example by its chromosome or species.

    Examples:
        >>> by_name(np.array(["2L", "2R", "X"]), test=["2R"], validation=["X"]).tolist()
        [0, 2, 1]
    """
    for name in (*test, *validation):
        if name not in names:
            raise ValueError(f"nothing is of {name!r}, only of {sorted(set(names.tolist()))}")
    sides = np.full(len(names), TRAIN, np.int8)
    sides[np.isin(names, list(validation))] = VALIDATION
    sides[np.isin(names, list(test))] = TEST
    return sides


def stretches(chosen: np.ndarray) -> Iterator[tuple[int, int]]:
    """Return the starts and ends of runs of chosen bases.

    Examples:
        >>> list(stretches(np.array([True, True, False, True])))
        [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
