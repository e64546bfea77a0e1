"""Which keys a decoder has to remember, derived from the graph alone.

A decoder that keeps the last keys and values, and those of the first tokens, generates in constant
memory. That is exact if the graph is causal and grows by prefixes: a new token must not change
what earlier tokens saw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from longbird.core.graph.arguments import MOST_TOKENS
from longbird.core.graph.base import Graph
from longbird.core.graph.combinations import Union
from longbird.core.graph.reach import Reach
from longbird.errors import InvalidTypeError, InvalidValueError


@dataclass(frozen=True)
class Stream:
    """A causal graph as a decoder meets it, one query after the other.

    Attributes:
        reach: Distance to the first key that a query may see, besides the sinks; None if it may
            see all, so that the cache has to grow.
        sinks: Number of tokens at the beginning that every later query may see.
        graph: Graph that is streamed.
    """

    reach: int | None
    sinks: int
    graph: Graph

    def sees(self, i: Any, j: Any, head: Any = None) -> Any:
        """Return whether query `i` sees key `j`, elementwise: `mask(n)[head, i, j]` at any n.

        Args:
            i: Positions of queries, a NumPy array or a torch tensor of int64.
            j: Positions of keys, of a shape that broadcasts with that of `i`.
            head: Numbers of heads, of a shape that broadcasts with both; only needed for graphs
                that differ between heads.
        """
        return self.graph.sees(i, j, head)


def stream(graph: Graph) -> Stream:
    """Return which keys a decoder over `graph` has to remember.

    Raises:
        ValueError: The graph is not causal, or a new token would change what earlier ones saw.

    Examples:
        >>> import numpy as np
        >>> from longbird.core.graph import Causal, GlobalTokens, Window
        >>> found = stream((Window(2) | GlobalTokens([0])) & Causal())
        >>> found.reach, found.sinks
        (2, 1)
        >>> found.sees(np.array(1000), np.array([0, 1, 997, 998, 1000, 1001]))
        array([ True, False, False,  True,  True, False])
    """
    if not isinstance(graph, Graph):
        raise InvalidTypeError(
            f"a stream needs a graph, received {graph!r} ({type(graph).__name__})"
        )
    if (found := without_prefixes(graph)) is not None:
        raise InvalidValueError(
            f"{found!r:.200} is not the same for a text and for its beginning, so that a new "
            f"token would change what earlier ones saw, and a decoder with a cache cannot use it; "
            f"{found.advice}, or use_cache=False"
        )
    reach = _reach(graph)
    if reach.ahead:
        parts = graph.parts if isinstance(graph, Union) else (graph,)
        ahead = next(part for part in parts if _reach(part).ahead)
        raise InvalidValueError(
            "a query of a decoder must not see keys after its own position, but one of "
            f"{ahead!r:.200} may; take the intersection of the graph with Causal()"
        )
    return Stream(None if reach.behind == math.inf else int(reach.behind), reach.sinks, graph)


def without_prefixes(graph: Graph) -> Graph | None:
    """Return the part, if any, that changes for earlier tokens when the sequence grows."""
    if graph.streams:
        return None
    parts = map(without_prefixes, graph.combines)
    return next((part for part in parts if part is not None), graph)


def _reach(graph: Graph) -> Reach:
    return graph.reach(MOST_TOKENS)
