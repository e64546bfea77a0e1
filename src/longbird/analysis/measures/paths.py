"""Breadth-first search from one token, and shortest paths between two."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from longbird.analysis.measures.digraph import Digraph, Ints, union_of
from longbird.core.graph.arguments import integer
from longbird.core.graph.base import Graph
from longbird.errors import InvalidValueError


def search(matrix: csr_array, source: int) -> tuple[Ints, Ints]:
    """Return nodes in the order of their discovery, and how many are within 0, 1, ... arcs."""
    order, before = breadth_first_order(matrix, source, directed=True)
    place = np.empty(len(before), np.int64)
    place[order] = np.arange(len(order))
    # Nodes are also expanded in this order; the number of nodes found after each.
    children = np.bincount(place[before[order[1:]]], minlength=len(order))
    found: list[int] = (np.cumsum(children) + 1).tolist()
    ends = [1]
    while (end := found[ends[-1] - 1]) > ends[-1]:
        ends.append(end)
    return order.astype(np.int64), np.array(ends)


def within(graph: Digraph, position: int) -> tuple[Ints, int]:
    """Return how many others a position reaches by hops, and one of the farthest."""
    matrix, arcs = graph.arcs
    order, ends = search(matrix, position)
    if arcs == 1:
        return ends[1:] - 1, int(order[-1])
    tokens = np.cumsum(order < graph.ordinary)
    farthest = order[np.searchsorted(tokens, tokens[-1])]
    return tokens[ends[arcs::arcs] - 1] - 1, int(farthest)


def hops_from(graph: Digraph, position: int) -> Ints:
    """Return the hops to every position, -1 if unreachable; for graphs without hubs."""
    matrix, arcs = graph.arcs
    order, ends = search(matrix, position)
    hops = np.full(len(matrix.indptr) - 1, -1)
    hops[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0)) // arcs
    return hops[: graph.ordinary]


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
