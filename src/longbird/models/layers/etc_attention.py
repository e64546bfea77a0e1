"""BigBird-ETC: added global tokens, with labelled attention to and from the segments of a text.

The global tokens of all documents follow the text tokens: x is [t + g, w]. One softmax covers what
a text token sees: its neighbours in the graph and the global tokens of its document. Another one
covers what a global token sees: the other global tokens and the whole text. An edge with a global
token at either end has a label with an embedding E and a bias B, and the score
(q . k + q . E[label] + B[label]) / sqrt(d), as in Ainslie et al. 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longbird.core.graph import Graph
from longbird.core.operator.call import lse_dtype
from longbird.core.operator.merge import merge
from longbird.core.operator.weights import SparseRows
from longbird.models.layers.attention import SelfAttention
from longbird.models.layers.configuration import LayerConfig
from longbird.models.layers.context import Context
from longbird.models.layers.int8 import through_each

TEXT_TO_OWN, TEXT_TO_OTHER, GLOBAL_TO_OWN, GLOBAL_TO_OTHER, GLOBAL_TO_GLOBAL = range(5)
"""Labels of edges between a text token and the global token of its own or another segment, in both
directions. Labels from GLOBAL_TO_GLOBAL on are clipped distances between global tokens."""


@dataclass(frozen=True, eq=False)
class DocumentGroup:
    """Documents with equal numbers of tokens and of global tokens, which are computed at once.

    Axes: b documents, n text tokens, g global tokens.
    """

    size: int
    text: slice
    """The slice of its tokens among those of all documents."""
    added: slice
    """The slice of its global tokens among those of all documents."""
    own: Tensor
    """bool [b, n, g]: whether this is the global token of the segment of this token."""
    there: Tensor | None = None
    """bool [b, n]: the tokens that are not padding; None for all."""
    present: Tensor | None = None
    """bool [b, g]: the global tokens that a document has; None for all."""

    def of_text(self, x: Tensor) -> Tensor:
        """Select the text of the group, from [t, ...] to [b, n, ...]."""
        return x[self.text].unflatten(0, (self.size, self.own.shape[1]))

    def of_added(self, x: Tensor) -> Tensor:
        """Select the global tokens of the group, to [b, g, ...]."""
        return x[self.added].unflatten(0, (self.size, self.own.shape[2]))

    @property
    def seen(self) -> Tensor | None:
        """Bool [b, g + n]: the global tokens and text tokens that a global token sees."""
        if self.present is None and self.there is None:
            return None
        n, g = self.own.shape[1:]
        every = self.own.new_ones(self.size, g + n)
        present = every[:, :g] if self.present is None else self.present
        there = every[:, g:] if self.there is None else self.there
        return torch.cat([present, there], 1)


def groups(context: Context, device: Any) -> Iterator[DocumentGroup]:
    """Yield one document at a time, or all at once in an exported program."""
    documents, added = context.documents, context.added
    assert added is not None
    if added.counts is None:
        rows, n, g = documents.rows, documents.n, added.total // documents.rows
        own = torch.zeros(rows, n, g, dtype=torch.bool, device=device)
        if added.segments is not None:
            own = added.segments.unflatten(0, (rows, n))[..., None] == torch.arange(
                g, device=device
            )
        there = None
        if documents.lengths is not None:
            there = documents.present(documents.lengths).unflatten(0, (rows, n))
        yield DocumentGroup(rows, slice(None), slice(None), own, there, added.present)
        return
    last = 0
    for (start, end), count in zip(documents.bounds, added.counts, strict=True):
        first, last = last, last + count
        own = torch.zeros(1, end - start, count, dtype=torch.bool, device=device)
        if added.segments is not None:
            own = added.segments[None, start:end, None] == torch.arange(count, device=device)
        yield DocumentGroup(1, slice(start, end), slice(first, last), own)


class EtcAttention(SelfAttention):
    """Attention of text tokens and of added global tokens, [t + g, w]."""

    def __init__(self, config: LayerConfig, graph: Graph, layer: int) -> None:
        super().__init__(config, graph, layer)
        self.reach = config.global_max_distance
        labels = GLOBAL_TO_GLOBAL + 2 * self.reach + 1
        self.label_embedding = nn.Embedding(labels, config.hidden_size)
        self.label_bias = nn.Embedding(labels, self.heads)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """[t + g, w] to [t + g, w]."""
        assert context.added is not None
        tokens = x.shape[0] - context.added.total
        text, added = x[:tokens], x[tokens:]
        q, k, v = self.projected(text)
        own = (
            (self.query_global, self.key_global, self.value_global)
            if self.global_projections
            else (self.query, self.key, self.value)
        )
        q_added, k_added, v_added = (self.split(y) for y in through_each(added, *own))

        near, near_lse = context.attend(
            q, k, v, self.graph, dropout_p=self.dropout, return_lse=True
        )
        if torch.compiler.is_exporting():  # into strides that hold for any length
            near, near_lse = (
                y.clone(memory_format=torch.contiguous_format) for y in (near, near_lse)
            )
        outs: list[Tensor] = []
        from_added: list[Tensor] = []
        weights: list[tuple[Tensor, Tensor, Tensor]] = []
        for group in groups(context, x.device):
            k_its, v_its = group.of_added(k_added), group.of_added(v_added)
            up = torch.where(group.own, TEXT_TO_OWN, TEXT_TO_OTHER)
            far, far_lse, p_far = self._labelled(group.of_text(q), k_its, v_its, up, group.present)
            near_lse_of = group.of_text(near_lse)
            out, lse = merge((group.of_text(near), near_lse_of), (far, far_lse))
            outs.append(out.to(x.dtype).flatten(0, 1))

            own, _, p_own = self._labelled(
                group.of_added(q_added),
                torch.cat([k_its, group.of_text(k)], 1),
                torch.cat([v_its, group.of_text(v)], 1),
                self._labels_of_globals(group.own),
                group.seen,
            )
            from_added.append(own.flatten(0, 1))
            if context.record is not None:
                near_share, far_share = torch.exp(near_lse_of - lse), torch.exp(far_lse - lse)
                p_far = p_far * far_share.transpose(1, 2)[..., None]
                weights.append((near_share[0].T, p_far[0], p_own[0]))
        if context.record is not None and self.layer not in context.record.weights:
            rows = context.attention_weights(q, k, self.graph)
            context.record.weights[self.layer] = _whole_rows(rows, weights) if weights else rows
        out = torch.cat(outs + from_added) if outs else near  # near is empty without documents
        return self.output(out.flatten(1))

    def _labels_of_globals(self, own: Tensor) -> Tensor:
        """Int64 [b, g, g + n]: the labels of edges from global tokens to each other and text."""
        place = torch.arange(own.shape[2], device=own.device)
        distance = (place - place[:, None]).clamp(-self.reach, self.reach) + self.reach
        down = torch.where(own.mT, GLOBAL_TO_OWN, GLOBAL_TO_OTHER)
        return torch.cat([(GLOBAL_TO_GLOBAL + distance).expand(own.shape[0], -1, -1), down], 2)

    def _labelled(
        self, q: Tensor, k: Tensor, v: Tensor, labels: Tensor, seen: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Attend from queries [b, i, h, d] to seen keys [b, j, h, d], with labels [b, i, j].

        Returns the outputs, their log-sum-exp [b, i, h] and the weights [b, h, i, j].
        """
        embedding = self.split(self.label_embedding.weight)  # [label, h, d]
        by_label = torch.einsum("bihd,lhd->bhil", q, embedding) + self.label_bias.weight.T[:, None]
        scores = torch.einsum("bihd,bjhd->bhij", q, k)
        scores = scores + by_label.gather(3, labels[:, None].expand(-1, self.heads, -1, -1))
        scores = scores.to(lse_dtype(q.dtype)) / math.sqrt(q.shape[-1])
        if seen is not None:
            scores = scores.masked_fill(~seen[:, None, None], -math.inf)
        lse = torch.logsumexp(scores, -1)
        p = torch.exp(scores - lse[..., None])
        out = torch.einsum("bhij,bjhd->bihd", F.dropout(p, self.dropout).to(v.dtype), v)
        return out, lse.transpose(1, 2), p


def _whole_rows(near: SparseRows, documents: list[tuple[Tensor, Tensor, Tensor]]) -> SparseRows:
    """Add all edges of global tokens to the weights of text tokens over the text.

    In rows and in keys, a number below n is a token of the text, and n + i is global token i; n is
    the number of columns of the batch. For each document, `documents` has the share [h, n] of the
    text in the weights of its tokens, their weights [h, n, g] over global tokens, and the weights
    [h, g, g + n] of global tokens.
    """
    batch, heads, n = near.shape
    device = near.weights.device
    most = max(look.shape[1] for _, _, look in documents)
    width = n + most
    row: list[Tensor] = []
    key: list[Tensor] = []
    weight: list[Tensor] = []

    def add(document: int, head: Tensor, i: Tensor, j: Tensor, p: Tensor) -> None:
        row.append(((document * heads + head) * width + i).expand_as(p).flatten())
        key.append(j.expand_as(p).flatten())
        weight.append(p.flatten())

    each = torch.arange(heads, device=device)[:, None, None]
    for number, (_, far, look) in enumerate(documents):
        length, g = far.shape[1:]
        text, its = torch.arange(length, device=device), n + torch.arange(g, device=device)
        add(number, each, text[:, None], its, far)
        add(number, each, its[:, None], torch.cat([its, text]), look)
    count = near.row_ptr.diff().to(device)
    old = torch.repeat_interleave(torch.arange(len(count), device=device), count)
    padded = [F.pad(share, (0, n - share.shape[1])) for share, _, _ in documents]
    row.append(old // n * width + old % n)
    key.append(near.keys)
    weight.append(near.weights * torch.stack(padded).flatten()[old])

    rows, keys, weights = torch.cat(row), torch.cat(key), torch.cat(weight)
    order = (rows * width + keys).argsort()
    counts = torch.bincount(rows, minlength=batch * heads * width)
    return SparseRows(
        (batch, heads, width),
        torch.arange(width),
        F.pad(counts.cumsum(0), (1, 0)).cpu(),
        keys[order],
        weights[order],
    )
