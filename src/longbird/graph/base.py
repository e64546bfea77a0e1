"""The graph algebra: what every graph can do, and how graphs combine.

An attention graph says which queries see which keys. It is immutable, it has no length (the same
graph serves every length), and it is the one value that kernels, models and checkpoints take.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from longbird.graph.arguments import integer

if TYPE_CHECKING:
    from longbird.layout import Layout

LONGEST_KEY = 65536


class Graph(ABC):
    """A directed graph over tokens: query `i` attends to key `j` where there is an edge (i, j).

    Graphs combine with `|` (edges of either) and `&` (edges of both). Two graphs are equal when
    they are written with the same pieces; the order and repetition of the pieces do not matter.

    Attributes:
        key: A string that is the same for equal graphs and no others.

    Examples:
        >>> from longbird.graph import Causal, Graph, Window
        >>> graph = Window(1) & Causal()
        >>> graph.mask(4)[0].astype(int)
        array([[1, 0, 0, 0],
               [1, 1, 0, 0],
               [0, 1, 1, 0],
               [0, 0, 1, 1]])
        >>> graph == Causal() & Window(radius=1)
        True
        >>> Graph.from_json(graph.to_json()) == graph
        True
    """

    key: str
    _json: str
    _types: ClassVar[dict[str, type[Graph]]] = {}
    _living: ClassVar[weakref.WeakValueDictionary[str, Graph]] = weakref.WeakValueDictionary()

    def __init_subclass__(cls) -> None:
        """Make the class known to `from_json` under its name."""
        Graph._types[cls.__name__] = cls

    def __post_init__(self) -> None:
        """Write the canonical JSON and the key; the last step of every construction."""
        fields = {"type": type(self).__name__, **self._content()}
        text = "{" + ", ".join(f'"{name}": {_encode(fields[name])}' for name in fields) + "}"
        self._set(_json=text, key=text)
        if len(text) > LONGEST_KEY:
            self._set(key="sha256:" + hashlib.sha256(text.encode()).hexdigest())
        # `from_key` finds the first of equal graphs, which therefore lives as long as any of them.
        first = Graph._living.setdefault(self.key, self)
        if first is not self:
            self._set(_first=first)

    def _set(self, **values: object) -> None:
        """Set attributes during construction; afterwards the dataclass is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # What a piece defines.

    @abstractmethod
    def _counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Multiplicities, bool or int32, of a shape that broadcasts to [heads, n, n]."""

    @property
    def per_head(self) -> bool:
        """Whether the graph differs between heads."""
        return False

    def reseed(self, offset: int) -> Graph:
        """Return the same graph with `offset` added to the seed of every random piece.

        Layer `l` of a model uses `graph.reseed(l)`, so that layers see different random blocks.

        Examples:
            >>> from longbird.graph import RandomBlocks
            >>> RandomBlocks(3, block=64, seed=1).reseed(2).seed
            3
        """
        return self

    def _content(self) -> dict[str, object]:
        """The fields of the JSON form: by default those of the dataclass."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
        }

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Graph:
        """The graph of these fields; a TypeError or ValueError if they are not its fields."""
        return cls(**content)

    # The definition, and what kernels take.

    def counts(self, n: int, heads: int = 1) -> npt.NDArray[np.int32]:
        """How many times each query attends to each key: int32 [heads, n, n].

        A multiplicity above 1 comes from legacy checkpoints alone, which count a block listed
        twice twice in the softmax. In a union multiplicities take the maximum, in an
        intersection the minimum.
        """
        n, heads = integer(n, "n"), integer(heads, "heads", least=1)
        return np.broadcast_to(self._counts(n, heads), (heads, n, n)).astype(np.int32)

    def mask(self, n: int, heads: int = 1) -> npt.NDArray[np.bool_]:
        """The graph over `n` tokens as a dense bool [heads, n, n]: its definition, for small n.

        Examples:
            >>> from longbird.graph import Window
            >>> Window(1).mask(3, heads=2).shape
            (2, 3, 3)
        """
        n, heads = integer(n, "n"), integer(heads, "heads", least=1)
        return np.broadcast_to(self._counts(n, heads) > 0, (heads, n, n)).copy()

    def layout(
        self,
        n: int,
        heads: int = 1,
        block: int | None = None,
        *,
        rows: tuple[int, int] | None = None,
    ) -> Layout:
        """Compile the graph over `n` tokens into the arrays that kernels take.

        Takes time and memory in proportion to the tiles that have an edge, never n x n, and is
        cached.

        Args:
            n: Number of tokens.
            heads: Number of attention heads.
            block: Tile size, 1 to 128; by default one that suits the graph.
            rows: Only the queries `rows[0] <= i < rows[1]`, against all `n` keys (decoding
                steps, shards of a sequence); by default all queries.

        Examples:
            >>> from longbird.graph import Window
            >>> layout = Window(64).layout(1_000_000)
            >>> layout.entries
            46873
            >>> len(layout.masks)
            2
        """
        from longbird.layout import compile_layout

        return compile_layout(self, n, heads, block, rows=rows)

    # Algebra, identity and text.

    def __or__(self, other: object) -> Graph:
        """Edges of either graph."""
        return Union.of((self, other)) if isinstance(other, Graph) else NotImplemented

    def __and__(self, other: object) -> Graph:
        """Edges of both graphs."""
        return Intersection.of((self, other)) if isinstance(other, Graph) else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Whether both are written with the same pieces."""
        return self.key == other.key if isinstance(other, Graph) else NotImplemented

    def __hash__(self) -> int:
        """Hash of the key."""
        return hash(self.key)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as JSON."""
        return Graph.from_json, (self.to_json(),)

    def to_json(self) -> str:
        """The graph as JSON.

        Examples:
            >>> from longbird.graph import Window
            >>> Window(3).to_json()
            '{"type": "Window", "radius": 3, "dilation": 1}'
        """
        return self._json

    @staticmethod
    def from_json(text: str) -> Graph:
        """The graph that `to_json` wrote.

        Raises:
            ValueError: If the text is not the JSON of a graph; the message names what is wrong.
        """
        if not isinstance(text, (str, bytes, bytearray)):
            raise TypeError(f"the JSON of a graph is a string, received {type(text).__name__}")
        try:
            value = _decode(json.loads(text))
        except RecursionError:
            raise ValueError("the JSON of the graph is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise ValueError(f"the graph is not valid JSON: {error}") from None
        if not isinstance(value, Graph):
            raise ValueError(
                f"the JSON of a graph is an object with a type, received {text!r:.80}"
            )
        return value

    @staticmethod
    def from_key(key: str) -> Graph:
        """The graph with this key: any graph with a short one, a living one with a sha256 key."""
        graph = Graph._living.get(key)
        if graph is not None:
            return graph
        if key.startswith("sha256:"):
            raise ValueError(
                f"no graph of this process has the key {key}; a key of a large graph "
                "only works while that graph is alive, so keep it, or use its JSON"
            )
        return _parsed(key)


@functools.lru_cache(maxsize=256)
def _parsed(key: str) -> Graph:
    """Graphs that only a compiled or exported program still knows."""
    return Graph.from_json(key)


class _Combination(Graph):
    """Several different graphs in canonical order; the order they were given in has no meaning."""

    parts: tuple[Graph, ...]

    def __post_init__(self) -> None:
        """Flatten, sort and deduplicate the parts."""
        found = {part.key: part for part in self._flat(self.parts)}
        if len(found) < 2:
            raise ValueError(
                f"{type(self).__name__} needs two different parts or more, received {self.parts!r}"
            )
        self._set(parts=tuple(sorted(found.values(), key=Graph.to_json)))
        super().__post_init__()

    @classmethod
    def _flat(cls, parts: Iterable[object]) -> Iterator[Graph]:
        for part in parts:
            if not isinstance(part, Graph):
                raise TypeError(
                    f"the parts of {cls.__name__} must be graphs, received {part!r} "
                    f"({type(part).__name__})"
                )
            yield from part.parts if isinstance(part, cls) else (part,)

    @classmethod
    def of(cls, parts: Iterable[object]) -> Graph:
        """Combine the parts; a single one (or one repeated) is itself."""
        found = tuple({part.key: part for part in cls._flat(parts)}.values())
        if not found:
            raise ValueError(f"{cls.__name__} needs at least one part")
        return found[0] if len(found) == 1 else cls(found)  # type: ignore[call-arg]

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Graph:
        parts = content.pop("parts", None)
        if content or not isinstance(parts, tuple):
            raise TypeError(f"it has one field, a list named parts; received {sorted(content)}")
        return cls.of(parts)

    @property
    def per_head(self) -> bool:
        return any(part.per_head for part in self.parts)

    def reseed(self, offset: int) -> Graph:
        return self.of(part.reseed(offset) for part in self.parts)


@dataclass(frozen=True, eq=False, repr=False)
class Union(_Combination):
    """The edges of any of the parts; usually written `a | b`.

    Examples:
        >>> from longbird.graph import GlobalTokens, Window
        >>> Window(2) | GlobalTokens([0])
        GlobalTokens(positions=(0,)) | Window(radius=2, dilation=1)
    """

    parts: tuple[Graph, ...]

    def _counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        return functools.reduce(np.maximum, (part._counts(n, heads) for part in self.parts))

    def __repr__(self) -> str:
        """The parts joined by `|`."""
        return " | ".join(map(repr, self.parts))


@dataclass(frozen=True, eq=False, repr=False)
class Intersection(_Combination):
    """The edges that all parts have; usually written `a & b`.

    Examples:
        >>> from longbird.graph import Causal, Window
        >>> Window(2) & Causal()
        Causal() & Window(radius=2, dilation=1)
    """

    parts: tuple[Graph, ...]

    def _counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        return functools.reduce(np.minimum, (part._counts(n, heads) for part in self.parts))

    def __repr__(self) -> str:
        """The parts joined by `&`, unions in parentheses."""
        return " & ".join(f"({p!r})" if isinstance(p, Union) else repr(p) for p in self.parts)


def _encode(value: object) -> str:
    """JSON of a field; graphs bring the text they already have."""
    if isinstance(value, Graph):
        return value.to_json()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_encode, value)) + "]"
    return json.dumps(value)


def _decode(value: Any) -> Any:
    """Turn parsed JSON into fields: objects are graphs and lists are tuples."""
    if isinstance(value, list):
        return tuple(map(_decode, value))
    if not isinstance(value, dict):
        return value
    content = dict(value)
    name = content.pop("type", None)
    if not isinstance(name, str) or name.startswith("_") or name not in Graph._types:
        known = ", ".join(sorted(name for name in Graph._types if not name.startswith("_")))
        raise ValueError(f"unknown graph type {name!r}; known types are {known}")
    decoded = {field: _decode(content[field]) for field in content}
    try:
        return Graph._types[name]._from_content(decoded)
    except TypeError as error:
        raise ValueError(f"the JSON of {name} is wrong: {error}") from None
