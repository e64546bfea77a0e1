"""Estimates of the size of a layout before it is built."""

from __future__ import annotations

from longbird.core.graph.base import Graph
from longbird.core.machine import in_words, machine_bytes, many
from longbird.errors import InvalidValueError

# Minimum bytes per tile while a layout is built, including temporary arrays.
TILE_BYTES = 56
# Layouts of up to this many tiles are built without checking the available memory.
FEW_TILES = 2**24


def estimated_tiles(graph: Graph | None, n: int, heads: int, size: int, step: int) -> float:
    """Estimate how many tiles the layout of a graph would have, over all heads that differ.

    Args:
        graph: Graph, or None for global tokens only, which are not tiles.
        n: Number of tokens.
        heads: Number of heads.
        size: Maximum number of tokens in a tile.
        step: Distance between the tokens of a tile.
    """
    if graph is None:
        return 0.0
    return step * graph.tile_count(n, size * step) * (heads if graph.per_head else 1)


def estimated_bytes(tiles: float, n: int, size: int, step: int) -> float:
    """Estimate the bytes that building a layout takes; sorted tokens are listed several times."""
    return TILE_BYTES * tiles + n * (1 + 40 / size + (24 if step > 1 else 0))


def check_memory(
    graph: Graph | None, n: int, heads: int, size: int, step: int, queries: int
) -> None:
    """Raise a ValueError if a layout could not be built in the memory of this process."""
    rows = -(-n // size)
    if heads * rows * rows <= FEW_TILES:
        return
    tiles = estimated_tiles(graph, n, heads, size, step) * queries / max(n, 1)
    needed = estimated_bytes(tiles, n, size, step)
    limit = machine_bytes()
    if needed > limit:
        raise InvalidValueError(
            f"the layout of {graph!r:.200} over {n:,} tokens would have about {many(tiles)} "
            f"tiles, and building it would take {in_words(needed)} of the {in_words(limit)} that "
            "this process may have; choose a sparser graph or fewer tokens"
        )
