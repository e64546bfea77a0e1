"""Graphs as people type them: an expression, a preset's name, or a JSON file.

Expressions look like Python and are read with Python's parser, but never evaluated: only the names
below, calls of them with literals or graphs as arguments, `|`, `&` and parentheses mean anything.
"""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import longbird
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

HELP = (
    'A graph: an expression ("bigbird(block=64) & Causal()"), the name of a preset (bigbird, '
    "longformer), or a JSON file."
)


def parse_graph(text: str) -> Graph:
    """The graph that an expression, a preset's name or a JSON file stands for.

    Args:
        text: For example `"Window(8) | GlobalTokens([0])"`, `"bigbird"` or `"graph.json"`.

    Raises:
        ValueError: It is none of these; the message points at the part that is not understood.

    Examples:
        >>> parse_graph("Window(8) | GlobalTokens([0, -1])") == (
        ...     longbird.Window(8) | longbird.GlobalTokens([0, -1])
        ... )
        True
        >>> parse_graph("bigbird") == longbird.bigbird()
        True
    """
    text = text.strip()
    if text.startswith("{"):
        return Graph.from_json(text)
    if text.endswith(".json"):
        if not Path(text).is_file():
            raise ValueError(f"there is no file {text}")
        return Graph.from_json(Path(text).read_text(encoding="utf-8"))
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
        return getattr(longbird, name)(*positional, **named)
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
    return f"Expected one of {', '.join(NAMES)}, joined by | and &, or a .json file"
