"""Which rows are held out: the same ones for the same seed, near-duplicates on one side."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from longbird.errors import InvalidValueError


def held_out(groups: Sequence[str], fraction: float, seed: int) -> np.ndarray:
    """Which rows are held out, bool [rows]: whole groups, about that fraction of the rows.

    Args:
        groups: The group of each row; rows of one group stay on one side.
        fraction: Of the rows.
        seed: Decides which groups.

    Raises:
        ValueError: The groups are too few to be on two sides.

    Examples:
        >>> held_out(["a", "a", "b", "c", "d"], 0.2, seed=0).sum()
        np.int64(1)
    """
    return lowest(np.array([draw(group, seed) for group in groups], dtype=np.uint64), fraction)


def draw(group: str, seed: int) -> int:
    """What decides whether a group is held out: a number of 64 bits that is its own.

    By the hash of its name, so that a row added later moves no other.
    """
    return int.from_bytes(hashlib.sha256(f"{seed}:{group}".encode()).digest()[:8], "big")


def lowest(draws: np.ndarray, fraction: float) -> np.ndarray:
    """The rows of the groups with the lowest draws, about that fraction of all, bool [rows]."""
    groups, members = np.unique(draws, return_inverse=True)
    if len(groups) < 2:
        raise InvalidValueError(
            f"rows are held out by group, and all {len(draws)} rows are of one group: give a "
            "file with `validation`, or more rows"
        )
    sizes = np.bincount(members)
    wanted = fraction * len(draws)
    chosen, taken = 1, sizes[0]
    for size in sizes[1:-1]:
        if taken + size / 2 > wanted:
            break
        chosen += 1
        taken += size
    return members < chosen


def linked(draws: Sequence[int], links: Sequence[int], seed: int) -> np.ndarray:
    """The draws, with one for all groups that are linked, if only by others.

    Args:
        draws: Of the group of each row.
        links: Draws of groups that stay together, in pairs: one after the other.
        seed: Of the draw of groups that are linked.

    Examples:
        >>> one, two, three, two_again = linked([1, 2, 3, 2], [3, 7, 7, 1], seed=0)
        >>> one == three, two == two_again == 2
        (np.True_, np.True_)
    """
    own, pairs = np.array(draws, np.uint64), np.array(links, np.uint64)
    names, at = np.unique(np.concatenate([own, pairs]), return_inverse=True)
    ends = at[len(own) :].reshape(-1, 2).T
    graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), (len(names),) * 2)
    _, component = connected_components(graph, directed=False)
    _, first, size = np.unique(component, return_index=True, return_counts=True)
    # Drawn anew: the lowest draw of many would nearly always be the lowest of all.
    drawn = np.array(
        [
            names[at] if alone else draw(str(names[at]), seed)
            for at, alone in zip(first.tolist(), size == 1, strict=True)
        ],
        np.uint64,
    )
    return drawn[component[at[: len(own)]]]
