"""Graphs as people type them: an expression, or the name of a preset.

Expressions look like Python and are read with Python's parser, but never evaluated: only the names
below, calls of them with literals or graphs as arguments, `|`, `&` and parentheses mean anything.
"""

from __future__ import annotations

import ast
import difflib
import json
from typing import Any

from longbird import graph as pieces
from longbird.graph.base import Graph

NAMES = (
    "Full",
    "Causal",
    "Window",
    "BlockWindow",
    "GlobalTokens",
    "GlobalBlocks",
    "RandomBlocks",
    "ErdosRenyi",
    "WattsStrogatz",
    "Edges",
    "LegacyBigBird",
    "bigbird",
    "longformer",
)


def as_graph(value: Any) -> Graph:
    """A graph from itself, from an expression, from the name of a preset, or from JSON.

    Wherever a graph is taken, this is what takes it.

    Args:
        value: A graph; text such as `"Window(8) | GlobalTokens([0])"` or `"bigbird"`; the JSON of
            a graph, as text or parsed.

    Raises:
        TypeError: It is not of these types.
        ValueError: The text is not a graph; the message points at the part that is not understood.

    Examples:
        >>> from longbird.graph import GlobalTokens, Window, bigbird
        >>> as_graph("Window(8) | GlobalTokens([0, -1])") == Window(8) | GlobalTokens([0, -1])
        True
        >>> as_graph("bigbird") == bigbird()
        True
    """
    if isinstance(value, Graph):
        return value
    if isinstance(value, dict):
        return Graph.from_json(json.dumps(value))
    if not isinstance(value, str):
        raise TypeError(
            "graph must be a graph of longbird, such as longbird.bigbird(), its expression as "
            f'text, such as "bigbird(block=32)", or its JSON; received {value!r:.80} '
            f"({type(value).__name__})"
        )
    text = value.strip()
    if text.startswith("{"):
        return Graph.from_json(text)
    try:
        tree = ast.parse(text, mode="eval")
        return _graph(tree.body, text)
    except SyntaxError as error:
        raise ValueError(f"{text!r:.80} is not a graph: {error.msg}. {_expected()}") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"{text!r:.80} is not a graph: it is nested too deeply") from None


def _graph(node: ast.expr, text: str) -> Graph:
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return _graph(left, text) | _graph(right, text)
        case ast.BinOp(left, ast.BitAnd(), right):
            return _graph(left, text) & _graph(right, text)
        case ast.Name():
            return _construct(node, [], [], text)
        case ast.Call(function, arguments, keywords):
            return _construct(function, arguments, keywords, text)
        case _:
            raise ValueError(f"{_source(node, text)!r} is not a graph. {_expected()}")


def _construct(
    function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword], text: str
) -> Graph:
    name = _source(function, text).removeprefix("lb.").removeprefix("longbird.")
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(f"{name!r} is not a graph.{hint} {_expected()}")
    positional = [_argument(argument, text) for argument in arguments]
    named: dict[str, object] = {}
    for keyword in keywords:
        if keyword.arg is None:
            raise ValueError(f"write the arguments of {name} out: ** means nothing here")
        named[keyword.arg] = _argument(keyword.value, text)
    try:
        return getattr(pieces, name)(*positional, **named)
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from None


def _argument(node: ast.expr, text: str) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        # A piece may take a graph: RandomBlocks(avoid=Window(64)).
        return _graph(node, text)


def _source(node: ast.expr, text: str) -> str:
    return ast.get_source_segment(text, node) or ast.unparse(node)


def _expected() -> str:
    return f"Expected one of {', '.join(NAMES)}, joined by | and &"
