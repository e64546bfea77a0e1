"""The edges of one document, such as links and citations, in addition to the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longbird.core.graph import Edges
from longbird.errors import InvalidTypeError, InvalidValueError


def document_edges(
    edges: Tensor | Sequence[Any], ranks: Tensor, causal: bool
) -> tuple[Edges | None, ...] | None:
    """Build a graph for each document from pairs (query, key) of columns of the batch.

    Args:
        edges: int64 [batch, e, 2], (-1, -1) where a document has fewer; or an array [e, 2], or
            None, for each document.
        ranks: int64 [batch, n], the number of every token in its document, -1 for padding.
        causal: Whether keys must not follow their queries.

    Returns:
        The edges between tokens of each document, None if it has none; None if no document has.
    """
    if torch.compiler.is_exporting():
        raise InvalidValueError(
            "an exported program cannot take edges, because they depend on the documents: put "
            "Edges(...) into the graph instead"
        )
    rows = ranks.shape[0]
    check_list(edges)
    if isinstance(edges, Tensor) and edges.ndim != 3:
        raise InvalidValueError(f"edges must be [batch, e, 2], received {list(edges.shape)}")
    if isinstance(edges, Tensor) and edges.is_meta:
        raise InvalidValueError("edges must have values, received a tensor on the meta device")
    if len(edges) != rows:
        raise InvalidValueError(
            f"edges must be given for each of {rows} documents, received {len(edges)}"
        )
    numbers = ranks.cpu().numpy()
    found = tuple(
        None if each is None else _edges_of(number, each, numbers[number], causal)
        for number, each in enumerate(edges)
    )
    return None if all(each is None for each in found) else found


def choice_edges(edges: Sequence[Any], rows: int, choices: int) -> list[Any]:
    """Flatten the edges of every choice of every row, as given for multiple choice.

    Each row has a list with the edges of its choices, or None; or the list is already flat.
    """
    check_list(edges)
    if len(edges) == rows * choices != rows:
        return list(edges)
    if len(edges) != rows:
        raise InvalidValueError(
            f"edges must be given for each of {rows} rows, received {len(edges)}"
        )
    found: list[Any] = []
    for number, row in enumerate(edges):
        each = [None] * choices if row is None else row
        check_list(each)
        if len(each) != choices:
            raise InvalidValueError(
                f"edges of row {number} must be given for each of its {choices} choices, received "
                f"{len(each)}"
            )
        found.extend(each)
    return found


def check_list(edges: Any) -> None:
    """Raise unless this can hold edges for each document."""
    if not isinstance(edges, (Tensor, np.ndarray, Sequence)) or isinstance(edges, (str, bytes)):
        raise InvalidTypeError(
            "edges must be a tensor [batch, e, 2], or a list with pairs (query, key) or None for "
            f"each document; received {type(edges).__name__}"
        )


def _edges_of(number: int, given: Any, rank: npt.NDArray[np.int64], causal: bool) -> Edges | None:
    """Build the edges of one document, whose columns have these token numbers."""
    where, n = f"edges of document {number}", len(rank)
    try:
        pairs = np.asarray(given.cpu() if isinstance(given, Tensor) else given)
    except ValueError:  # lists of different lengths
        raise InvalidValueError(
            f"{where} must be pairs (query, key), received {given!r:.60}"
        ) from None
    if pairs.size == 0:
        return None
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InvalidValueError(
            f"{where} must be pairs (query, key), received shape {pairs.shape}"
        )
    if not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidTypeError(f"{where} must be integers, received {pairs.dtype}")
    pairs = pairs[~(pairs == -1).all(1)]
    if len(pairs) == 0:
        return None

    def first(wrong: Any) -> tuple[int, int]:
        i, j = pairs[wrong][0].tolist()
        return i, j

    outside = ((pairs < 0) | (pairs >= n)).any(1)
    if outside.any():
        raise InvalidValueError(
            f"{where} must be columns of the batch, from 0 to {n - 1}, or (-1, -1) for none; "
            f"received {first(outside)}"
        )
    tokens = rank[pairs]
    if (tokens < 0).any():
        padded = (tokens < 0).any(1)
        raise InvalidValueError(
            f"{where} must join tokens, and one of the two columns of {first(padded)} is padding"
        )
    if causal and (tokens[:, 1] > tokens[:, 0]).any():
        ahead = tokens[:, 1] > tokens[:, 0]
        raise InvalidValueError(
            f"{where}: in {first(ahead)} a token sees a later token, which a causal model must not"
        )
    return Edges(tokens)
