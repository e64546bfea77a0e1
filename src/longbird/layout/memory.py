"""How large a layout would be, before it is built."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from longbird.graph.base import Graph

# What building takes at least, with the arrays that are sorted and then thrown away.
TILE_BYTES = 56
# Layouts of up to this many tiles are built without a second thought.
FEW_TILES = 2**24


def estimated_tiles(graph: Graph | None, n: int, heads: int, size: int, step: int) -> float:
    """About how many tiles the layout of a graph would have, over all heads that differ.

    Args:
        graph: The graph; None for global tokens alone, which are not tiles.
        n: Number of tokens.
        heads: Number of heads.
        size: Most tokens in a tile.
        step: Distance between the tokens of a tile.
    """
    if graph is None:
        return 0.0
    return step * graph.tile_count(n, size * step) * (heads if graph.per_head else 1)


def estimated_bytes(tiles: float, n: int, size: int, step: int) -> float:
    """About how much memory building a layout takes; sorted tokens are listed several times."""
    return TILE_BYTES * tiles + n * (1 + 40 / size + (24 if step > 1 else 0))


def check_memory(
    graph: Graph | None, n: int, heads: int, size: int, step: int, queries: int
) -> None:
    """Raises a ValueError if a layout could not be built in the memory of this machine."""
    rows = -(-n // size)
    if heads * rows * rows <= FEW_TILES:
        return
    tiles = estimated_tiles(graph, n, heads, size, step) * queries / max(n, 1)
    needed = estimated_bytes(tiles, n, size, step)
    if needed > machine_bytes():
        raise ValueError(
            f"the layout of {graph!r:.200} over {n:,} tokens would have about {tiles:.2g} tiles, "
            f"and building it would take {in_words(needed)} of the {in_words(machine_bytes())} "
            "that this machine has; choose a sparser graph or fewer tokens"
        )


def machine_bytes() -> float:
    """Memory of the machine; unlimited where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def available_bytes() -> float:
    """Memory that can be had without swapping; that of the machine where the system is silent."""
    try:
        with open("/proc/meminfo") as lines:
            found = dict(line.split(":", 1) for line in lines)
        return float(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return machine_bytes()


def in_words(size: float) -> str:
    """A number of bytes as people say it.

    Examples:
        >>> in_words(3.9e12)
        '3.9 TB'
    """
    return in_units(size, ("B", "kB", "MB", "GB", "TB", "PB", "EB"))


def in_units(value: float, units: Sequence[str]) -> str:
    """Three digits in the unit that suits, each unit a thousand times the one before.

    Examples:
        >>> in_units(1_234, ("FLOP", "kFLOP"))
        '1.23 kFLOP'
    """
    number = 0
    while value >= 999.5 and number < len(units) - 1:
        value, number = value / 1000, number + 1
    return f"{value:.3g} {units[number]}"
