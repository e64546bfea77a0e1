"""The graph of each sequence of a call: one for all, one for each, or a function of the length.

An operator of torch receives the graphs as one string, `Graphs.key`, by which it finds them.
"""

from __future__ import annotations

import functools
import itertools
import operator
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longbird.core.graph import Graph, as_graph
from longbird.core.graph.identity import redefined_classes
from longbird.core.operator.tracing import constant
from longbird.errors import InvalidTypeError, InvalidValueError

OneGraph = Graph | str | dict[str, Any]
"""A graph, its expression, or its JSON, as `as_graph` accepts."""
GraphArgument = OneGraph | Sequence[OneGraph] | Callable[[int], OneGraph]
"""One graph, one for each sequence, or a function of the length, as the operator accepts."""

BETWEEN = "\n"  # does not occur in keys of graphs, since JSON escapes it
FUNCTION = "function:"


class Graphs(NamedTuple):
    """The graph of each sequence of a call."""

    key: str
    """Argument of `from_key`; the same for equal graphs."""
    each: tuple[Graph, ...] = ()
    """One graph for all sequences, or one for each."""
    function: FunctionOfLength | None = None
    """Function instead of graphs; a compiled program only has its key."""

    def of(self, number: int, length: int) -> Graph:
        """Return the graph of one sequence."""
        if self.each:
            return self.each[number if len(self.each) > 1 else 0]
        return (self.function or FunctionOfLength.from_key(self.key))(length)

    def key_of(self, number: int) -> str:
        """Return the key of one sequence; equal lengths and keys mean the same graph."""
        return self.each[number].key if len(self.each) > 1 else self.key

    @property
    def given(self) -> Graph | tuple[Graph, ...] | Callable[[int], OneGraph]:
        """One graph, one for each sequence, or a function, as passed to the call."""
        if self.function is not None:
            return self.function.function
        return self.each[0] if len(self.each) == 1 else self.each

    @staticmethod
    def from_key(key: str) -> Graphs:
        """Return the graphs with this key."""
        if key.startswith(FUNCTION):
            return Graphs(key, function=FunctionOfLength.from_key(key))
        if BETWEEN in key or not key:  # no sequences have no graphs
            return Graphs(key, tuple(map(Graph.from_key, key.split(BETWEEN) if key else ())))
        return Graphs(key, (Graph.from_key(key),))


class FunctionOfLength:
    """A function from the number of tokens to the graph, called once for each length."""

    _living: ClassVar[weakref.WeakValueDictionary[str, FunctionOfLength]] = (
        weakref.WeakValueDictionary()
    )
    _numbers = itertools.count()

    def __init__(self, function: Callable[[int], OneGraph]) -> None:
        module = str(getattr(function, "__module__", ""))
        preset = isinstance(function, FunctionType) and module.startswith("longbird.core.graph")
        if isinstance(function, type) or preset:  # Full instead of Full()
            name = function.__name__
            raise InvalidTypeError(
                f"graph must be a graph, received {name} itself; write {name}(...)"
            )
        self.function = function
        self.key = f"{FUNCTION}{next(self._numbers)}"
        self._graphs: dict[int, Graph] = {}  # forward and backward must have the same
        self._living[self.key] = self

    def __call__(self, length: int) -> Graph:
        """Return the graph over `length` tokens."""
        if length not in self._graphs:
            found = self.function(length)
            try:
                self._graphs[length] = as_graph(found)
            except TypeError as error:
                raise InvalidTypeError(
                    f"the function given as graph must return a graph, but for {length} tokens it "
                    f"returned {found!r:.80} ({type(found).__name__})"
                ) from error
        return self._graphs[length]

    def ask_again(self) -> None:
        """Forget the graphs, because a function may change before it is compiled again."""
        self._graphs.clear()

    @staticmethod
    def from_key(key: str) -> FunctionOfLength:
        """Return the function with this key, in the process in which it was passed."""
        function = FunctionOfLength._living.get(key)
        if function is None:
            raise InvalidValueError(
                "the graph was given as a function of the length, which does not exist in this "
                "process; give a graph instead"
            )
        return function


def as_graphs(value: Any, count: int, length: int | None) -> Graphs:
    """Return the graphs of a call from its argument.

    Args:
        value: One graph, a list with one for each sequence, or a function of the length; a graph
            may be anything that `as_graph` accepts.
        count: Number of sequences.
        length: Length of all sequences, if it is the same and known before the call runs.
    """
    if isinstance(value, Graph):
        return Graphs(value.key, (value,))
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise InvalidValueError(
                f"graph must be one graph, or a list of one graph for each of the {count} "
                f"sequences, received a list of {len(value)}"
            )
        each = tuple(_one(graph) for graph in value)
        # By key: torch.compile cannot trace the `==` of graphs.
        if all(graph.key == each[0].key for graph in each):
            each = each[:1]
        return Graphs(BETWEEN.join([graph.key for graph in each]), each)
    if callable(value):
        return _of_function(value, length)
    graph = _one(value)
    return Graphs(graph.key, (graph,))


def _one(value: Any) -> Graph:
    if isinstance(value, Graph):
        return value
    if isinstance(value, str):
        return _read(value)
    if isinstance(value, dict):
        return as_graph(value)
    hint = ""
    if isinstance(value, Tensor):
        hint = "; make edges of a mask: Edges(mask.nonzero())"
    elif isinstance(value, np.ndarray):
        hint = "; make edges of a mask: Edges(np.argwhere(mask))"
    raise InvalidTypeError(
        'graph must be a graph, such as longbird.bigbird(), its expression as text, such as "'
        'bigbird(block=16)", a list with one of these for each sequence, or a function of the '
        f"length; received {type(value).__name__}{hint}"
    )


def _of_function(value: Any, length: int | None) -> Graphs:
    if torch.compiler.is_exporting():
        if length is None:
            raise InvalidValueError(
                "a function of the length cannot be exported together with lengths or cu_seqlens: "
                "an exported program cannot call it; give a graph instead"
            )
        graph = _at_length(value, operator.index(length))
        return Graphs(graph.key, (graph,))
    if torch.compiler.is_compiling():
        return Graphs(_key_in_compiled_program(value))
    function = FunctionOfLength(value)
    return Graphs(function.key, function=function)


# Compiled programs know functions only by their keys, and nothing signals the end of a program.
# Functions therefore stay here permanently, but each only once, however often it is compiled. An
# entry is far smaller than the program that torch keeps for it.
_in_compiled_programs: dict[object, FunctionOfLength] = {}


@constant
def _key_in_compiled_program(value: Callable[[int], OneGraph]) -> str:
    function = FunctionOfLength(value)
    try:
        function = _in_compiled_programs.setdefault(value, function)
    except TypeError:  # it is not hashable
        function = _in_compiled_programs.setdefault(id(value), function)
    function.ask_again()
    return function.key


@constant
def _at_length(value: Callable[[int], OneGraph], length: int) -> Graph:
    return FunctionOfLength(value)(length)


@constant
def _read(text: str) -> Graph:
    return _parsed(text, redefined_classes())


@functools.lru_cache(maxsize=256)
def _parsed(text: str, _redefined: int) -> Graph:
    """Return the graph of a text; it is parsed again after a piece has been redefined."""
    return as_graph(text)
