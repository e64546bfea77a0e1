"""The fields of a piece, and the graphs among them."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeGuard, cast

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from longbird.core.graph.base import Graph


def fields_of(graph: Graph) -> dict[str, Any]:
    """Return the arguments that a graph was made from, by name."""
    fields = dataclasses.fields(cast("DataclassInstance", graph))
    return {field.name: getattr(graph, field.name) for field in fields if field.init}


def replaced(graph: Graph, /, **fields: object) -> Graph:
    """Return the same piece with other values in some of its fields."""
    return cast("Graph", dataclasses.replace(cast("DataclassInstance", graph), **fields))


def graphs_in(value: Any) -> Iterator[Graph]:
    """Yield the graphs in a field, or in a dictionary of fields."""
    if _is_graph(value):
        yield value
    elif isinstance(value, (dict, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from graphs_in(item)


def combined(graphs: Iterable[Graph]) -> dict[str, Any]:
    """Return what follows for a graph from the graphs that it combines."""
    combines = tuple(dict.fromkeys(graphs))
    return {
        "combines": combines,
        "per_head": any(graph.per_head for graph in combines),
        "multiset": any(graph.multiset for graph in combines),
        "streams": all(graph.streams for graph in combines),
    }


def with_graphs(graph: Graph, function: Callable[[Graph], Graph]) -> Graph:
    """Return the same piece with the function applied to the graphs in its fields."""
    fields = fields_of(graph)
    changed = {name: _map_graphs(value, function) for name, value in fields.items()}
    changed = {name: changed[name] for name in fields if changed[name] is not fields[name]}
    return replaced(graph, **changed) if changed else graph


def _map_graphs(value: Any, function: Callable[[Graph], Graph]) -> Any:
    """Return a field with the function applied to its graphs; the same object if none changed."""
    if _is_graph(value):
        return function(value)
    if not isinstance(value, tuple):
        return value
    items = tuple(_map_graphs(item, function) for item in value)
    return value if all(map(operator.is_, items, value)) else items


def _is_graph(value: object) -> TypeGuard[Graph]:
    return hasattr(value, "edge_counts")
