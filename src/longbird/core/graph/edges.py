"""Any digraph, given as a list of its edges."""

from __future__ import annotations

import base64
import binascii
import functools
import itertools
import operator
import sys
import zlib
from abc import abstractmethod
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import MOST_TOKENS, integer, shown
from longbird.core.graph.base import Graph
from longbird.core.graph.reach import Reach
from longbird.core.machine import available_bytes
from longbird.errors import InvalidTypeError, InvalidValueError

# Number of edges up to which JSON lists them, and below which repr does.
FEW = 1000
SHORT = 10
# Maximum bytes of a pair while it is a tuple of Python integers and a row of an array.
PAIR_BYTES = 200


class EdgeList(Graph, abstract=True):
    """A piece that is defined by `edges(n)`, which lists its edges as pairs (query, key)."""

    tile_size = 16  # a tile with few edges should be small

    @abstractmethod
    def edges(self, n: int) -> npt.NDArray[np.int64]:
        """Return the edges over `n` tokens, sorted and each once: int64 [edges, 2]."""

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return the edges as a dense mask."""
        mask = np.zeros((n, n), bool)
        mask[tuple(self.edges(n).T)] = True
        return mask


@dataclass(frozen=True, init=False)
class Edges(EdgeList):
    """Any digraph: query `i` attends to key `j` for each (i, j) in `pairs`.

    Construction sorts the edges, O(e log e); 10 million edges take seconds.

    Args:
        pairs: Integer array-like of shape (edges, 2), or a set or an iterator of pairs. Order and
            repetition do not matter.
        clip: Whether to omit the edges whose positions do not exist at a length, for sequences of
            different lengths, instead of raising a ValueError.

    Attributes:
        pairs: Edges, sorted and each once, as a read-only int64 array.
        clip: Whether edges that do not exist at a length are omitted.

    Examples:
        >>> graph = Edges([(0, 2), (1, 1), (0, 2)])
        >>> graph
        Edges([[0, 2], [1, 1]])
        >>> graph.mask(3)[0].astype(int)
        array([[0, 0, 1],
               [0, 1, 0],
               [0, 0, 0]])
        >>> Edges([(0, 2), (1, 1)], clip=True).mask(2)[0].astype(int)
        array([[0, 0],
               [0, 1]])
    """

    pairs: npt.NDArray[np.int64]
    clip: bool = False

    kind, streams = "edges", True

    def __init__(self, pairs: npt.ArrayLike, clip: bool = False) -> None:
        """Check, sort and deduplicate the edges."""
        given = _array(pairs)
        if given.size and (given.min() < 0 or given.max() > MOST_TOKENS):
            raise InvalidValueError(
                f"Edges positions must be from 0 to {MOST_TOKENS}, received positions from "
                f"{given.min()} to {given.max()}"
            )
        if not isinstance(clip, (bool, np.bool_)):
            raise InvalidTypeError(
                f"Edges clip must be True or False, received {clip!r} ({type(clip).__name__})"
            )
        self._set(pairs=_sorted_unique(given), clip=bool(clip))
        self._set(least_tokens=1 if self.clip else int(self.pairs.max(initial=0)) + 1)
        super().__post_init__()

    def edges(self, n: int) -> npt.NDArray[np.int64]:
        """Return the edges whose positions exist among `n` tokens: all, unless clipped."""
        if not self.pairs.size or self.pairs.max() < n:
            return self.pairs
        if not self.clip:
            raise InvalidValueError(
                f"Edges position {self.pairs.max()} does not exist in a sequence of {n} tokens; "
                "Edges(pairs, clip=True) leaves out the edges that do not exist"
            )
        return self.pairs[self.pairs.max(axis=1) < n]

    def reach(self, n: int) -> Reach:
        """Return the longest distance of an edge, or the last key as sinks; either suffices."""
        queries, keys = self.pairs.T
        behind = int((queries - keys).max(initial=0))
        ahead = int((keys - queries).max(initial=0))
        sinks = int(keys[keys < queries].max(initial=-1)) + 1
        return Reach(behind, ahead) if behind <= sinks else Reach(0, ahead, sinks)

    def tile_count(self, n: int, size: int) -> float:
        """Return the number of edges, limited to the number of all tiles."""
        return min(len(self.pairs), float(-(-n // size)) ** 2)

    def sees(self, i: Any, j: Any, head: Any) -> Any:
        """Return whether a pair is listed."""
        found = ((i == query) & (j == key) for query, key in self.pairs.tolist())
        return functools.reduce(operator.or_, found, (i < j) & (i > j))

    def _content(self) -> dict[str, object]:
        clip: dict[str, object] = {"clip": True} if self.clip else {}
        if len(self.pairs) <= FEW:
            return {"pairs": self.pairs.tolist(), **clip}
        # Queries are sorted, so their differences compress to almost nothing.
        queries = np.diff(self.pairs[:, 0], prepend=0).astype("<i4")
        keys = self.pairs[:, 1].astype("<i4")
        packed = zlib.compress(queries.tobytes() + keys.tobytes(), level=1)
        return {"count": len(self.pairs), "zlib": base64.b64encode(packed).decode(), **clip}

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Graph:
        clip = content.pop("clip", False)
        if set(content) != {"count", "zlib"}:
            return cls(**content, clip=clip)
        count = integer(content["count"], "count")
        try:
            packed = base64.b64decode(content["zlib"], validate=True)
            inflate = zlib.decompressobj()
            raw = inflate.decompress(packed, max_length=8 * count + 1)
        except (binascii.Error, zlib.error) as error:
            raise InvalidValueError(f"the packed edges of Edges are damaged: {error}") from None
        if len(raw) != 8 * count:
            raise InvalidValueError(f"the packed edges of Edges are not {count} edges")
        queries, keys = np.frombuffer(raw, "<i4").reshape(2, count).astype(np.int64)
        return cls(np.stack([queries.cumsum(), keys], axis=1), clip)

    def __repr__(self) -> str:
        """Return the expression, with the number of edges if they are many."""
        few = len(self.pairs) < SHORT
        pairs = self.pairs.tolist() if few else f"<{len(self.pairs)} edges>"
        return f"Edges({pairs}{', clip=True' if self.clip else ''})"


def _array(pairs: Any) -> npt.NDArray[Any]:
    """Return the pairs as an array of integers [edges, 2]."""
    expected = "Edges pairs must be integers of the shape (edges, 2), each row (query, key)"
    rows: Any = pairs
    if isinstance(pairs, (Set, Iterator, range)):
        most = int(min(available_bytes() / PAIR_BYTES, sys.maxsize - 1))
        rows = list(itertools.islice(pairs, most + 1))
        if len(rows) > most:
            raise InvalidValueError(
                f"Edges received more than {most:,} pairs from {shown(pairs)}, for which this "
                "process has no memory; give fewer, or an integer array of the shape (edges, 2)"
            )
    try:
        found = np.asarray(rows)
    except (TypeError, RuntimeError) as error:  # a tensor on another device, for example
        raise InvalidTypeError(f"{expected}: {error}") from None
    except (ValueError, OverflowError):
        odd = next((row for row in rows if np.shape(row) != (2,)), rows)
        raise InvalidValueError(f"{expected}, received a row {shown(odd)}") from None
    if found.ndim == 0:
        raise InvalidTypeError(f"{expected}, received {shown(pairs)} ({type(pairs).__name__})")
    if found.shape == (0,):  # an empty list
        found = np.zeros((0, 2), np.int64)
    if found.ndim != 2 or found.shape[1] != 2:
        turned = found.ndim == 2 and len(found) == 2  # what NumPy's nonzero gives
        hint = "; np.argwhere(mask) gives the edges of a mask" if turned else ""
        raise InvalidValueError(f"{expected}, received the shape {found.shape}{hint}")
    if found.dtype == object and all(isinstance(each, int) for each in found.flat):
        raise InvalidValueError(
            f"Edges positions must be from 0 to {MOST_TOKENS}, received "
            f"{shown(max(found.flat, key=abs))}"
        )
    if not np.issubdtype(found.dtype, np.integer):
        raise InvalidTypeError(f"{expected}, received the dtype {found.dtype}")
    return found


def _sorted_unique(pairs: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the pairs in ascending order, each once; single codes sort fastest."""
    if not len(pairs):
        return _read_only(np.zeros((0, 2), np.int64))
    width = int(pairs[:, 1].max()) + 1
    codes = pairs[:, 0].astype(np.int64) * width + pairs[:, 1].astype(np.int64)
    codes.sort()
    codes = codes[np.append(True, codes[1:] != codes[:-1])]
    unique = np.empty((len(codes), 2), np.int64)
    unique[:, 0] = codes // width
    unique[:, 1] = codes - unique[:, 0] * width
    return _read_only(unique)


def _read_only(array: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    array.flags.writeable = False
    return array
