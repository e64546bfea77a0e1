"""How graphs are known: by the name of their class, by their JSON, and by a key.

Graphs with one key are one graph wherever graphs are compared, cached or looked up.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import weakref
from typing import TYPE_CHECKING, Any

from longbird.core.graph import jsonform
from longbird.core.graph.arguments import check_arguments, shown
from longbird.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from longbird.core.graph.base import Graph

# Keys up to this length are the JSON itself; longer ones are its hash.
LONGEST_KEY = 65536

# Every class of graphs by its name, and every graph that is alive by its key.
CLASSES: dict[str, type[Graph]] = {}
_living: weakref.WeakValueDictionary[str, Graph] = weakref.WeakValueDictionary()
_redefinitions = 0


def register(cls: type[Graph]) -> None:
    """Make a class known by its name, for JSON and for expressions."""
    name = cls.__name__
    changed = next((base for base in cls.__mro__[1:] if base in CLASSES.values()), None)
    if changed is not None and "edge" in cls.__dict__:
        raise InvalidTypeError(
            f"{name} changes the rule of {changed.__name__}, whose other facts (reach, "
            "tiles) would then be wrong; derive it from Graph, or combine graphs with | and &"
        )
    known = CLASSES.get(name)
    # The same module may define it again, as when a cell of a notebook is run twice.
    if known is not None and known.__module__ != cls.__module__:
        raise InvalidTypeError(
            f"there already is a piece called {name}, in {known.__module__}, and a piece is "
            "found by its name; choose another name for this one"
        )
    if known is not None:
        global _redefinitions
        _redefinitions += 1
        cls.redefinition = _redefinitions
    CLASSES[name] = cls


def redefined_classes() -> int:
    """Return how many times a class has been defined again in this process."""
    return _redefinitions


def identify(
    cls: type[Graph], content: dict[str, object], inner: set[int]
) -> tuple[str, str, tuple[int, ...]]:
    """Return the canonical JSON of a graph, its key, and the redefined classes that it uses.

    Args:
        cls: Class of the graph.
        content: Fields of its JSON.
        inner: Numbers of the redefined classes that the graphs inside it use. They are part of the
            key, because the JSON does not distinguish a class from one that it replaced.
    """
    fields = {"type": cls.__name__, **content}
    text = ", ".join(f'"{name}": {jsonform.encode(value)}' for name, value in fields.items())
    text = "{" + text + "}"
    redefined = tuple(sorted(inner | ({cls.redefinition} - {0})))
    key = text
    if len(text) > LONGEST_KEY or redefined:
        key = "sha256:" + hashlib.sha256(f"{text}{redefined or ''}".encode()).hexdigest()
    return text, key, redefined


def first_with_key(graph: Graph) -> Graph:
    """Return the oldest living graph with the key of this one, which is the one that is found."""
    return _living.setdefault(graph.key, graph)


def with_key(key: str) -> Graph:
    """Return the graph with this key."""
    graph = _living.get(key)
    if graph is not None:
        return graph
    if key.startswith("sha256:"):
        raise InvalidValueError(
            f"no graph of this process has the key {key}; the key of a large graph, or of a "
            "piece that was defined again, only works while that graph is alive, so keep it, "
            "or use its JSON"
        )
    return _parsed(key)


@functools.lru_cache(maxsize=256)
def _parsed(key: str) -> Graph:
    """Return a graph that only a compiled or exported program still knows."""
    return from_json(key)


def from_json(text: str) -> Graph:
    """Return the graph that `Graph.to_json` wrote."""
    if not isinstance(text, (str, bytes, bytearray)):
        raise InvalidTypeError(f"the JSON of a graph is a string, received {type(text).__name__}")
    value = jsonform.decode(text, made)
    if not hasattr(value, "key"):
        raise InvalidValueError(
            f"the JSON of a graph is an object with a type, received {shown(text)}"
        )
    return value


def made(name: object, content: dict[str, Any]) -> Graph:
    """Return the graph of a class name and the fields of its JSON."""
    if not isinstance(name, str) or name not in CLASSES:
        raise InvalidValueError(
            f"unknown graph type {shown(name)}; known types are "
            f"{', '.join(sorted(CLASSES))}, and pieces of your own once the module that "
            "defines them is imported"
        )
    cls = CLASSES[name]
    try:
        return cls._from_content(dict(content))
    except TypeError as error:
        problem = error
    try:
        check_arguments(cls, (), content)  # its message is clearer than that of a constructor
    except TypeError as error:
        problem = error
    raise InvalidValueError(f"the JSON of {name} is wrong: {problem}") from None


def unpickled(module: str, name: str, content: dict[str, Any]) -> Graph:
    """Return a pickled graph, whose module may not have been imported yet."""
    if name not in CLASSES:
        importlib.import_module(module)
    return made(name, content)
