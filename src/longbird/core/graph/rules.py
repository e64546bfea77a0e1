"""Calls of the rule and of the spans of a piece, with arguments and results checked.

Users write pieces too, and their mistakes would otherwise surface far from their cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import MOST_TOKENS, integer
from longbird.core.machine import check_memory
from longbird.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from longbird.core.graph.base import Graph

LARGEST_TILE = 128

# Dense arrays up to this size are made without checking the available memory.
SMALL_BYTES = 2**28

Positions = npt.NDArray[np.int64]


def edges_between(graph: Graph, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
    """Evaluate `graph.edge(i, j, n)`, check the result, and broadcast it to the pairs."""
    name, shape = type(graph).__name__, np.broadcast_shapes(i.shape, j.shape)
    if not n:
        return np.zeros(shape, bool)
    given = graph.edge(i, j, n)
    try:
        found = np.asarray(given)
        pairs = np.broadcast_to(found, shape)
    except ValueError:  # the shape does not fit, or it is a list of rows of different lengths
        received = getattr(given, "shape", type(given).__name__)
        raise InvalidValueError(
            f"edge of {name} must give a bool for each pair of i {i.shape} and j {j.shape}, so "
            f"the shape {shape}, received {received}; compare i and j elementwise"
        ) from None
    if found.dtype != bool:
        raise InvalidTypeError(
            f"edge of {name} must give bools, received {found.dtype}; compare, "
            "as in (i - j) % 3 == 0"
        )
    return pairs


def spans_of_tiles(
    graph: Graph, first: Positions, last: Positions, n: int
) -> tuple[Positions, Positions]:
    """Evaluate `graph.spans(first, last, n)`, check the result, and broadcast it to all tiles."""
    name = type(graph).__name__
    found: object = graph.spans(first, last, n)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise InvalidTypeError(
            f"spans of {name} must give two arrays, the first and the last key of each span, "
            f"received {type(found).__name__}"
        )
    low, high = map(np.asarray, found)
    if low.shape != high.shape:
        low, high = np.broadcast_arrays(low, high)
    if low.ndim != 2 or len(low) not in (1, len(first)) or low.dtype.kind != "i":
        raise InvalidTypeError(
            f"spans of {name} must give integers of the shape ({len(first)}, spans), received "
            f"{low.dtype} {low.shape}"
        )
    shape = len(first), low.shape[1]
    return np.broadcast_to(low, shape), np.broadcast_to(high, shape)


def check_declaration(graph: Graph, clash: frozenset[str]) -> None:
    """Check what the class of a piece declares; `clash` has fields whose name is taken."""
    name = type(graph).__name__
    parameters: Any = getattr(type(graph), "__dataclass_params__")  # noqa: B009
    if not parameters.frozen:
        raise InvalidTypeError(f"{name} can be changed: use @dataclass(frozen=True)")
    if clash:
        raise InvalidTypeError(
            f"{name} has a field called {min(clash)}, which means something "
            "else in every graph; choose another name, or leave out its annotation to set it"
        )
    for fact, most in (("period", MOST_TOKENS), ("tile_size", LARGEST_TILE)):
        if getattr(graph, fact) is not None:
            integer(getattr(graph, fact), f"{name} {fact}", least=1, most=most)


def checked_dense(graph: Graph, method: str, n: Any, heads: Any, itemsize: int) -> tuple[int, int]:
    """Check the size of a dense array before anything of that size exists."""
    n, heads = integer(n, "n"), integer(heads, "heads", least=1)
    # Computing it takes an int64 for each pair of positions besides the result.
    needed = n * n * (8 + heads * itemsize)
    if needed > SMALL_BYTES:
        check_memory(
            needed,
            f"{graph!r:.200}.{method}({n}, heads={heads})",
            "it is dense: choose fewer tokens or heads, or layout(n), which grows with the "
            "edges alone",
        )
    return n, heads
