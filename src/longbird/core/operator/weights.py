"""The attention weights of selected queries as sparse rows, for inspection; never n x n."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.core.graph.arguments import integer
from longbird.core.layout import Layout
from longbird.core.operator.call import Call, lse_dtype
from longbird.core.operator.graphs import GraphArgument
from longbird.core.operator.sequences import all_global_tokens, marked_tokens, sequences
from longbird.errors import InvalidTypeError, InvalidValueError

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class SparseRows:
    """Attention weights of selected queries over the keys that each of them sees.

    There is a row for each batch row, head and selected query, in this order; `row` returns one.
    """

    shape: tuple[int, ...]
    """(batch, heads, queries), or (heads, queries) for inputs without a batch axis."""
    queries: Tensor
    """int64 [queries]: positions of the selected queries (in the longest document, if documents
    that continue after a cache differ in length)."""
    row_ptr: Tensor
    """int64 [rows + 1]: row r has the keys and weights row_ptr[r] to row_ptr[r + 1] - 1."""
    keys: Tensor
    """int64 [entries]: positions of keys, ascending in a row and each once."""
    weights: Tensor
    """[entries]: weights, which sum to 1 in each row that has keys."""

    def row(self, *index: int) -> tuple[Tensor, Tensor]:
        """Return the keys that one token sees, and their weights.

        Args:
            index: Batch row, head and token: `row(batch, head, token)`. Where there is only one
                batch row, or only one head, its number may be left out: `row(head, token)`,
                `row(token)`.

        Raises:
            TypeError: A number is not an integer.
            ValueError: There is no such row; the message lists those that exist.

        Examples:
            >>> import torch, longbird as lb
            >>> q, k = torch.randn(2, 1, 4, 1000, 32).unbind()  # one batch row, four heads
            >>> weights = lb.attention_weights(q, k, lb.Window(1) | lb.GlobalTokens([0]), [500])
            >>> weights
            SparseRows(batch: 1, heads: 4, tokens: [500], weights: 16)
            >>> keys, values = weights.row(3, 500)
            >>> keys
            tensor([  0, 499, 500, 501])
        """
        batch, heads, queries = (1, *self.shape)[-3:]
        try:
            place = [operator.index(number) for number in index]
        except TypeError:
            received = ", ".join(f"{number!r:.80}" for number in index)
            raise InvalidTypeError(
                "row takes integers, the numbers of a batch row, a head and a token; received "
                f"row({received})"
            ) from None
        for axis, size in enumerate((batch, heads)):
            if size == 1 and len(place) < 3:
                place.insert(axis, 0)
        if len(place) != 3 or not (0 <= place[0] < batch and 0 <= place[1] < heads):
            raise InvalidValueError(
                f"row takes the numbers of a batch row (of {batch}), a head (of {heads}) and a "
                "token, of which the first two may be left out where there is only one; received "
                f"row({', '.join(map(str, index))})"
            )
        row, head, token = place
        found = (self.queries == token).nonzero()
        if not len(found):
            raise InvalidValueError(
                f"there are no weights of token {token}, only of {self._tokens()}; the argument "
                "rows chooses the tokens"
            )
        number = (row * heads + head) * queries + int(found[0])
        start, end = self.row_ptr[number : number + 2].tolist()
        return self.keys[start:end], self.weights[start:end]

    def _tokens(self) -> str:
        tokens: list[int] = self.queries.tolist()
        if len(tokens) > 4 and tokens == list(range(tokens[0], tokens[-1] + 1)):
            return f"[{tokens[0]} to {tokens[-1]}]"
        shown = ", ".join(map(str, tokens[:8]))
        return f"[{shown}]" if len(tokens) <= 8 else f"[{shown}, ... {len(tokens)} tokens]"

    def __repr__(self) -> str:
        """Return the shape without the weights."""
        batch = f"batch: {self.shape[0]}, " if len(self.shape) == 3 else ""
        return (
            f"SparseRows({batch}heads: {self.shape[-2]}, tokens: {self._tokens()}, "
            f"weights: {len(self.weights)})"
        )

    def with_rows(self, batch: int, queries: Tensor, weights: Tensor) -> SparseRows:
        """Return the rows with other weights for queries of one batch row, over the same keys.

        Args:
            batch: Row of the batch.
            queries: Indices into `queries`, int64 [g].
            weights: New weights [heads, g, keys]; each of these rows must have that many keys.
        """
        heads, count = self.shape[-2:]
        head = torch.arange(heads, device=queries.device)[:, None]
        start = self.row_ptr.to(queries.device)[(batch * heads + head) * count + queries]
        place = start[..., None] + torch.arange(weights.shape[-1], device=queries.device)
        changed = self.weights.index_put((place,), weights.to(self.weights.dtype))
        return replace(self, weights=changed)

    def dense(self, n: int) -> Tensor:
        """Return all rows over `n` keys: [*shape, n].

        Raises:
            TypeError: `n` is not an integer.
            ValueError: `n` is too small for the keys of the rows.
        """
        n = integer(n, "n")
        if len(self.keys) and n <= (largest := int(self.keys.max())):
            raise InvalidValueError(
                f"dense needs n > {largest}, since there is a weight for key {largest}; received "
                f"n = {n}"
            )
        rows = len(self.row_ptr) - 1
        row = torch.repeat_interleave(torch.arange(rows), self.row_ptr.diff().cpu())
        row = row.to(self.keys.device)
        flat = self.weights.new_zeros(rows * n).index_put((row * n + self.keys,), self.weights)
        return flat.reshape(*self.shape, n)


def rows_of(scores: Tensor, keys: Tensor, queries: Tensor) -> SparseRows:
    """Return the softmax of scores [batch, heads, queries, slots], -inf for slots without an edge.

    keys [batch, slots] and queries [queries] are positions; keys with an edge are ascending.
    """
    seen = scores > -math.inf
    weights = torch.softmax(scores.to(lse_dtype(scores.dtype)), -1)
    row_ptr = F.pad(seen.sum(-1).flatten().cumsum(0), (1, 0))
    keys = keys[:, None, None].expand_as(scores)[seen]
    return SparseRows(tuple(scores.shape[:3]), queries, row_ptr, keys, weights[seen])


def attention_weights(
    q: Tensor,
    k: Tensor,
    graph: GraphArgument,
    rows: Sequence[int] | Tensor | None = None,
    *,
    lengths: Tensor | Sequence[int] | None = None,
    global_tokens: Tensor | None = None,
    relative_bias: Tensor | None = None,
    scale: float | None = None,
) -> SparseRows:
    """Return the attention weights of selected queries, in O(keys that they see).

    Args:
        q: Queries [batch, heads, n, head_dim] or [heads, n, head_dim].
        k: Keys, of the shape of q.
        graph: As for `attention`.
        rows: Positions of the tokens whose weights are returned; by default all.
        lengths: As for `attention`; padding sees nothing.
        global_tokens: As for `attention`: bool [batch, n], or [n] without a batch axis.
        relative_bias: As for `attention`.
        scale: As for `attention`.

    Returns:
        Weights in float32 (float64 for float64 inputs), differentiable.

    Raises:
        TypeError: An argument has a wrong type or dtype.
        ValueError: Shapes or values do not match, or a row does not exist.

    Examples:
        >>> import torch, longbird as lb
        >>> q, k = torch.randn(2, 4, 100_000, 32).unbind()
        >>> weights = lb.attention_weights(q, k, lb.Window(2), rows=[0, 500])
        >>> keys, values = weights.row(3, 500)  # of head 3, token 500
        >>> keys
        tensor([498, 499, 500, 501, 502])
        >>> round(float(values.sum()), 5)
        1.0
    """
    batched = not isinstance(q, Tensor) or q.ndim != 3 or q.is_nested
    if not batched:
        q, k = q[None], (k[None] if isinstance(k, Tensor) else k)
        global_tokens = global_tokens[None] if isinstance(global_tokens, Tensor) else global_tokens
    call = Call.checked(
        q,
        k,
        k,
        graph,
        lengths=lengths,
        global_tokens=global_tokens,
        relative_bias=relative_bias,
        scale=scale,
    )
    batch, heads, n, _ = q.shape
    queries = _chosen(rows, n)

    found = list(_edges(call, queries))
    count = np.concatenate([np.zeros(0, np.int64), *(edges.count for edges in found)])
    keys = np.concatenate([np.zeros(0, np.int64), *(edges.keys for edges in found)])
    times = np.concatenate([np.zeros(0, np.int64), *(edges.times for edges in found)])

    device, dtype = q.device, lse_dtype(q.dtype)
    row = torch.from_numpy(np.repeat(np.arange(len(count)), count)).to(device)
    sequence_head = row // max(len(queries), 1)
    i = torch.from_numpy(queries).to(device)[row % max(len(queries), 1)]
    j = torch.from_numpy(keys).to(device)
    q_of_edge = q.flatten(0, 1)[sequence_head, i].to(dtype)
    k_of_edge = k.flatten(0, 1)[sequence_head, j].to(dtype)
    scores = call.scale * (q_of_edge * k_of_edge).sum(-1)
    if relative_bias is not None:
        m = relative_bias.shape[1] // 2
        scores = scores + relative_bias.to(dtype)[sequence_head % heads, (j - i).clamp(-m, m) + m]

    top = scores.new_full((len(count),), -math.inf)
    top = top.scatter_reduce(0, row, scores.detach(), "amax")
    weights = torch.from_numpy(times).to(device) * torch.exp(scores - top[row])
    total = scores.new_zeros(len(count)).index_add(0, row, weights)
    return SparseRows(
        shape=(batch, heads, len(queries)) if batched else (heads, len(queries)),
        queries=torch.from_numpy(queries),
        row_ptr=torch.from_numpy(np.concatenate([[0], np.cumsum(count)])),
        keys=j,
        weights=weights / total[row],
    )


def _chosen(rows: Sequence[int] | Tensor | None, n: int) -> Integers:
    if rows is None:
        return np.arange(n)
    chosen = np.asarray(rows.cpu() if isinstance(rows, Tensor) else rows)
    if chosen.size == 0:
        return np.zeros(0, np.int64)
    if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
        raise InvalidTypeError(f"rows must be a list of token numbers, received {rows!r:.80}")
    if chosen.min() < 0 or chosen.max() >= n:
        raise InvalidValueError(
            f"rows must be token numbers between 0 and n - 1 = {n - 1}, received {rows!r:.80}"
        )
    return chosen.astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Edges:
    """The keys that the selected queries of one head see."""

    count: Integers
    """[queries]: number of keys of each query."""
    keys: Integers
    times: Integers
    """[keys]: how many times each key counts."""


def _edges(call: Call, queries: Integers) -> Iterator[_Edges]:
    """Yield the edges of every batch row and head."""
    for number, (start, length) in enumerate(sequences(call)):
        if length == 0:
            nothing = np.zeros(0, np.int64)
            for _ in range(call.heads):
                yield _Edges(np.zeros(len(queries), np.int64), nothing, nothing)
            continue
        layout = call.graph.of(number, length).layout(length, call.heads)
        marked = marked_tokens(call, number, start, length)
        hubs = all_global_tokens(layout, marked).astype(np.int64)
        seen_by = [
            [_row(layout, head, query, hubs) for query in _places(layout, queries)]
            for head in range(len(layout.row_ptr))
        ]
        for head in range(call.heads):
            rows = seen_by[head % len(seen_by)]
            yield _Edges(
                np.array([len(keys) for keys, _ in rows], np.int64),
                np.concatenate([np.zeros(0, np.int64), *(keys for keys, _ in rows)]),
                np.concatenate([np.zeros(0, np.int64), *(times for _, times in rows)]),
            )


def _places(layout: Layout, queries: Integers) -> list[tuple[int, int, int]]:
    """Return (token, tile, place in the tile) of each query; tile -1 in the padding."""
    tiling = layout.queries
    token = np.minimum(queries, tiling.tokens - 1)
    position = token if tiling.order is None else np.argsort(tiling.order)[token]
    tile = np.searchsorted(tiling.starts, position, side="right") - 1
    place = position - tiling.starts[tile]
    tile = np.where(queries < tiling.tokens, tile, -1)
    return list(zip(queries.tolist(), tile.tolist(), place.tolist(), strict=True))


def _row(
    layout: Layout, head: int, query: tuple[int, int, int], hubs: Integers
) -> tuple[Integers, Integers]:
    """Return the keys that one query sees, ascending, and how many times each counts."""
    token, tile, i = query
    if tile < 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    first, last = layout.row_ptr[head, tile : tile + 2]
    columns, mask_ids = layout.columns[first:last], layout.mask_ids[first:last]
    start, end = layout.keys.starts[columns, None], layout.keys.starts[columns + 1, None]
    position = start + np.arange(layout.keys.size)
    seen = position < end
    partial = mask_ids >= 0
    seen[partial] &= (layout.masks[mask_ids[partial], :, i // 8] >> (i % 8) & 1).astype(bool)
    key = position[seen]
    if layout.keys.order is not None:
        key = layout.keys.order[key]
    keys, times = np.unique(key.astype(np.int64), return_counts=True)

    always = np.arange(layout.keys.tokens) if token in hubs else hubs
    extra = np.setdiff1d(always, keys, assume_unique=True)
    keys, times = np.append(keys, extra), np.append(times, np.ones_like(extra))
    order = np.argsort(keys)
    return keys[order], times[order]
