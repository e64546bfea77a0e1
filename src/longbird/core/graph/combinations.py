"""Unions and intersections of graphs."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.core.graph.base import Graph
from longbird.core.graph.expression import as_graph
from longbird.core.graph.fields import combined
from longbird.core.graph.reach import Reach
from longbird.core.graph.rules import Positions, spans_of_tiles
from longbird.errors import InvalidTypeError, InvalidValueError


class Combination(Graph, abstract=True):
    """Several different graphs in canonical order."""

    parts: tuple[Graph, ...]

    def __post_init__(self) -> None:
        """Flatten, sort and deduplicate the parts, and derive their common properties."""
        found = dict.fromkeys(self._flat(self.parts))
        if len(found) < 2:
            raise InvalidValueError(
                f"{type(self).__name__} needs two different parts or more, received {self.parts!r}"
            )
        parts = tuple(sorted(found, key=Graph.to_json))
        self._set(parts=parts, **combined(parts))
        super().__post_init__()

    @classmethod
    def _flat(cls, parts: Iterable[object]) -> Iterator[Graph]:
        for part in parts:
            if not isinstance(part, (Graph, str)):
                raise InvalidTypeError(
                    f"the parts of {cls.__name__} must be graphs, received {part!r} "
                    f"({type(part).__name__})"
                )
            graph = as_graph(part)
            yield from graph.parts if isinstance(graph, cls) else (graph,)

    @classmethod
    def of(cls, parts: Iterable[object]) -> Graph:
        """Return the combination of the parts, or the part itself if there is only one."""
        found = tuple(dict.fromkeys(cls._flat(parts)))
        if not found:
            raise InvalidValueError(f"{cls.__name__} needs at least one part")
        combine: Any = cls  # the constructor, which the dataclass adds to the subclass
        return found[0] if len(found) == 1 else combine(found)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Graph:
        parts = content.pop("parts", None)
        if content or not isinstance(parts, tuple):
            raise InvalidTypeError(
                f"it has one field, a list named parts; received {sorted(content)}"
            )
        return cls.of(parts)

    def _mapped(self, function: Callable[[Graph], Graph]) -> Graph:
        return self.of(map(function, self.parts))


@dataclass(frozen=True)
class Union(Combination):
    """The edges of any of the parts; usually written `a | b`.

    Examples:
        >>> from longbird.core.graph import GlobalTokens, Window
        >>> Window(2) | GlobalTokens([0])
        GlobalTokens(positions=(0,)) | Window(radius=2, dilation=1)
    """

    parts: tuple[Graph, ...]

    def __post_init__(self) -> None:
        """Set how tokens may be sorted: as all parts require."""
        super().__post_init__()
        strides = {part.sort_modulus for part in self.parts}
        self._set(sort_modulus=strides.pop() if len(strides) == 1 else 1)

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return whether any part has the edge."""
        return functools.reduce(operator.or_, (part.edge(i, j, n) for part in self.parts))

    def reach(self, n: int) -> Reach:
        """Return the farthest reach of any part."""
        return Reach.of_any(part.reach(n) for part in self.parts)

    def spans(self, first: Positions, last: Positions, n: int) -> tuple[Positions, Positions]:
        """Return the spans of all parts."""
        spans = (spans_of_tiles(part, first, last, n) for part in self.parts)
        low, high = zip(*spans, strict=True)
        return np.hstack(low), np.hstack(high)

    def tile_count(self, n: int, size: int) -> float:
        """Return the sum over the parts, limited to the number of all tiles."""
        count = sum(part.tile_count(n, size) for part in self.parts)
        return min(count, (-(-n // size)) ** 2)

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return the largest count of any part."""
        return functools.reduce(np.maximum, (part.edge_counts(n, heads) for part in self.parts))

    def sees(self, i: Any, j: Any, head: Any) -> Any:
        """Return whether any part has the edge, at any length."""
        return functools.reduce(operator.or_, (part.sees(i, j, head) for part in self.parts))

    def __repr__(self) -> str:
        """Return the call of the preset that makes it, or the parts joined by `|`."""
        from longbird.core.graph.presets import as_bigbird

        return as_bigbird(self) or " | ".join(map(repr, self.parts))


@dataclass(frozen=True)
class Intersection(Combination):
    """The edges that all parts have; usually written `a & b`.

    Examples:
        >>> from longbird.core.graph import Causal, Window
        >>> Window(2) & Causal()
        Causal() & Window(radius=2, dilation=1)
    """

    parts: tuple[Graph, ...]

    def __post_init__(self) -> None:
        """Set how tokens may be sorted: as those parts require that require anything."""
        super().__post_init__()
        strides = {part.sort_modulus for part in self.parts} - {None}
        self._set(sort_modulus=strides.pop() if len(strides) == 1 else 1 if strides else None)

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return whether all parts have the edge."""
        return functools.reduce(operator.and_, (part.edge(i, j, n) for part in self.parts))

    def reach(self, n: int) -> Reach:
        """Return the smallest reach of any part."""
        return Reach.of_all(part.reach(n) for part in self.parts)

    def spans(self, first: Positions, last: Positions, n: int) -> tuple[Positions, Positions]:
        """Return the spans of the part with the fewest tiles."""
        return min(self.parts, key=lambda part: part.tile_count(n, 64)).spans(first, last, n)

    def tile_count(self, n: int, size: int) -> float:
        """Return the smallest count of any part."""
        return min(part.tile_count(n, size) for part in self.parts)

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return the smallest count of any part."""
        return functools.reduce(np.minimum, (part.edge_counts(n, heads) for part in self.parts))

    def sees(self, i: Any, j: Any, head: Any) -> Any:
        """Return whether all parts have the edge, at any length."""
        return functools.reduce(operator.and_, (part.sees(i, j, head) for part in self.parts))

    def __repr__(self) -> str:
        """Return the parts joined by `&`, with unions in parentheses."""
        written = ((isinstance(part, Union), repr(part)) for part in self.parts)
        return " & ".join(
            f"({text})" if union and " | " in text else text for union, text in written
        )
