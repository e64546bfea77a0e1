"""Graphs that select another graph by the head or by the length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import integer, shown
from longbird.core.graph.base import Graph
from longbird.core.graph.expression import as_graph
from longbird.core.graph.fields import combined
from longbird.core.graph.reach import Reach
from longbird.errors import InvalidTypeError, InvalidValueError

# Number of graphs from which on repr only shows how many there are.
SHORT = 10


@dataclass(frozen=True, init=False)
class PerHead(Graph):
    """A graph for each head: head `h` has the edges that `graphs[h]` has in head `h`.

    Args:
        graphs: Graphs or their expressions, as many as there are heads.

    Examples:
        >>> from longbird.core.graph import Causal, Window
        >>> graph = PerHead([Window(0), "Causal"])
        >>> graph.mask(3, heads=2).astype(int)
        array([[[1, 0, 0],
                [0, 1, 0],
                [0, 0, 1]],
        <BLANKLINE>
               [[1, 0, 0],
                [1, 1, 0],
                [1, 1, 1]]])
    """

    graphs: tuple[Graph, ...]

    def __init__(self, graphs: Iterable[Graph | str]) -> None:
        """Check the graphs and derive what they have in common."""
        unordered = isinstance(graphs, (Mapping, Set))
        if isinstance(graphs, (str, bytes)) or unordered or not isinstance(graphs, Iterable):
            raise InvalidTypeError(
                f"PerHead graphs must be a sequence of graphs, one for each head, received "
                f"{shown(graphs)} ({type(graphs).__name__})"
            )
        found = tuple(map(as_graph, graphs))
        if not found:
            raise InvalidValueError("PerHead needs a graph for each head, received none")
        facts = combined(found) | {"per_head": True, "least_heads": len(found)}
        modulus = _same({graph.sort_modulus for graph in found})
        self._set(graphs=found, sort_modulus=modulus, **facts)
        super().__post_init__()

    def of_heads(self, heads: int) -> tuple[Graph, ...]:
        """Return the graphs, or raise a ValueError if there are not as many as heads."""
        if len(self.graphs) != heads:
            count = len(self.graphs)
            raise InvalidValueError(
                f"PerHead has {count} graph{'s' * (count > 1)}, one for each head, but the number "
                f"of heads is {heads}; give `heads={count}`, "
                "or as many graphs as heads"
            )
        return self.graphs

    def for_head(self, head: int) -> Graph:
        """Return the graph of a head."""
        head = integer(head, "the head of PerHead", most=len(self.graphs) - 1)
        return self.graphs[head].for_head(head)

    def reach(self, n: int) -> Reach:
        """Return the farthest reach of any head."""
        return Reach.of_any(graph.reach(n) for graph in self.combines)

    def tile_count(self, n: int, size: int) -> float:
        """Return the mean over the heads."""
        return sum(graph.tile_count(n, size) for graph in self.graphs) / len(self.graphs)

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return the counts of the graph of each head."""
        graphs = self.of_heads(heads)
        shape = heads, n, n
        found = {g: np.broadcast_to(g.edge_counts(n, heads), shape) for g in self.combines}
        return np.stack([found[graph][head] for head, graph in enumerate(graphs)])

    def sees(self, i: Any, j: Any, head: Any) -> Any:
        """Return the rule of the graph of each head."""
        if head is None:
            raise InvalidValueError(
                "a graph for each head sees different keys in each: Stream.sees needs head"
            )
        found = (i < j) & (i > j)
        for number, graph in enumerate(self.graphs):
            found = found | (head == number) & graph.sees(i, j, head)
        return found

    def __repr__(self) -> str:
        """Return the expression, with the number of graphs if they are many."""
        if len(self.graphs) < SHORT:
            return f"PerHead({list(self.graphs)})"
        return f"PerHead(<{len(self.graphs)} graphs, {len(self.combines)} different>)"


@dataclass(frozen=True, init=False)
class ByLength(Graph):
    """A graph that depends on the length of the sequence: full where it is short, for example.

    Args:
        up_to: Graphs, or their expressions, by the longest sequence that each is for: a dictionary
            or pairs.
        otherwise: Graph of all longer sequences, or its expression.

    Examples:
        >>> from longbird.core.graph import bigbird
        >>> graph = ByLength({512: "Full"}, otherwise=bigbird())
        >>> graph.at(512)
        Full()
        >>> graph.layout(4096, heads=12) is bigbird().layout(4096, heads=12)
        True
    """

    up_to: tuple[tuple[int, Graph], ...]
    otherwise: Graph

    advice = "choose the graph of one length for all"

    def __init__(
        self,
        up_to: Mapping[int, Graph | str] | Iterable[tuple[int, Graph | str]],
        otherwise: Graph | str,
    ) -> None:
        """Check the graphs and sort the lengths."""
        given = up_to.items() if isinstance(up_to, Mapping) else up_to
        try:
            pairs = [(length, graph) for length, graph in given]
        except (TypeError, ValueError):
            raise InvalidTypeError(
                "ByLength up_to must be a dictionary from lengths to graphs, such as "
                f"{{512: Full()}}, received {shown(up_to)} ({type(up_to).__name__})"
            ) from None
        name = "each length of ByLength up_to"
        found = {integer(length, name): as_graph(graph) for length, graph in pairs}
        if not found or len(found) < len(pairs):
            raise InvalidValueError(
                f"ByLength up_to needs one length or more, each once, received "
                f"{[length for length, _ in pairs]}"
            )
        longest = as_graph(otherwise)
        facts = combined([*found.values(), longest]) | {"streams": False}
        lengths = tuple(sorted(found.items(), key=lambda item: item[0]))
        self._set(up_to=lengths, otherwise=longest, **facts)
        super().__post_init__()

    def at(self, n: int) -> Graph:
        """Return the graph of a length."""
        n = integer(n, "n")
        return next((graph for most, graph in self.up_to if n <= most), self.otherwise).at(n)

    def reach(self, n: int) -> Reach:
        """Return what the graph of this length gives."""
        return self.at(n).reach(n)

    def tile_count(self, n: int, size: int) -> float:
        """Return what the graph of this length gives."""
        return self.at(n).tile_count(n, size)

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return the counts of the graph of this length."""
        return self.at(n).edge_counts(n, heads)

    def __repr__(self) -> str:
        """Return the expression of the graph."""
        return f"ByLength({dict(self.up_to)}, otherwise={self.otherwise!r})"


def _same(strides: set[int | None]) -> int | None:
    """Return the modulus by which the tokens of all heads can be sorted, or 1."""
    return strides.pop() if len(strides) == 1 else 1
