"""Attention in plain torch operations: any device and dtype, twice differentiable, exportable.

The tiles of keys that a tile of queries sees are gathered, and a dense softmax runs over them.
Rows with similar numbers of entries are processed together in a bucket, so that memory grows with
the number of entries even if some rows of the graph see everything. Axes:

    b  batch                      r  rows of a bucket: a head and a tile of queries
    o, h  heads = o * h: the      w  entries of a row, padded
       layout is the same along   t  tokens of a tile
       o and differs along h      d  head_dim
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longbird.core.graph.base import Graph
from longbird.core.graph.streaming import without_prefixes
from longbird.core.layout import Layout
from longbird.core.operator import dropout
from longbird.core.operator.call import Call, lse_dtype
from longbird.core.operator.graphs import Graphs
from longbird.core.operator.merge import merge, softmax
from longbird.core.operator.sequences import (
    all_global_tokens,
    check_edges_count_once,
    over_sequences,
)
from longbird.core.operator.tracing import constant, eagerly
from longbird.errors import InvalidValueError

NAME = "gather"

Integers = npt.NDArray[np.int64]


def missing() -> str | None:
    """Return None: this implementation is always available."""
    return None


def unsupported(call: Call) -> list[str]:  # noqa: ARG001
    """Return no reasons: it can run every call."""
    return []


def run(call: Call) -> tuple[Tensor, Tensor]:
    """Run sequences of the same length together, and others one after the other.

    An exported program cannot read lengths: it processes all rows together and hides the keys of
    padding, which gives the same result for a graph that does not change as sequences grow.
    """
    # Not `is_exporting()`, which is always true under torch.compile of torch 2.9.
    exporting = torch.compiler._is_exporting_flag
    if exporting and call.global_tokens is not None:
        raise InvalidValueError(
            "gather is exported without global_tokens, which would change the graph with every "
            'call; put GlobalTokens(...) into the graph, or export impl="native"'
        )
    if exporting and torch.compiler.is_dynamo_compiling():
        # torch then loses the arrangement of the graph, and the program is wrong.
        raise InvalidValueError(
            'impl="gather" is exported with strict=False, as torch does by default'
        )
    lengths = call.lengths if exporting else None

    def attend(
        q: Tensor, k: Tensor, v: Tensor, numbers: Tensor, first: int, marked: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        # An arrangement is for one length: `index` makes a symbolic number a concrete one.
        n, heads = operator.index(q.shape[2]), operator.index(q.shape[1])
        arranged = _constant_arrangement(call.graph.key_of(first), n, heads)
        if marked is not None:
            arranged = arranged.with_marked(marked)
        extras = _Extras.of(call, numbers, None if lengths is None else lengths[numbers])
        dtype = lse_dtype(q.dtype)
        out, lse = _attend(q.to(dtype), k.to(dtype), v.to(dtype), arranged, extras)
        return out.to(q.dtype), lse

    if lengths is None:
        return over_sequences(call, attend)
    for graph in call.graph.each:
        if (part := without_prefixes(graph)) is not None:
            raise InvalidValueError(
                f"{part!r:.200} is not the same for a text and for its beginning, so that an "
                f"exported program, whose rows all have one length, cannot use it with padding; "
                f"{part.advice}, take a graph such as longformer(...), or export without "
                "attention_mask (lengths)"
            )
    token = torch.arange(call.q.shape[2], device=call.q.device)
    padding = (token >= lengths[:, None])[:, None]  # [b, 1, n]
    v = call.v.masked_fill(padding[..., None], 0)  # 0 x NaN is NaN
    out, lse = over_sequences(replace(call, v=v, lengths=None), attend)
    return out.masked_fill(padding[..., None], 0), lse.masked_fill(padding, -math.inf)


def _attend(
    q: Tensor, k: Tensor, v: Tensor, arranged: _Arrangement, extras: _Extras
) -> tuple[Tensor, Tensor]:
    """Compute the entries of the layout, then the rows and columns of global tokens (hubs)."""
    out, lse = _local(q, k, v, arranged, extras)
    if len(arranged.hubs) == 0:
        return out, lse
    everyone = torch.arange(q.shape[2], device=q.device)
    hub = _on(q.device, arranged.hubs)
    q_hub, k_hub, v_hub = (x.index_select(2, hub) for x in (q, k, v))
    out, lse = merge((out, lse), _dense(q, k_hub, v_hub, everyone, hub, extras))
    out_hub, lse_hub = _dense(q_hub, k, v, hub, everyone, extras)
    return out.index_copy(2, hub, out_hub), lse.index_copy(2, hub, lse_hub)


def _local(
    q: Tensor, k: Tensor, v: Tensor, arranged: _Arrangement, extras: _Extras
) -> tuple[Tensor, Tensor]:
    """Compute attention over the entries of the layout without the keys of global tokens."""
    device = q.device
    b, heads, _, d = q.shape
    h, o = arranged.heads, heads // arranged.heads
    (query_tiles, t), key_tiles = arranged.query_token.shape, len(arranged.key_token)
    query_token, key_token = _on(device, arranged.query_token), _on(device, arranged.key_token)
    key_shown, pool = _on(device, arranged.key_shown), _on(device, arranged.pool)

    q_tiles = q.index_select(2, query_token.flatten()).reshape(b, o, h * query_tiles, t, d)
    k_tiles = k.index_select(2, key_token.flatten()).reshape(b, o, h * key_tiles, t, d)
    v_tiles = v.index_select(2, key_token.flatten()).reshape(b, o, h * key_tiles, t, d)

    outs: list[Tensor] = []
    lses: list[Tensor] = []
    for bucket in arranged.buckets:
        r, w = bucket.columns.shape
        rows, columns = _on(device, bucket.rows), _on(device, bucket.columns)
        head, mask_ids = rows // query_tiles, _on(device, bucket.mask_ids)
        picked = (head[:, None] * key_tiles + columns).flatten()
        q_rows = q_tiles.index_select(2, rows)
        k_rows = k_tiles.index_select(2, picked).reshape(b, o, r, w * t, d)
        v_rows = v_tiles.index_select(2, picked).reshape(b, o, r, w * t, d)
        i = query_token[rows % query_tiles].reshape(r, t, 1)
        j = key_token[columns].reshape(r, 1, w * t)

        # Masks are key-major: [r, w, key, query] becomes [r, query, w * key].
        visible = _bits(pool[mask_ids], t) & key_shown[columns][..., None]
        visible = visible.permute(0, 3, 1, 2).reshape(r, t, w * t)
        scores = extras.scale * (q_rows @ k_rows.transpose(-1, -2))
        scores = extras.biased(scores, head, i, j, h).masked_fill(~visible, -math.inf)
        p, lse = softmax(scores)
        outs.append(extras.dropped(p, head, i, j, h) @ v_rows)
        lses.append(lse)

    # From buckets to rows, and from the slots of tiles to tokens.
    back, place = _on(device, arranged.back), _on(device, arranged.place)
    out = torch.cat(outs, 2).index_select(2, back).reshape(b, heads, query_tiles * t, d)
    lse = torch.cat(lses, 2).index_select(2, back).reshape(b, heads, query_tiles * t)
    return out.index_select(2, place), lse.index_select(2, place)


def _dense(
    q: Tensor, k: Tensor, v: Tensor, i: Tensor, j: Tensor, extras: _Extras
) -> tuple[Tensor, Tensor]:
    """Compute dense attention between the queries at positions i and the keys at positions j."""
    heads = q.shape[1]
    head = torch.arange(heads, device=q.device)
    i, j = i.reshape(1, -1, 1), j.reshape(1, 1, -1)
    scores = extras.scale * (q @ k.transpose(-1, -2))
    p, lse = softmax(extras.biased(scores[:, None], head, i, j, heads))
    return extras.dropped(p, head, i, j, heads)[:, 0] @ v, lse[:, 0]


def _bits(packed: Tensor, t: int) -> Tensor:
    """Unpack uint8 [..., ceil(t / 8)], lowest bit first, to bool [..., t]."""
    bit = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8, device=packed.device)
    return ((packed[..., None] & bit) != 0).flatten(-2)[..., :t]


def _on(device: torch.device, array: npt.NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(array).to(device)


@dataclass(frozen=True, eq=False)
class _Extras:
    """Changes to scores [b, o, r, query, key] and weights besides the softmax.

    `head` [r] is the head of each row along h; i [r or 1, query, 1] and j [r or 1, 1, key] are
    positions.
    """

    scale: float
    relative_bias: Tensor | None
    dropout_p: float
    streams: Tensor | None
    lengths: Tensor | None
    """[b]: first key of the padding; None if there is no padding."""

    @classmethod
    def of(cls, call: Call, numbers: Tensor, lengths: Tensor | None) -> _Extras:
        streams = None
        if call.dropout_seed is not None:
            streams = dropout.streams(call.dropout_seed, numbers, call.heads)
        return cls(call.scale, call.relative_bias, call.dropout_p, streams, lengths)

    def biased(self, scores: Tensor, head: Tensor, i: Tensor, j: Tensor, h: int) -> Tensor:
        if self.lengths is not None:
            padding = j >= self.lengths.reshape(-1, 1, 1, 1, 1)  # [b, 1, r or 1, 1, key]
            scores = scores.masked_fill(padding, -math.inf)
        if self.relative_bias is None:
            return scores
        heads, width = self.relative_bias.shape
        m = width // 2
        index = head.reshape(-1, 1, 1) * width + (j - i).clamp(-m, m) + m
        table = self.relative_bias.to(scores.dtype).reshape(heads // h, h * width)
        return scores + table.index_select(1, index.flatten()).reshape(-1, *index.shape)

    def dropped(self, p: Tensor, head: Tensor, i: Tensor, j: Tensor, h: int) -> Tensor:
        if self.streams is None:
            return p
        b, heads = self.streams.shape
        stream = self.streams.reshape(b, heads // h, h).index_select(2, head)[..., None, None]
        return p * dropout.kept(stream, i, j, self.dropout_p) / (1.0 - self.dropout_p)


@dataclass(frozen=True, eq=False)
class _Bucket:
    """Rows with similar numbers of entries."""

    rows: Integers
    """[r]: index along h times tiles of queries, plus tile of queries."""
    columns: Integers
    """[r, w]: tiles of keys; 0 if a row has fewer entries."""
    mask_ids: Integers
    """[r, w]: indices into the pool."""


@dataclass(frozen=True, eq=False)
class _Arrangement:
    """A layout arranged for gathering, as NumPy arrays because it outlives calls and devices."""

    heads: int
    """h: 1 if all heads share the layout."""
    query_token: Integers
    """[tiles, t]: token in each slot; the last token again in empty slots."""
    key_token: Integers
    key_shown: npt.NDArray[np.bool_]
    """[tiles, t]: whether the slot has a token that is not a hub."""
    hubs: Integers
    """[g]: global tokens, whose edges are not in the buckets."""
    layout: Layout
    place: Integers
    """[n]: slot of each query token."""
    buckets: tuple[_Bucket, ...]
    back: Integers
    """[h * tiles]: place of each row in the concatenated buckets."""
    pool: npt.NDArray[np.uint8]
    """The masks of the layout, then a full mask, then an empty mask."""

    def with_marked(self, marked: Tensor) -> _Arrangement:
        """Return the arrangement with more global tokens, bool [n]."""
        check_edges_count_once(NAME, self.layout, marked)
        hubs = all_global_tokens(self.layout, marked).astype(np.int64)
        return replace(self, hubs=hubs, key_shown=self.key_shown & ~np.isin(self.key_token, hubs))


@constant
def _constant_arrangement(key: str, n: int, heads: int) -> _Arrangement:
    return eagerly(_arrangement, Graphs.from_key(key).of(0, n).key, n, heads)


@functools.lru_cache(maxsize=64)
def _arrangement(key: str, n: int, heads: int) -> _Arrangement:
    layout = Graph.from_key(key).layout(n, heads)
    first = layout.row_ptr[:, :-1].reshape(-1)
    counts = np.diff(layout.row_ptr, axis=1).reshape(-1)
    everything, nothing = len(layout.masks), len(layout.masks) + 1
    pool = np.full((nothing + 1, *layout.masks.shape[1:]), 0xFF, np.uint8)
    pool[:everything] = layout.masks
    pool[nothing] = 0

    widths = _width(counts)
    buckets: list[_Bucket] = []
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        slot = np.arange(width)
        filled = slot < counts[rows, None]
        entry = np.where(filled, first[rows, None] + slot, 0)
        columns = np.zeros(entry.shape, np.int64)
        columns[filled] = layout.columns[entry[filled]]
        mask_ids = np.full(entry.shape, nothing, np.int64)
        mask_ids[filled] = layout.mask_ids[entry[filled]]
        mask_ids[mask_ids < 0] = everything
        buckets.append(_Bucket(rows, columns, mask_ids))

    query_token, query_exists = layout.queries.slots
    key_token, key_exists = layout.keys.slots
    place = np.empty(layout.queries.tokens, np.int64)
    place[query_token[query_exists]] = np.flatnonzero(query_exists)
    hubs = layout.global_tokens.astype(np.int64)
    return _Arrangement(
        heads=len(layout.row_ptr),
        query_token=query_token,
        key_token=key_token,
        key_shown=key_exists & ~np.isin(key_token, hubs),
        hubs=hubs,
        layout=layout,
        place=place,
        buckets=tuple(buckets),
        back=np.argsort(np.concatenate([bucket.rows for bucket in buckets])),
        pool=pool,
    )


def _width(counts: Integers) -> Integers:
    """Round up to 1, 2, 3, 4, 6, 8, 12, 16, ...: few buckets with little padding."""
    counts = np.maximum(counts, 1)
    power = 1 << np.ceil(np.log2(counts)).astype(np.int64)
    return np.where((counts <= power // 4 * 3) & (power >= 4), power // 4 * 3, power)
