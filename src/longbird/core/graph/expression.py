"""Graphs as text: expressions, names of presets, and JSON.

Expressions look like Python and are read with Python's parser, but never evaluated. They consist
only of the names of pieces and presets, calls of them with literals or graphs as arguments, `|`,
`&` and parentheses.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from typing import Any

from longbird.core.graph import identity, jsonform
from longbird.core.graph.arguments import check_arguments, shown
from longbird.core.graph.base import Graph
from longbird.core.graph.jsonform import TOO_MANY_DIGITS, too_many_digits
from longbird.errors import InvalidTypeError, InvalidValueError


def as_graph(value: Any) -> Graph:
    """Return a graph from a graph, an expression, the name of a preset, or JSON.

    Every function that takes a graph accepts what this function accepts.

    Args:
        value: Graph; text such as `"Window(8) | GlobalTokens([0])"` or `"bigbird"`; or the JSON of
            a graph, as text or parsed.

    Raises:
        TypeError: The value has another type.
        ValueError: The text is not a graph; the message shows the part that is not understood.

    Examples:
        >>> from longbird.core.graph import GlobalTokens, Window, bigbird
        >>> as_graph("Window(8) | GlobalTokens([0, -1])") == Window(8) | GlobalTokens([0, -1])
        True
        >>> as_graph("bigbird") == bigbird()
        True
    """
    if isinstance(value, Graph):
        return value
    if not isinstance(value, (str, dict)):
        raise InvalidTypeError(
            "graph must be a graph of longbird, such as longbird.bigbird(), its expression as "
            f'text, such as "bigbird(block=32)", or its JSON; received {shown(value)} '
            f"({type(value).__name__})"
        )
    try:
        text = jsonform.written(value) if isinstance(value, dict) else value.strip()
        if text.startswith("{"):
            return Graph.from_json(text)
        return _graph(ast.parse(text, mode="eval").body, text)
    except SyntaxError as error:
        if too_many_digits(error):
            raise InvalidValueError(TOO_MANY_DIGITS) from None
        raise InvalidValueError(
            f"{shown(value)} is not a graph: {error.msg}. {_expected()}"
        ) from None
    except (RecursionError, MemoryError):
        name = shown(value) if isinstance(value, str) else "the JSON"
        raise InvalidValueError(f"{name} is not a graph: it is nested too deeply") from None


def names() -> dict[str, Callable[..., Graph]]:
    """Return what expressions may call, by name: all pieces, and the presets of the package."""
    from longbird.core import graph
    from longbird.core.graph import combinations, presets

    pieces = {
        name: piece
        for name, piece in identity.CLASSES.items()
        if not issubclass(piece, combinations.Combination)
    }
    listed = vars(graph).items()
    return pieces | {
        name: value
        for name, value in listed
        if getattr(value, "__module__", "") == presets.__name__
    }


def _graph(node: ast.expr, text: str) -> Graph:
    from longbird.core.graph.combinations import Intersection, Union

    match node:
        case ast.BinOp(_, ast.BitOr(), _):
            return Union.of(_graph(part, text) for part in _operands(node, ast.BitOr))
        case ast.BinOp(_, ast.BitAnd(), _):
            return Intersection.of(_graph(part, text) for part in _operands(node, ast.BitAnd))
        case ast.Name() | ast.Attribute():
            return _construct(node, [], [], text)
        case ast.Call(function, arguments, keywords):
            return _construct(function, arguments, keywords, text)
        case _:
            raise InvalidValueError(f"{shown(_source(node, text))} is not a graph. {_expected()}")


def _operands(node: ast.expr, operator: type[ast.operator]) -> list[ast.expr]:
    """Return the operands of a chain such as `a | b | c` of any length."""
    found: list[ast.expr] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        found.append(node.right)
        node = node.left
    return [node, *reversed(found)]


def _construct(
    function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword], text: str
) -> Graph:
    known = names()
    if isinstance(function, ast.Call) and _graph(function, text):
        raise InvalidValueError(
            f"{shown(_source(function, text))} is a graph already, and a graph cannot be called"
        )
    # `_source` searches the text from its beginning, which would be quadratic in the pieces.
    name = ast.unparse(function).removeprefix("lb.").removeprefix("longbird.")
    if name not in known:
        near = difflib.get_close_matches(name[:80], known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InvalidValueError(f"{shown(name)} is not a graph.{hint} {_expected()}")
    positional = [_argument(argument, text) for argument in arguments]
    named: dict[str, object] = {}
    for keyword in keywords:
        if keyword.arg is None:
            raise InvalidValueError(f"write the arguments of {name} out: ** means nothing here")
        if keyword.arg in named:
            raise InvalidValueError(f"{name}: {keyword.arg} is given twice")
        named[keyword.arg] = _argument(keyword.value, text)
    try:
        check_arguments(known[name], positional, named)
        return known[name](*positional, **named)
    except TypeError as error:
        where = "" if str(error).startswith(name) else f"{name}: "
        raise InvalidValueError(f"{where}{error}") from None


def _argument(node: ast.expr, text: str) -> object:
    """Return a literal or a graph, alone or in a list, a tuple or a dictionary."""
    match node:
        case ast.List(items) | ast.Tuple(items):
            values = [_argument(item, text) for item in items]
            return values if isinstance(node, ast.List) else tuple(values)
        case ast.Dict(keys, items) if all(isinstance(key, ast.Constant) for key in keys):
            found = {ast.literal_eval(key): _argument(item, text) for key, item in _pairs(node)}
            if len(found) < len(items):
                raise InvalidValueError(f"{shown(_source(node, text))} has a key twice")
            return found
        case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
            try:
                return ast.literal_eval(node)
            except (ValueError, TypeError):
                raise InvalidValueError(f"{shown(_source(node, text))} is not a number") from None
        case ast.Set(items):
            return [_argument(item, text) for item in items]
        case ast.Name() | ast.Attribute() | ast.Call() | ast.BinOp(op=ast.BitOr() | ast.BitAnd()):
            # A piece may take a graph: RandomBlocks(avoid=Window(64)).
            return _graph(node, text)
        case _:
            raise InvalidValueError(
                f"{shown(_source(node, text))} cannot be an argument: nothing is calculated here, "
                "so write out numbers, text, lists and graphs"
            )


def _pairs(node: ast.Dict) -> list[tuple[ast.expr, ast.expr]]:
    return [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key]


def _source(node: ast.expr, text: str) -> str:
    """Return the part of the text that a message shows."""
    return ast.get_source_segment(text, node) or ast.unparse(node)


def _expected() -> str:
    *others, last = sorted(names())
    return f"Expected {', '.join(others)} or {last}, or several of them joined by | and &"
