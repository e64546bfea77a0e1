"""Detection of the star that the universality theorem of BigBird requires."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longbird.analysis.measures.digraph import Digraph, Ints, check_edges, head_of
from longbird.core.graph.arguments import integer
from longbird.core.graph.base import Graph

# Maximum number of missing edges that are listed.
NAMED = 8


@dataclass(frozen=True)
class Star:
    """Whether a graph contains a star, and the evidence; true if it does.

    The star of the theorem [1] has a centre that sees all other tokens; every other token sees the
    centre and itself. (Whether the centre sees itself does not matter.) Sparse attention over a
    graph that contains it can approximate any continuous function of sequences.

    Attributes:
        found: Whether there is a star.
        centre: First token that can be its centre, or else the token that lacks the fewest edges;
            None if there are no tokens.
        centres: All tokens that can be its centre.
        missing: Up to eight edges (i, j) that are missing for a star around `centre`.
        missing_count: Number of missing edges, in the head that lacks most.

    References:
        [1] M. Zaheer et al., "Big Bird: Transformers for Longer Sequences", NeurIPS 2020.
    """

    found: bool
    centre: int | None
    centres: tuple[int, ...]
    missing: tuple[tuple[int, int], ...]
    missing_count: int

    def __bool__(self) -> bool:
        return self.found

    def __str__(self) -> str:
        if self.found:
            more = len(self.centres) - 1
            others = f" (and {more:,} other token{'s' * (more > 1)} can be)" if more else ""
            return f"contains a star: token {self.centre} is the centre{others}"
        if self.centre is None:
            return "contains no star: there are no tokens"
        edges = ", ".join(f"({i}, {j})" for i, j in self.missing)
        more = ", ..." if self.missing_count > len(self.missing) else ""
        return (
            f"contains no star: token {self.centre} comes nearest to a centre, and "
            f"{self.missing_count:,} edge{'s are' if self.missing_count > 1 else ' is'} missing: "
            f"{edges}{more}"
        )


def contains_star(graph: Graph, n: int, heads: int | None = None) -> Star:
    """Look for a star as `Graph.contains_star` documents; it has to be in every head."""
    n = integer(n, "n")
    heads = graph.least_heads if heads is None else integer(heads, "heads", least=1)
    if not n:
        return Star(False, None, (), (), 0)
    layout = graph.layout(n, heads)
    check_edges(layout)
    different = range(len(layout.row_ptr))
    each = np.stack([_lacking(head_of(layout, head)) for head in different])  # [heads, n]
    lacking = each.max(axis=0)
    centres = np.flatnonzero(lacking == 0)
    if len(centres):
        return Star(True, int(centres[0]), tuple(centres.tolist()), (), 0)
    centre = int(lacking.argmin())
    worst = head_of(layout, int(each[:, centre].argmax()))
    missing = tuple(_missing(worst, centre)[:NAMED])
    return Star(False, centre, (), missing, int(lacking[centre]))


def _lacking(graph: Digraph) -> Ints:
    """Return for each token how many edges are missing for a star around it."""
    others = graph.n - 1
    spokes = 2 * others - graph.degrees - graph.seen_by
    loops = (~graph.loops).sum() - ~graph.loops
    found = np.empty(graph.n, np.int64)
    found[graph.tokens] = spokes + loops
    return found


def _missing(graph: Digraph, centre: int) -> list[tuple[int, int]]:
    position = int(graph.places[centre])
    found = [(token, token) for token in graph.tokens[~graph.loops].tolist() if token != centre]
    for side, digraph in enumerate((graph, graph.transposed)):
        unseen = np.ones(graph.n, bool)
        unseen[digraph.neighbours(position)] = unseen[position] = False
        tokens = np.sort(graph.tokens[unseen]).tolist()
        found += [(token, centre) if side else (centre, token) for token in tokens]
    return found
