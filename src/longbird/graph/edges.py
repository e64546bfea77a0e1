"""Any digraph, given as a list of its edges."""

from __future__ import annotations

import base64
import binascii
import zlib
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.graph.arguments import MOST_TOKENS, integer
from longbird.graph.base import Graph

# Up to this many edges are written out in repr and JSON.
FEW = 1000


class _Pairs(Graph):
    """A graph defined by `edges(n)`, its edges as pairs (query, key)."""

    @abstractmethod
    def edges(self, n: int) -> npt.NDArray[np.int64]:
        """The edges over `n` tokens, sorted and each once: int64 [edges, 2]."""

    def _counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        mask = np.zeros((n, n), bool)
        mask[tuple(self.edges(n).T)] = True
        return mask


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Edges(_Pairs):
    """Any digraph: query `i` attends to key `j` for each (i, j) in `pairs`.

    Construction sorts the edges, O(e log e); 10 million edges take seconds.

    Args:
        pairs: Integer array-like of shape (edges, 2). Order and repetition have no meaning.

    Attributes:
        pairs: The edges, sorted and each once, as a read-only int64 array.

    Examples:
        >>> graph = Edges([(0, 2), (1, 1), (0, 2)])
        >>> graph
        Edges([[0, 2], [1, 1]])
        >>> graph.mask(3)[0].astype(int)
        array([[0, 0, 1],
               [0, 1, 0],
               [0, 0, 0]])
    """

    pairs: npt.NDArray[np.int64]

    def __init__(self, pairs: npt.ArrayLike) -> None:
        """Check, sort and deduplicate the edges."""
        try:
            given = np.asarray(pairs)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"Edges pairs must be an array of (query, key): {error}") from None
        if given.shape == (0,):  # an empty list
            given = np.zeros((0, 2), np.int64)
        if given.ndim != 2 or given.shape[1] != 2:
            raise ValueError(
                f"Edges pairs must have the shape (edges, 2), received {given.shape}; "
                "each row is (query, key)"
            )
        if not np.issubdtype(given.dtype, np.integer):
            raise TypeError(f"Edges pairs must be integers, received dtype {given.dtype}")
        if given.size and (given.min() < 0 or given.max() > MOST_TOKENS):
            raise ValueError(
                f"Edges positions must be from 0 to {MOST_TOKENS}, received positions from "
                f"{given.min()} to {given.max()}"
            )
        self._set(pairs=_sorted_unique(given))
        super().__post_init__()

    def edges(self, n: int) -> npt.NDArray[np.int64]:
        """The edges, if all their positions exist in a sequence of `n` tokens."""
        if self.pairs.size and self.pairs.max() >= n:
            raise ValueError(
                f"Edges position {self.pairs.max()} does not exist in a sequence of {n} tokens"
            )
        return self.pairs

    def _content(self) -> dict[str, object]:
        if len(self.pairs) <= FEW:
            return {"pairs": self.pairs.tolist()}
        # Queries are sorted, so their differences compress to almost nothing.
        queries = np.diff(self.pairs[:, 0], prepend=0).astype("<i4")
        keys = self.pairs[:, 1].astype("<i4")
        packed = zlib.compress(queries.tobytes() + keys.tobytes(), level=1)
        return {"count": len(self.pairs), "zlib": base64.b64encode(packed).decode()}

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Graph:
        if set(content) != {"count", "zlib"}:
            return cls(**content)
        count = integer(content["count"], "count")
        try:
            packed = base64.b64decode(content["zlib"], validate=True)
            inflate = zlib.decompressobj()
            raw = inflate.decompress(packed, max_length=8 * count + 1)
        except (binascii.Error, zlib.error) as error:
            raise ValueError(f"the packed edges of Edges are damaged: {error}") from None
        if len(raw) != 8 * count:
            raise ValueError(f"the packed edges of Edges are not {count} edges")
        queries, keys = np.frombuffer(raw, "<i4").reshape(2, count).astype(np.int64)
        return cls(np.stack([queries.cumsum(), keys], axis=1))

    def __repr__(self) -> str:
        """All edges if they are few, else their number."""
        if len(self.pairs) <= FEW:
            return f"Edges({self.pairs.tolist()})"
        return f"Edges(<{len(self.pairs)} edges>)"


def _sorted_unique(pairs: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The pairs in ascending order, each once; as single codes because those sort fastest."""
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
