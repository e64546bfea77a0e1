"""The class that all graphs derive from: what a piece defines, and what every graph can do.

An attention graph specifies which queries see which keys. It is immutable and has no length: the
same graph serves every length. Kernels, models and checkpoints all take this one value.
"""

from __future__ import annotations

import dataclasses
from abc import ABC
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from longbird.core.graph import identity, jsonform, rules
from longbird.core.graph.arguments import MOST_SEED, MOST_TOKENS, integer, shown
from longbird.core.graph.fields import fields_of, graphs_in, replaced, with_graphs
from longbird.core.graph.reach import Reach
from longbird.core.graph.rules import Positions, edges_between, spans_of_tiles
from longbird.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from longbird.analysis.measures import Analysis, Star
    from longbird.core.layout import Layout

# Levels of graphs inside graphs. People write three or four; an untrusted file may have more.
DEEPEST = 100


class Graph(ABC):
    """A directed graph over tokens: query `i` attends to key `j` where there is an edge (i, j).

    Graphs combine with `|` (edges of either) and `&` (edges of both). Two graphs are equal when
    they are written with the same pieces; the order and repetition of the pieces do not matter.

    A piece is a frozen dataclass that derives from this class and defines its rule,
    `edge(self, i, j, n)`. It may replace the defaults of the attributes below and of `reach`,
    `spans`, `tile_count`, `edge_counts`, `sees`, `reseed`, `at` and `for_head`, which
    docs/graphs.md explains. Other packages depend on nothing else of a piece.

    Attributes:
        key: Text that is the same for equal graphs and no others.
        per_head: Whether the graph differs between heads.
        multiset: Whether an edge may count more than once.
        streams: Whether the graph over n tokens is that over more tokens, cut to n, so that a
            decoder can continue without changing what earlier tokens saw.
        advice: Remedy that messages suggest for a graph that does not stream.
        period: Distance by which both positions can move together without changing the rule, or
            None if there is none. Layouts then compute a mask once, however long the sequence is.
        tile_size: Size of tiles that cuts few blocks of the graph, or None if any size will do.
        kind: Name of its edges in pictures, and so their colour; by default that of the class.
        sort_modulus: Number modulo which the positions of an edge are equal, so that tokens may be
            sorted by it; None if any order of the tokens will do.
        combines: Graphs that this one combines; empty for a piece.
        least_tokens: Smallest number of tokens that has all its positions.
        least_heads: Number of heads that it is made for.

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

    # What a piece declares, in its class or in `__post_init__`, where it differs from this.
    per_head: bool = False
    multiset: bool = False
    streams: bool = False
    advice: str = "leave it out"
    period: int | None = None
    tile_size: int | None = None
    kind: str = ""
    sort_modulus: int | None = 1
    combines: tuple[Graph, ...] = ()
    least_tokens: int = 1
    least_heads: int = 1

    # What is derived from the fields.
    key: str
    redefinition: ClassVar[int] = 0
    _json: str
    _depth: int
    _redefined: tuple[int, ...] = ()

    # What a piece defines.

    def edge(self, i: Positions, j: Positions, n: int) -> npt.NDArray[np.bool_]:
        """Return whether query `i` attends to key `j` in a sequence of `n` tokens, elementwise.

        A rule that is written with operators alone (`<`, `//`, `&`, `abs`) also accepts the
        tensors of a decoder.

        Args:
            i: Positions of queries.
            j: Positions of keys, of a shape that broadcasts with that of `i`.
            n: Number of tokens.
        """
        raise InvalidTypeError(
            f"{type(self).__name__} is not defined by a rule on positions; a piece of your own "
            "has to define edge(self, i, j, n)"
        )

    def reach(self, n: int) -> Reach:
        """Return limits that no edge over `n` tokens exceeds; by default there are none."""
        return Reach()

    def spans(self, first: Positions, last: Positions, n: int) -> tuple[Positions, Positions]:
        """Return where the keys of tiles of queries are, by default as far as `reach` allows.

        Args:
            first: First query of each tile: [tiles, 1].
            last: Last query of each tile.
            n: Number of tokens.

        Returns:
            First and last key of each span: [tiles, spans], or a shape that broadcasts to it. No
            query of a tile has a key outside of its spans. A span may be empty (last before first)
            and may exceed the sequence.
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
        """Estimate how many tiles of `size` tokens have an edge in a head; by default by spans."""
        rows = -(-n // size)
        first = np.unique(np.linspace(0, max(rows - 1, 0), 64).astype(np.int64))[:, None] * size
        low, high = spans_of_tiles(self, first, np.minimum(first + size, n) - 1, n)
        low, high = np.maximum(low, 0) // size, np.minimum(high, n - 1) // size
        tiles = np.maximum(high - low + 1, 0).sum(axis=1)
        return rows * float(np.minimum(tiles, rows).mean())

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return how often each edge counts, bool or int32, broadcastable to [heads, n, n].

        A piece that is not defined by a rule defines this instead.
        """
        token = np.arange(n)
        return edges_between(self, token[:, None], token, n)

    def sees(self, i: Any, j: Any, head: Any) -> Any:
        """Return the rule at any length, for arrays and tensors; `Stream.sees` documents it."""
        return self.edge(i, j, MOST_TOKENS)

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
        fields = fields_of(graph)
        if "seed" not in fields:
            return graph
        seed = fields["seed"]
        try:
            return replaced(graph, seed=seed + offset)
        except (TypeError, ValueError) as error:
            raise type(error)(f"reseed adds {offset} to the seed {seed!r}, but {error}") from None

    def at(self, n: int) -> Graph:
        """Return the graph that this one is over `n` tokens: itself, unless the length decides."""
        return self._mapped(lambda inner: inner.at(n))

    def for_head(self, head: int) -> Graph:
        """Return the graph that this one is in a head: itself, unless each head has its own."""
        return self._mapped(lambda inner: inner.for_head(head))

    # Construction.

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        """Register the class by its name, unless it is abstract: a base of several pieces."""
        # A dataclass leaves alone what its class defines, and would otherwise compare fields.
        for method in ("__eq__", "__hash__", "__repr__"):
            if method not in cls.__dict__:
                setattr(cls, method, getattr(cls, method))
        if not abstract and not cls.__name__.startswith("_"):
            identity.register(cls)

    def __post_init__(self) -> None:
        """Check the fields and write the JSON and the key; the last step of every construction."""
        fields = {field: jsonform.plain(value) for field, value in fields_of(self).items()}
        rules.check_declaration(self, TAKEN.intersection(fields))
        inside = list(graphs_in(fields))
        depth = 1 + max((graph._depth for graph in inside), default=0)
        if depth > DEEPEST:
            raise InvalidValueError(f"the graph is nested too deeply: more than {DEEPEST} levels")
        self._set(
            **fields,
            _depth=depth,
            least_tokens=max(1, self.least_tokens, *(graph.least_tokens for graph in inside)),
            least_heads=max(1, self.least_heads, *(graph.least_heads for graph in inside)),
        )
        text, key, redefined = identity.identify(
            type(self), self._content(), {each for graph in inside for each in graph._redefined}
        )
        self._set(_json=text, key=key, _redefined=redefined)
        first = identity.first_with_key(self)
        if first is not self:
            self._set(_first=first)  # keeps the graph that is found by the key alive

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

    def _mapped(self, function: Callable[[Graph], Graph]) -> Graph:
        """Return the same piece with the function applied to the graphs in its fields."""
        return with_graphs(self, function)

    def _content(self) -> dict[str, object]:
        """Return the fields of the JSON form: by default those of the dataclass."""
        return fields_of(self)

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Graph:
        """Return the graph with these fields; raise TypeError or ValueError if they do not fit."""
        return cls(**content)

    # The definition, what kernels take, and pictures.

    def counts(self, n: int, heads: int = 1) -> npt.NDArray[np.int32]:
        """Return how many times each query attends to each key: int32 [heads, n, n].

        Only graphs of published BigBird checkpoints have counts above 1: a block that is listed
        twice counts twice in the softmax. A union has the largest count of its parts, an
        intersection the smallest.
        """
        n, heads = rules.checked_dense(self, "counts", n, heads, itemsize=4)
        return np.broadcast_to(self.edge_counts(n, heads), (heads, n, n)).astype(np.int32)

    def mask(self, n: int, heads: int = 1) -> npt.NDArray[np.bool_]:
        """Return the graph over `n` tokens as a dense bool [heads, n, n]: its definition.

        Examples:
            >>> from longbird.core.graph import Window
            >>> Window(1).mask(3, heads=2).shape
            (2, 3, 3)
        """
        n, heads = rules.checked_dense(self, "mask", n, heads, itemsize=1)
        return np.broadcast_to(self.edge_counts(n, heads) > 0, (heads, n, n)).copy()

    def layout(
        self,
        n: int,
        heads: int = 1,
        block: int | None = None,
        *,
        rows: tuple[int, int] | None = None,
    ) -> Layout:
        """Compile the graph over `n` tokens into the arrays that kernels take.

        Takes time and memory in proportion to the tiles that have an edge, never n x n. Layouts
        are cached.

        Args:
            n: Number of tokens.
            heads: Number of attention heads.
            block: Tile size, 1 to 128; by default one that suits the graph.
            rows: Range of queries, `rows[0] <= i < rows[1]`, against all `n` keys (for decoding
                steps and shards of a sequence); by default all queries.

        Raises:
            ValueError: The layout would not fit into memory, or an argument is out of range.

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
        """Draw one head of the graph over `n` tokens: as a picture in notebooks, else as text.

        Args:
            n: Number of tokens; by default 1,024, or as many as the positions of the graph need.
            heads: Number of heads; by default 1, or as many as the graph is made for.
            head: The head to draw.
        """
        from longbird.analysis.drawing import show

        show(self, n, heads, head)

    def analyse(self, n: int, heads: int = 1) -> Analysis:
        """Measure the graph over `n` tokens: paths, clustering, spectral gap and more.

        Numbers are exact where that is feasible; the others come from a sample and have a
        confidence interval. Nothing n x n is ever built. docs/measures.md explains them.

        Args:
            n: Number of tokens.
            heads: Number of heads. The measures are those of the union of their edges; `per_head`
                of the result has those of each head.

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
        """Return a shortest path `[i, ..., j]` by which the content of `j` reaches `i`, or None.

        Each token of the path sees the next one, so the content of `j` is in `i` after as many
        layers as the path has steps.

        Args:
            i: Token that reads.
            j: Token that is read.
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
        """Return whether the graph contains the star that BigBird's universality theorem requires.

        In each head, one token sees all others and is seen by all, and every other token sees
        itself. The result is true or false, and names the token or the missing edges.

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
        """Return the picture that notebooks show; None where only the text is shown."""
        from longbird.analysis.drawing import notebook_picture

        return notebook_picture(self)

    # Identity, algebra and text.

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Graph) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    @staticmethod
    def from_key(key: str) -> Graph:
        """Return the graph with this key; that of a large graph works while the graph is alive."""
        return identity.with_key(key)

    def __or__(self, other: object) -> Graph:
        from longbird.core.graph.combinations import Union

        return Union.of((self, other)) if isinstance(other, Graph | str) else NotImplemented

    def __and__(self, other: object) -> Graph:
        from longbird.core.graph.combinations import Intersection

        return Intersection.of((self, other)) if isinstance(other, Graph | str) else NotImplemented

    __ror__, __rand__ = __or__, __and__

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in fields_of(self).items())
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[Any, ...]:
        return identity.unpickled, (type(self).__module__, type(self).__name__, self._content())

    def to_json(self) -> str:
        """Return the graph as JSON.

        Examples:
            >>> from longbird.core.graph import Window
            >>> Window(3).to_json()
            '{"type": "Window", "radius": 3, "dilation": 1}'
        """
        return self._json

    @staticmethod
    def from_json(text: str) -> Graph:
        """Return the graph that `to_json` wrote.

        Raises:
            ValueError: The text is not the JSON of a graph; the message names what is wrong.
        """
        return identity.from_json(text)


# Names that mean something in every graph, and so cannot be fields of a piece.
TAKEN = frozenset(vars(Graph)) | frozenset(Graph.__annotations__)
