"""What a decoder has to remember: the keys that later queries can still see, from the graph alone.

A decoder that keeps the last few keys and values, and those of the first tokens, generates in
constant memory. That is exact where the graph is causal, and where it grows by prefixes: a new
token must not change what earlier tokens saw.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

from longbird.graph.base import Graph, Intersection, Union
from longbird.graph.edges import Edges
from longbird.graph.globals import GlobalBlocks, GlobalTokens
from longbird.graph.random import RandomBlocks
from longbird.graph.windows import BlockWindow, Causal, Full, Window


@dataclass(frozen=True)
class Stream:
    """A causal graph as a decoder meets it, one query after the other.

    Attributes:
        reach: Query `i` sees keys from `i - reach` on, besides the sinks. None: all keys, so that
            the cache has to grow.
        sinks: So many tokens at the beginning may be seen by every later query.
        graph: The graph.
    """

    reach: int | None
    sinks: int
    graph: Graph

    def sees(self, i: Any, j: Any) -> Any:
        """Whether query `i` sees key `j`, elementwise: `graph.mask(n)[0][i, j]` of any length.

        Args:
            i: Positions of queries, a NumPy array or a torch tensor of int64.
            j: Positions of keys, of a shape that broadcasts with the other.
        """
        return _sees(self.graph, i, j)


def stream(graph: Graph) -> Stream:
    """What a decoder over `graph` has to remember.

    Raises:
        ValueError: If the graph is not causal, or a new token would change what earlier ones saw.

    Examples:
        >>> import numpy as np
        >>> from longbird.graph import Causal, GlobalTokens, Window
        >>> found = stream((Window(2) | GlobalTokens([0])) & Causal())
        >>> found.reach, found.sinks
        (2, 1)
        >>> found.sees(np.array(1000), np.array([0, 1, 997, 998, 1000, 1001]))
        array([ True, False, False,  True,  True, False])
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"a stream needs a graph, received {graph!r} ({type(graph).__name__})")
    bound = _bound(graph)
    if not bound.causal:
        parts = graph.parts if isinstance(graph, Union) else (graph,)
        ahead = next(part for part in parts if not _bound(part).causal)
        raise ValueError(
            "a query of a decoder must not see keys after its own position, but one of "
            f"{ahead!r:.200} may; take the intersection of the graph with Causal()"
        )
    return Stream(None if bound.reach == math.inf else int(bound.reach), bound.sinks, graph)


def check_prefixes(graph: Graph) -> None:
    """Raises a ValueError unless a graph over n tokens is what it is over more, cut to n."""
    _bound(graph)


class _Bound(NamedTuple):
    """Every edge (i, j) with `j <= i` has `i - j <= reach` or `j < sinks`."""

    causal: bool  # whether there are no other edges
    reach: float
    sinks: int


def _bound(graph: Graph) -> _Bound:
    """The bound of a graph that grows by prefixes; a ValueError if it does not."""
    match graph:
        case Full() | Causal():
            return _Bound(isinstance(graph, Causal), math.inf, 0)
        case Window():
            return _Bound(graph.radius == 0, graph.radius * graph.dilation, 0)
        case BlockWindow():
            reach = (graph.width // 2 + 1) * graph.block - 1
            return _Bound(reach == 0, reach, 0)
        case GlobalTokens() if all(position >= 0 for position in graph.positions):
            # All that a global query itself sees up to its position are sinks as well.
            return _Bound(not graph.positions, 0, max(graph.positions, default=-1) + 1)
        case GlobalBlocks(last=0):
            return _Bound(graph.first == 0, 0, graph.first * graph.block)
        case RandomBlocks(count=0):  # in `bigbird(random=0)`
            return _Bound(True, 0, 0)
        case Edges():
            queries, keys = graph.pairs.T
            causal = bool((keys <= queries).all())
            reach = int((queries - keys).max(initial=0))
            sinks = int(keys[keys < queries].max(initial=-1)) + 1
            # Either alone has them all.
            return _Bound(causal, reach, 0) if reach <= sinks else _Bound(causal, 0, sinks)
        case Union():
            causal, reach, sinks = zip(*map(_bound, graph.parts), strict=True)
            return _Bound(all(causal), max(reach), max(sinks))
        case Intersection():
            # Bounds exclude the edge with i - j = reach + 1 and j = sinks only if one part does
            # so alone: its reach and sinks are no larger. So the best bound is that of one part.
            bounds = [_bound(part) for part in graph.parts]
            best = min(bounds, key=lambda bound: bound.reach + bound.sinks)
            return best._replace(causal=any(bound.causal for bound in bounds))
        case GlobalTokens():
            advice = "count its positions from the beginning"
        case GlobalBlocks():
            advice = "set its last=0 (of bigbird: global_last=0, and random=0)"
        case _:
            advice = "leave it out (of bigbird: random=0, and global_last=0)"
    raise ValueError(
        f"{graph!r:.200} is not the same for a text and for its beginning, so a new token would "
        f"change what earlier ones saw, and neither a decoder with a cache nor padding in an "
        f"exported program can use it; {advice}, or use_cache=False"
    )


def _sees(graph: Graph, i: Any, j: Any) -> Any:
    """`Stream.sees`, with operators alone, which arrays and tensors share."""
    match graph:
        case Full():
            return (i <= j) | (i > j)
        case Causal() | Window() | BlockWindow():
            return graph.edge(i, j)
        case GlobalBlocks(first=first, block=block):
            return (i < first * block) | (j < first * block)
        case GlobalTokens(positions=positions):
            found = ((i == p) | (j == p) for p in positions)
        case Edges(pairs=pairs):
            found = ((i == query) & (j == key) for query, key in pairs.tolist())
        case Intersection(parts=parts):
            return functools.reduce(operator.and_, (_sees(part, i, j) for part in parts))
        case Union(parts=parts):
            found = (_sees(part, i, j) for part in parts)
        case _:  # no other piece has a bound but one without edges
            found = ()
    return functools.reduce(operator.or_, found, (i < j) & (i > j))
