"""What every graph can do, and what a piece defines.

An attention graph says which queries see which keys. It is immutable, it has no length (the same
graph serves every length), and it is the one value that kernels, models and checkpoints take.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import operator
import weakref
from abc import ABC
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from longbird.core.graph import jsonform
from longbird.core.graph.arguments import MOST_SEED, MOST_TOKENS, check_arguments, integer, shown
from longbird.core.graph.reach import Reach
from longbird.core.machine import check_memory
from longbird.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from longbird.analysis.measures import Analysis, Star
    from longbird.core.layout import Layout

LONGEST_KEY = 65536
LARGEST_TILE = 128

# Dense arrays of up to this size are made without a second thought.
SMALL_BYTES = 2**28

# Graphs inside graphs. People write three or four; a file may be hostile.
DEEPEST = 100

Positions = npt.NDArray[np.int64]


class Graph(ABC):
    """A directed graph over tokens: query `i` attends to key `j` where there is an edge (i, j).

    Graphs combine with `|` (edges of either) and `&` (edges of both). Two graphs are equal when
    they are written with the same pieces; the order and repetition of the pieces do not matter.

    A piece of one's own is a frozen dataclass with the rule `edge(self, i, j, n)`; docs/graphs.md
    shows how, and which of the facts below make it fast and let decoders use it.

    Attributes:
        key: A string that is the same for equal graphs and no others.
        per_head: Whether the graph differs between heads.
        multiset: Whether an edge may count more than once.
        streams: Whether the graph over n tokens is that over more tokens, cut to n, so that a
            decoder can go on without changing what it saw.
        advice: What to do about a graph that does not stream.
        period: How far both positions can move together without changing the rule; None if they
            cannot. Layouts then compute a mask once, however long the sequence is.
        tile_size: The size of tiles that cuts few blocks of the graph; None if any size will do.
        kind: What pictures call the edges, which gives them their colour; by default the name of
            the class.

    Examples:
        >>> from longbird.core.graph import Causal, Graph, Window
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

    # The facts of a piece, which it sets in its class or in `__post_init__` where they differ.
    per_head: bool = False
    multiset: bool = False
    streams: bool = False
    advice: str = "leave it out"
    period: int | None = None
    tile_size: int | None = None
    kind: str = ""

    # Only pairs with equal positions modulo this have edges, so that tokens may be sorted by it;
    # None if any order of the tokens will do.
    _stride: int | None = 1
    # The graphs that this one is combined from.
    _inner: tuple[Graph, ...] = ()
    # The fewest tokens that have all its positions, and the heads that it is made for.
    _shortest: int = 1
    _heads: int = 1

    key: str
    _json: str
    _depth: int
    # Which definitions of redefined pieces it holds: its JSON cannot tell them from earlier ones.
    _redefined: tuple[int, ...] = ()
    _definition: ClassVar[int] = 0
    _definitions: ClassVar[int] = 0
    _types: ClassVar[dict[str, type[Graph]]] = {}
    _living: ClassVar[weakref.WeakValueDictionary[str, Graph]] = weakref.WeakValueDictionary()

    # What a piece defines.

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Whether query `i` attends to key `j` in a sequence of `n` tokens, elementwise.

        Written with operators alone (`<`, `//`, `&`, `abs`), it also serves the tensors of a
        decoder.

        Args:
            i: Positions of queries.
            j: Positions of keys, of a shape that broadcasts with the other.
            n: Tokens in the sequence.
        """
        raise InvalidTypeError(
            f"{type(self).__name__} is not defined by a rule on positions; a piece of your own "
            "has to define edge(self, i, j, n)"
        )

    def reach(self, n: int) -> Reach:
        """Limits that no edge over `n` tokens goes beyond; by default there are none."""
        return Reach()

    def spans(self, first: Positions, last: Positions, n: int) -> tuple[Positions, Positions]:
        """Where the keys of tiles of queries are, as closely as the graph can tell.

        By default from `reach`.

        Args:
            first: The first query of each tile: [tiles, 1].
            last: The last query of each tile.
            n: Tokens in the sequence.

        Returns:
            The first and the last key of each span: [tiles, spans], or a shape that broadcasts to
            it. No query of a tile has a key outside of its spans. A span may be empty (the last
            before the first) and may go beyond the sequence.
        """
        reach = self.reach(n)
        if not isinstance(reach, Reach):
            raise InvalidTypeError(
                f"reach of {type(self).__name__} must give a Reach, received {shown(reach)}"
            )
        low = first - int(min(reach.behind, n))
        high = last + int(min(reach.ahead, n))
        if not reach.sinks:
            return low, high
        zero = 0 * first
        return np.hstack([zero, low]), np.hstack([zero + reach.sinks - 1, high])

    def tile_count(self, n: int, size: int) -> float:
        """About how many tiles of `size` tokens have an edge in a head; by default from spans."""
        rows = -(-n // size)
        first = np.unique(np.linspace(0, max(rows - 1, 0), 64).astype(np.int64))[:, None] * size
        low, high = self._spans(first, np.minimum(first + size, n) - 1, n)
        low, high = np.maximum(low, 0) // size, np.minimum(high, n - 1) // size
        tiles = np.maximum(high - low + 1, 0).sum(axis=1)
        return rows * float(np.minimum(tiles, rows).mean())

    def reseed(self, offset: int) -> Graph:
        """Return the same graph with `offset` added to every field that is called `seed`.

        Layer `l` of a model uses `graph.reseed(l)`, so that layers see different random blocks.

        Examples:
            >>> from longbird.core.graph import RandomBlocks
            >>> RandomBlocks(3, block=64, seed=1).reseed(2).seed
            3
        """
        offset = integer(offset, "the offset of reseed", least=-MOST_SEED, most=MOST_SEED)
        graph = self._mapped(lambda inner: inner.reseed(offset))
        if "seed" not in graph._fields():
            return graph
        seed: Any = graph.seed  # type: ignore[attr-defined]
        try:
            return dataclasses.replace(graph, seed=seed + offset)  # type: ignore[type-var]
        except (TypeError, ValueError) as error:
            raise type(error)(f"reseed adds {offset} to the seed {seed!r}, but {error}") from None

    def at(self, n: int) -> Graph:
        """The graph that this one is over `n` tokens: itself, unless the length chooses."""
        return self._mapped(lambda inner: inner.at(n))

    def for_head(self, head: int) -> Graph:
        """The graph that this one is in a head: itself, unless each head has its own."""
        return self._mapped(lambda inner: inner.for_head(head))

    def _counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Multiplicities, bool or int32, of a shape that broadcasts to [heads, n, n]."""
        token = np.arange(n)
        return self._edge(token[:, None], token, n)

    def _edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """What `edge` gives, checked and of the shape of the pairs."""
        shape = np.broadcast_shapes(i.shape, j.shape)
        if not n:
            return np.zeros(shape, bool)
        given = self.edge(i, j, n)
        try:
            found = np.asarray(given)
            pairs = np.broadcast_to(found, shape)
        except ValueError:  # it does not fit, or is a list of rows of different lengths
            received = getattr(given, "shape", type(given).__name__)
            raise InvalidValueError(
                f"edge of {type(self).__name__} must give a bool for each pair of i "
                f"{i.shape} and j {j.shape}, so the shape {shape}, received {received}; compare i "
                "and j elementwise"
            ) from None
        if found.dtype != bool:
            raise InvalidTypeError(
                f"edge of {type(self).__name__} must give bools, received {found.dtype}; compare, "
                "as in (i - j) % 3 == 0"
            )
        return pairs

    def _spans(self, first: Positions, last: Positions, n: int) -> tuple[Positions, Positions]:
        """What `spans` gives, checked and of the shape [tiles, spans]."""
        found: object = self.spans(first, last, n)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise InvalidTypeError(
                f"spans of {type(self).__name__} must give two arrays, the first and the last key "
                f"of each span, received {type(found).__name__}"
            )
        low, high = map(np.asarray, found)
        if low.shape != high.shape:
            low, high = np.broadcast_arrays(low, high)
        if low.ndim != 2 or len(low) not in (1, len(first)) or low.dtype.kind != "i":
            raise InvalidTypeError(
                f"spans of {type(self).__name__} must give integers of the shape "
                f"({len(first)}, spans), received {low.dtype} {low.shape}"
            )
        if len(low) == len(first):
            return low, high
        shape = len(first), low.shape[1]
        return np.broadcast_to(low, shape), np.broadcast_to(high, shape)

    def _breaks(self, n: int) -> Positions:
        """Where queries begin to see something other than those before them, if that is rare."""
        return np.unique(np.concatenate([part._breaks(n) for part in self._inner] or [[0]]))

    def _sees(self, i: Any, j: Any, head: Any) -> Any:
        """The rule at any length, for arrays and for tensors; see `Stream.sees`."""
        return self.edge(i, j, MOST_TOKENS)

    # Construction.

    def __init_subclass__(cls) -> None:
        """Make the class known by its name, for JSON and for expressions."""
        # A dataclass leaves alone what its class defines, and would otherwise compare fields.
        for method in ("__eq__", "__hash__", "__repr__"):
            if method not in cls.__dict__:
                setattr(cls, method, getattr(cls, method))
        name = cls.__name__
        if name.startswith("_"):
            return
        changed = next((base for base in cls.__mro__[1:] if base in Graph._types.values()), None)
        if changed is not None and "edge" in cls.__dict__:
            raise InvalidTypeError(
                f"{name} changes the rule of {changed.__name__}, whose other facts (reach, "
                "tiles) would then be wrong; derive it from Graph, or combine graphs with | and &"
            )
        known = Graph._types.get(name)
        # The same module may define it again: a cell of a notebook is run twice.
        if known is not None and known.__module__ != cls.__module__:
            raise InvalidTypeError(
                f"there already is a piece called {name}, in {known.__module__}, and a piece is "
                "found by its name; choose another name for this one"
            )
        if known is not None:
            Graph._definitions += 1
            cls._definition = Graph._definitions
        Graph._types[name] = cls

    def __post_init__(self) -> None:
        """Write the canonical JSON and the key; the last step of every construction."""
        if not type(self).__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise InvalidTypeError(
                f"{type(self).__name__} can be changed: use @dataclass(frozen=True)"
            )
        fields = {name: jsonform.plain(value) for name, value in self._fields().items()}
        clash = TAKEN.intersection(fields)
        if clash:
            raise InvalidTypeError(
                f"{type(self).__name__} has a field called {min(clash)}, which means something "
                "else in every graph; choose another name, or leave out its annotation to set it"
            )
        for fact, most in (("period", MOST_TOKENS), ("tile_size", LARGEST_TILE)):
            if getattr(self, fact) is not None:
                integer(getattr(self, fact), f"{type(self).__name__} {fact}", least=1, most=most)
        inside = list(_graphs_in(fields))
        redefined = {number for graph in inside for number in graph._redefined}
        self._set(
            **fields,
            _depth=1 + max((graph._depth for graph in inside), default=0),
            _shortest=max(self._shortest, *(graph._shortest for graph in inside), 1),
            _heads=max(self._heads, *(graph._heads for graph in inside), 1),
        )
        if self._depth > DEEPEST:
            raise InvalidValueError(f"the graph is nested too deeply: more than {DEEPEST} levels")
        self._identify(redefined)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Explain the one mistake that leaves a graph unfinished."""
            if name in ("key", "_json", "_depth"):
                reason = ".__post_init__ has to end with super().__post_init__()"
                if not dataclasses.is_dataclass(self):
                    reason = " is not a dataclass: write @dataclass(frozen=True) above it"
                raise AttributeError(type(self).__name__ + reason)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _set(self, **values: object) -> None:
        """Set attributes during construction; afterwards the dataclass is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _fields(self) -> dict[str, Any]:
        """The arguments that the dataclass was made from, by name."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: getattr(self, field.name) for field in fields if field.init}

    def _mapped(self, function: Callable[[Graph], Graph]) -> Graph:
        """The same piece with other graphs in its fields."""
        fields = self._fields()
        changed = {name: _map_graphs(fields[name], function) for name in fields}
        changed = {name: changed[name] for name in fields if changed[name] is not fields[name]}
        return dataclasses.replace(self, **changed) if changed else self  # type: ignore[type-var]

    def _content(self) -> dict[str, object]:
        """The fields of the JSON form: by default those of the dataclass."""
        return self._fields()

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Graph:
        """The graph of these fields; a TypeError or ValueError if they are not its fields."""
        return cls(**content)

    # The definition, what kernels take, and pictures.

    def counts(self, n: int, heads: int = 1) -> npt.NDArray[np.int32]:
        """How many times each query attends to each key: int32 [heads, n, n].

        A multiplicity above 1 comes from legacy checkpoints alone, which count a block listed
        twice twice in the softmax. In a union multiplicities take the maximum, in an
        intersection the minimum.
        """
        n, heads = self._checked_dense("counts", n, heads, np.int32)
        return np.broadcast_to(self._counts(n, heads), (heads, n, n)).astype(np.int32)

    def mask(self, n: int, heads: int = 1) -> npt.NDArray[np.bool_]:
        """The graph over `n` tokens as a dense bool [heads, n, n]: its definition, for small n.

        Examples:
            >>> from longbird.core.graph import Window
            >>> Window(1).mask(3, heads=2).shape
            (2, 3, 3)
        """
        n, heads = self._checked_dense("mask", n, heads, np.bool_)
        return np.broadcast_to(self._counts(n, heads) > 0, (heads, n, n)).copy()

    def _checked_dense(self, method: str, n: Any, heads: Any, dtype: type) -> tuple[int, int]:
        """Check the size of a dense array, before anything of that size exists."""
        n, heads = integer(n, "n"), integer(heads, "heads", least=1)
        # Computing it takes an int64 for each pair of positions besides the result.
        needed = n * n * (8 + heads * np.dtype(dtype).itemsize)
        if needed > SMALL_BYTES:
            check_memory(
                needed,
                f"{self!r:.200}.{method}({n}, heads={heads})",
                "it is dense: choose fewer tokens or heads, or layout(n), which grows with the "
                "edges alone",
            )
        return n, heads

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

        Raises:
            ValueError: If the layout would not fit into memory, or an argument is out of range.

        Examples:
            >>> from longbird.core.graph import Window
            >>> layout = Window(64).layout(1_000_000)
            >>> layout.entries
            46873
            >>> len(layout.masks)
            2
        """
        from longbird.core.layout import compile_layout

        return compile_layout(self, n, heads, block, rows=rows)

    def show(self, n: int | None = None, heads: int | None = None, head: int = 0) -> None:
        """Draw one head of the graph over `n` tokens: in a notebook a picture, else as text.

        Args:
            n: Number of tokens; by default 1,024, or as many as the positions of the graph need.
            heads: Number of heads; by default 1, or as many as the graph is made for.
            head: The head to draw.

        Examples:
            >>> from longbird.core.graph import Causal, Window
            >>> (Window(2) & Causal()).show(12)  # doctest: +SKIP
        """
        from longbird.analysis.drawing import show

        show(self, n, heads, head)

    def analyse(self, n: int, heads: int = 1) -> Analysis:
        """Measure the graph over `n` tokens: paths, clustering, spectral gap and more.

        Numbers are exact where that is feasible, and say so; otherwise they come from a sample,
        with a confidence interval. Nothing n x n is ever built. docs/measures.md explains them.

        Args:
            n: Number of tokens.
            heads: Number of heads. The measures are of the union of their edges; `per_head` has
                those of each head.

        Examples:
            >>> from longbird.core.graph import GlobalTokens, Window
            >>> Window(8).analyse(1000).diameter
            125
            >>> (Window(8) | GlobalTokens([0])).analyse(1000).diameter
            2
        """
        from longbird.analysis.measures import analyse

        return analyse(self, n, heads)

    def path(self, i: int, j: int, n: int, heads: int | None = None) -> list[int] | None:
        """A shortest list of tokens `[i, ..., j]` by which the content of `j` gets to `i`.

        Each token of the list sees the next one, so the content of `j` is in `i` after as many
        layers as there are steps. None if it never gets there.

        Args:
            i: The token that reads.
            j: The token that is read.
            n: Number of tokens.
            heads: Number of heads, whose edges all count; by default 1, or as many as the graph is
                made for.

        Examples:
            >>> from longbird.core.graph import Causal, Window
            >>> (Window(3) & Causal()).path(7, 0, n=10)
            [7, 4, 1, 0]
            >>> (Window(3) & Causal()).path(0, 7, n=10) is None
            True
        """
        from longbird.analysis.measures import shortest_path

        return shortest_path(self, i, j, n, heads)

    def contains_star(self, n: int, heads: int | None = None) -> Star:
        """Whether the graph contains the star that BigBird's universality theorem needs.

        A token that sees all others and is seen by all, while every other token sees itself; in
        each head. The result is true or false, and names the token, or the edges that are missing.

        Args:
            n: Number of tokens.
            heads: Number of heads; by default 1, or as many as the graph is made for.

        Examples:
            >>> from longbird.core.graph import GlobalTokens, Window
            >>> star = (Window(1) | GlobalTokens([5])).contains_star(100)
            >>> bool(star), star.centre
            (True, 5)
            >>> Window(1).contains_star(4).missing
            ((1, 3), (3, 1))
        """
        from longbird.analysis.measures import contains_star

        return contains_star(self, n, heads)

    def _repr_svg_(self) -> str | None:
        """The picture that notebooks show; None, and so its text, where there is none."""
        from longbird.analysis.drawing import notebook_picture

        return notebook_picture(self)

    # Identity: graphs with one key are one graph, wherever graphs are compared, kept or looked up.

    def _identify(self, redefined: set[int]) -> None:
        """Write the canonical JSON, and the key: the JSON itself where it is short enough.

        Args:
            redefined: Which definitions of redefined pieces the graphs inside it hold.
        """
        content = {"type": type(self).__name__, **self._content()}
        text = ", ".join(f'"{name}": {jsonform.encode(content[name])}' for name in content)
        text = "{" + text + "}"
        definitions = tuple(sorted(redefined | ({type(self)._definition} - {0})))
        key = text
        if len(text) > LONGEST_KEY or definitions:
            digest = hashlib.sha256(f"{text}{definitions or ''}".encode()).hexdigest()
            key = "sha256:" + digest
        self._set(_json=text, key=key, _redefined=definitions)
        # `from_key` finds the first of equal graphs, which therefore lives as long as any of them.
        first = Graph._living.setdefault(key, self)
        if first is not self:
            self._set(_first=first)

    def __eq__(self, other: object) -> bool:
        """Whether both are written with the same pieces."""
        return self.key == other.key if isinstance(other, Graph) else NotImplemented

    def __hash__(self) -> int:
        """Hash of the key."""
        return hash(self.key)

    @staticmethod
    def from_key(key: str) -> Graph:
        """The graph with this key: any graph with a short one, a living one with a sha256 key."""
        graph = Graph._living.get(key)
        if graph is not None:
            return graph
        if key.startswith("sha256:"):
            raise InvalidValueError(
                f"no graph of this process has the key {key}; the key of a large graph, or of a "
                "piece that was defined again, only works while that graph is alive, so keep it, "
                "or use its JSON"
            )
        return _parsed(key)

    # Algebra and text.

    def __or__(self, other: object) -> Graph:
        """Edges of either graph."""
        from longbird.core.graph.combinations import Union

        return Union.of((self, other)) if isinstance(other, (Graph, str)) else NotImplemented

    def __and__(self, other: object) -> Graph:
        """Edges of both graphs."""
        from longbird.core.graph.combinations import Intersection

        return (
            Intersection.of((self, other)) if isinstance(other, (Graph, str)) else NotImplemented
        )

    __ror__, __rand__ = __or__, __and__

    def __repr__(self) -> str:
        """As it is written."""
        fields = ", ".join(f"{name}={value!r}" for name, value in self._fields().items())
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields of the JSON form, and where the class is from."""
        return _unpickled, (type(self).__module__, type(self).__name__, self._content())

    def to_json(self) -> str:
        """The graph as JSON.

        Examples:
            >>> from longbird.core.graph import Window
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
            raise InvalidTypeError(
                f"the JSON of a graph is a string, received {type(text).__name__}"
            )
        value = jsonform.decode(text, Graph._made)
        if not isinstance(value, Graph):
            raise InvalidValueError(
                f"the JSON of a graph is an object with a type, received {shown(text)}"
            )
        return value

    @staticmethod
    def _made(name: object, content: dict[str, Any]) -> Graph:
        """The graph of a type and its fields, as files have them."""
        if not isinstance(name, str) or name not in Graph._types:
            raise InvalidValueError(
                f"unknown graph type {shown(name)}; known types are "
                f"{', '.join(sorted(Graph._types))}, and pieces of your own once the module that "
                "defines them is imported"
            )
        piece = Graph._types[name]
        try:
            return piece._from_content(dict(content))
        except TypeError as error:
            problem = error
        try:
            check_arguments(piece, (), content)  # it says more than the error of a constructor
        except TypeError as error:
            problem = error
        raise InvalidValueError(f"the JSON of {name} is wrong: {problem}") from None


# Names that mean something in every graph, and so cannot be fields of a piece.
TAKEN = frozenset(vars(Graph)) | frozenset(Graph.__annotations__)


@functools.lru_cache(maxsize=256)
def _parsed(key: str) -> Graph:
    """Graphs that only a compiled or exported program still knows."""
    return Graph.from_json(key)


def _unpickled(module: str, name: str, content: dict[str, Any]) -> Graph:
    if name not in Graph._types:
        importlib.import_module(module)
    return Graph._made(name, content)


def _graphs_in(value: Any) -> Iterator[Graph]:
    """The graphs among fields."""
    if isinstance(value, Graph):
        yield value
    elif isinstance(value, (dict, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _graphs_in(item)


def _map_graphs(value: Any, function: Callable[[Graph], Graph]) -> Any:
    """A field with the function applied to its graphs; the same object if none changed."""
    if isinstance(value, Graph):
        return function(value)
    if not isinstance(value, tuple):
        return value
    items = tuple(_map_graphs(item, function) for item in value)
    return value if all(map(operator.is_, items, value)) else items
