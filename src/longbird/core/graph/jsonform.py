"""The JSON of graphs, in which objects are graphs and lists are tuples."""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from longbird.core.graph.arguments import shown
from longbird.errors import InvalidTypeError, InvalidValueError

TOO_MANY_DIGITS = "the graph has a number of thousands of digits"


def plain(value: Any) -> Any:
    """Return a field with tuples instead of lists, and Python numbers instead of NumPy numbers."""
    if isinstance(value, (list, tuple)):
        values = tuple(map(plain, value))
        same = isinstance(value, tuple) and all(map(operator.is_, values, value))
        return value if same else values
    return value.item() if isinstance(value, np.generic) else value


def encode(value: Any) -> str:
    """Return the JSON of a field; graphs have theirs already."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple):
        return "[" + ", ".join(map(encode, value)) + "]"
    if isinstance(value, (dict, set, frozenset, np.ndarray)):
        raise InvalidTypeError(
            f"a field of a graph is a number, text, None, a graph or a tuple of these, received "
            f"{shown(value)} ({type(value).__name__})"
        )
    return json.dumps(value)


def decode(text: str | bytes | bytearray, make: Callable[[Any, dict[str, Any]], Any]) -> Any:
    """Read JSON, in which `make` makes the graph of a type and its fields.

    Raises:
        ValueError: The text is not JSON, is nested too deeply, or an object names a field twice.
    """
    try:
        return _value(json.loads(text, object_pairs_hook=_object), make)
    except RecursionError:
        raise InvalidValueError("the JSON of the graph is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InvalidValueError(f"the graph is not valid JSON: {error}") from None
    except ValueError as error:
        if too_many_digits(error):
            raise InvalidValueError(TOO_MANY_DIGITS) from None
        raise


def written(content: dict[str, Any]) -> str:
    """Return the text of parsed JSON."""
    try:
        return json.dumps(content)
    except ValueError as error:
        if too_many_digits(error):
            raise InvalidValueError(TOO_MANY_DIGITS) from None
        raise


def too_many_digits(error: Exception) -> bool:
    """Return whether Python refused an integer because of its length."""
    return "digits) for integer string conversion" in str(error)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise InvalidValueError(
            f"the JSON of the graph has the field {shown(twice)} twice in one object"
        )
    return content


def _value(value: Any, make: Callable[[Any, dict[str, Any]], Any]) -> Any:
    if isinstance(value, list):
        return tuple(_value(item, make) for item in value)
    if not isinstance(value, dict):
        return value
    content = {name: _value(value[name], make) for name in value if name != "type"}
    return make(value.get("type"), content)
