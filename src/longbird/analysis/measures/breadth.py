"""Breadth-first search from one token."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from longbird.analysis.measures.digraph import Digraph, Ints


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
