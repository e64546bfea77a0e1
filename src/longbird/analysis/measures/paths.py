"""Shortest paths by which the content of one token reaches another."""

from __future__ import annotations

import numpy as np

from longbird.analysis.measures.breadth import hops_from
from longbird.analysis.measures.digraph import union_of
from longbird.core.graph.arguments import integer
from longbird.core.graph.base import Graph
from longbird.errors import InvalidValueError


def shortest_path(
    graph: Graph, i: int, j: int, n: int, heads: int | None = None
) -> list[int] | None:
    """Return a shortest path as `Graph.path` documents, over the edges of all heads."""
    n = integer(n, "n")
    i, j = _token(i, "i", n), _token(j, "j", n)
    heads = graph.least_heads if heads is None else integer(heads, "heads", least=1)
    union = union_of(graph.layout(n, heads))
    here, goal = int(union.places[i]), int(union.places[j])
    if here == goal:
        return [i]
    if union.has(np.array([here]), np.array([goal]))[0]:
        return [i, j]
    if union.hubs:
        return [i, int(union.tokens[union.ordinary :].min()), j]
    # Count the hops from every token to the goal, then descend.
    hops = hops_from(union.transposed, goal)
    if hops[here] < 0:
        return None
    path = [here]
    while path[-1] != goal:
        seen = union.neighbours(path[-1])
        nearer = seen[hops[seen] == hops[path[-1]] - 1]
        path.append(int(nearer[union.tokens[nearer].argmin()]))
    return union.tokens[path].tolist()


def _token(token: int, name: str, n: int) -> int:
    token = integer(token, f"the token {name} of a path")
    if token >= n:
        raise InvalidValueError(
            f"the token {name} of a path must be less than n={n}, received {token}"
        )
    return token
