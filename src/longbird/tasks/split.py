"""Which rows are held out: the same ones for the same seed, near-duplicates on one side."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def together(groups: Sequence[str | Sequence[str]]) -> list[str]:
    """One group for each row: rows that share one of their groups, or are linked by such rows.

    Examples:
        >>> together(["a", ("b", "c"), ("c", "d"), "d", "a"])
        ['a', 'b', 'b', 'b', 'a']
    """
    several = [(each,) if isinstance(each, str) else tuple(each) for each in groups]
    names = list(dict.fromkeys(name for row in several for name in row))
    number = {name: at for at, name in enumerate(names)}
    links = [(number[row[0]], number[name]) for row in several for name in row]
    graph = coo_array((np.ones(len(links)), tuple(zip(*links, strict=True))), (len(names),) * 2)
    _, component = connected_components(graph, directed=False)
    first: dict[int, str] = {}
    for name, of in zip(names, component.tolist(), strict=True):
        first.setdefault(of, name)
    return [first[component[number[row[0]]]] for row in several]


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
    names, members = np.unique(np.asarray(groups, dtype=object), return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            f"rows are held out by group, and all {len(groups)} rows are of one group: give a "
            "file with --validation, or more rows"
        )
    # By the hash of its name, so that a row added later moves no other.
    drawn = [hashlib.sha256(f"{seed}:{name}".encode()).digest() for name in names]
    order = sorted(range(len(names)), key=drawn.__getitem__)
    sizes = np.bincount(members)
    wanted = fraction * len(groups)
    chosen, taken = [order[0]], sizes[order[0]]
    for group in order[1:-1]:
        if taken + sizes[group] / 2 > wanted:
            break
        chosen.append(group)
        taken += sizes[group]
    return np.isin(members, chosen)
