"""Which rows are held out: the same ones for the same seed, near-duplicates on one side."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np


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
