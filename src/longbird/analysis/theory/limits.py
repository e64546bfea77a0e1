"""Limits of every solution of the furthest-vector task over a graph.

A vector cannot find another that is more hops away than there are layers, and an edge compares one
pair of vectors per layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longbird.analysis.theory.vectors import ALIKE, unit_vectors
from longbird.core.graph import Graph, as_graph
from longbird.core.machine import check_memory
from longbird.errors import InvalidValueError


@dataclass(frozen=True)
class Outcome:
    """What a solution reached after each layer, and what limits it.

    Attributes:
        name: Name of the solution or of the graph.
        n: Number of vectors.
        edges: Number of edges between different tokens.
        accuracy: Share of vectors that have found the furthest, after each layer; empty without a
            solution.
        within: Share of vectors whose furthest is within as many hops: no solution over this graph
            can be right more often on every input.
        comparisons: Number of layers of any solution that compares one pair of vectors per edge
            and layer: n (n - 1) / edges, infinite without edges.
    """

    name: str
    n: int
    edges: int
    accuracy: tuple[float, ...]
    within: tuple[float, ...]
    comparisons: float

    @property
    def layers(self) -> int | None:
        """Number of layers until all have found it; None if they have not."""
        return next((k for k, share in enumerate(self.accuracy, start=1) if share == 1), None)


def hops(neighbours: npt.NDArray[np.bool_], most: int) -> npt.NDArray[np.int64]:
    """Return the hops from each query to each key, or most + 1 if there are more."""
    n = len(neighbours)
    edges = torch.from_numpy(neighbours).float().to_sparse()
    distance = torch.full((n, n), most + 1)
    last = torch.eye(n, dtype=torch.bool)  # pairs at the current distance
    distance[last] = 0
    for layer in range(1, most + 1):
        last = (torch.sparse.mm(edges, last.float()) > 0) & (distance > most)
        if not last.any():
            break
        distance[last] = layer
    return distance.numpy()


def share_within(
    graph: Graph | str, u: Tensor, most: int, homes: npt.NDArray[np.int64] | None = None
) -> tuple[float, ...]:
    """Return the share of vectors that have a furthest one within 1, 2, ... `most` hops.

    Args:
        graph: Graph over the tokens.
        u: Unit vectors.
        most: Maximum number of hops.
        homes: Tokens that hold each vector initially, [copies, n]; by default token i holds vector
            i. The answer belongs to the first of them.
    """
    n = len(u)
    homes = np.arange(n)[None] if homes is None else homes
    distance = hops(as_graph(graph).mask(int(homes.max()) + 1)[0], most)
    seen = np.min([distance[np.ix_(homes[0], copy)] for copy in homes], axis=0)
    products = u @ u.T
    furthest = (products - products.amin(dim=1, keepdim=True) < ALIKE).numpy()
    nearest = np.where(furthest, seen, most + 1).min(axis=1)
    return tuple(float((nearest <= k).mean()) for k in range(1, most + 1))


def measure(graph: Graph | str, u: Tensor | npt.ArrayLike, most: int = 8) -> Outcome:
    """Return the limits of any solution over a graph for which none is known."""
    graph, u = as_graph(graph), unit_vectors(u)
    n = len(u)
    if graph.least_heads > 1:
        raise InvalidValueError(
            f"{graph!r:.80} has a graph for each of {graph.least_heads} heads, expected "
            "one graph: this task takes one head, so choose one of them"
        )
    check_all_pairs(n)
    edges = count_edges(graph, n)
    return Outcome(
        name=f"{graph!r:.60}",
        n=n,
        edges=edges,
        accuracy=(),
        within=share_within(graph, u, most),
        comparisons=n * (n - 1) / edges if edges else math.inf,
    )


def count_edges(graph: Graph, tokens: int) -> int:
    """Count the edges between different tokens; other edges compare nothing."""
    mask = graph.mask(tokens)[0]
    return int(mask.sum() - mask.diagonal().sum())


def check_all_pairs(tokens: int) -> None:
    """Check that products, distances and masks of all pairs fit into memory."""
    check_memory(40 * tokens**2, f"all pairs of {tokens:,} tokens", "choose fewer vectors")
