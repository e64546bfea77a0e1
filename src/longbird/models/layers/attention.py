"""Self-attention over a graph: one module for BigBird, Longformer, BERT, MPNet and decoders.

Axes: t tokens of all documents, h heads, d head_dim, w width = h * d, g global tokens, n tokens
of one document.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longbird.core.graph import Graph
from longbird.core.operator.call import lse_dtype
from longbird.errors import InvalidValueError
from longbird.models.layers.configuration import LayerConfig
from longbird.models.layers.context import Context, Record
from longbird.models.layers.int8 import through_each
from longbird.models.layers.packing import Documents


class Projections(nn.Module):
    """The projections of attention to queries, keys, values and outputs, and its dropout."""

    ROUNDED = ("query", "key", "value", "output")
    """The linear layers that can have int8 weights."""

    def __init__(self, config: LayerConfig, heads: int, output_bias: bool) -> None:
        super().__init__()
        width, self.heads = config.hidden_size, heads
        if width % heads:
            raise InvalidValueError(
                f"hidden_size must be a multiple of the attention heads, received {width} and "
                f"{heads}"
            )
        self.query = nn.Linear(width, width, bias=config.attention_bias)
        self.key = nn.Linear(width, width, bias=config.attention_bias)
        self.value = nn.Linear(width, width, bias=config.attention_bias)
        self.output = nn.Linear(width, width, bias=output_bias)
        self.dropout_p = config.attention_probs_dropout_prob

    @property
    def dropout(self) -> float:
        """Share of attention probabilities that are dropped in the current mode."""
        return self.dropout_p if self.training else 0.0

    def projected(self, x: Tensor) -> list[Tensor]:
        """Project [..., w] to queries, keys and values [..., h, d]."""
        return [self.split(y) for y in through_each(x, self.query, self.key, self.value)]

    def split(self, x: Tensor) -> Tensor:
        """Split [..., w] into heads, [..., h, d]."""
        return x.unflatten(-1, (self.heads, -1))


class SelfAttention(Projections):
    """Attention of every token over its neighbours in the graph and over the global tokens.

    With `global_projections` (Longformer), global tokens attend to all tokens with projections of
    their own; other tokens attend to them as without.
    """

    def __init__(self, config: LayerConfig, graph: Graph, layer: int) -> None:
        super().__init__(config, config.num_attention_heads, config.attention_output_bias)
        self.graph, self.layer = graph, layer
        self.global_projections = config.global_projections
        if self.global_projections:
            width = config.hidden_size
            self.query_global = nn.Linear(width, width)
            self.key_global = nn.Linear(width, width)
            self.value_global = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """[t, w] to [t, w]."""
        q, k, v = self.projected(x)
        if context.cache is not None:
            out = context.cache.attend(q, k, v, context, self.layer, self.dropout)
        else:
            out = context.attend(q, k, v, self.graph, dropout_p=self.dropout)  # [t, h, d]
        if context.record is not None and self.layer not in context.record.weights:
            context.record.weights[self.layer] = context.attention_weights(q, k, self.graph)
        if self.global_projections and context.global_tokens is not None:
            out = self._attend_from_global_tokens(x, out, context)
        return self.output(out.flatten(1))

    def _attend_from_global_tokens(self, x: Tensor, out: Tensor, context: Context) -> Tensor:
        """Replace the outputs of global tokens by their own attention to all tokens."""
        assert context.global_tokens is not None
        tokens = context.global_tokens.nonzero()[:, 0]
        outs: list[Tensor] = []
        seen: list[tuple[int, Tensor, Tensor]] = []  # document, its global tokens, their weights
        for row, (start, end) in enumerate(context.documents.bounds):
            mine = tokens[(tokens >= start) & (tokens < end)]
            if len(mine) == 0:
                continue
            q = self.split(self.query_global(x[mine]))
            p, own = self._attend(q, x[start:end])
            outs.append(own)
            seen.append((row, mine - start, p))
        if context.record is not None and self.layer not in context.record.of_globals:
            self._record(context.record, seen, context.documents)
        return out.index_copy(0, tokens, torch.cat(outs).to(out.dtype)) if outs else out

    def _record(
        self, record: Record, seen: list[tuple[int, Tensor, Tensor]], documents: Documents
    ) -> None:
        """Record weights [h, g, n of the document], among those of all tokens and on their own."""
        if not seen:
            return
        most = max(p.shape[1] for _, _, p in seen)
        alone = seen[0][2].new_zeros(documents.rows, documents.n, self.heads, most)
        for row, number, p in seen:
            record.weights[self.layer] = record.weights[self.layer].with_rows(row, number, p)
            at = (torch.full_like(documents.columns(row), row), documents.columns(row))
            alone = alone.index_put(at, F.pad(p.permute(2, 0, 1), (0, most - p.shape[1])))
        record.of_globals[self.layer] = alone.transpose(1, 2)  # [rows, h, n, g]

    def _attend(self, q: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Attend from global queries [g, h, d] to tokens [n, w]: weights [h, g, n] and outputs.

        Few queries are projected to the tokens, instead of every token to keys and values:
        q . (K x + b) = (q K) . x + q . b, and sum p (V x + b) = V (sum p x) + b. This takes
        g * h * w * n multiplications instead of w * w * n.
        """
        g, h, d = q.shape
        q = q / d**0.5
        key, value = self.key_global, self.value_global
        if g * h >= h * d:
            k, v = self.split(key(x)), self.split(value(x))
            p = torch.softmax(torch.einsum("ghd,nhd->hgn", q, k), -1, dtype=lse_dtype(q.dtype))
            kept = F.dropout(p, self.dropout).to(v.dtype)
            return p, torch.einsum("hgn,nhd->ghd", kept, v)
        carried = torch.einsum("ghd,hdw->hgw", q, key.weight.unflatten(0, (h, d)))
        offset = torch.einsum("ghd,hd->hg", q, key.bias.unflatten(0, (h, d)))
        scores = carried @ x.T + offset[..., None]  # [h, g, n]
        p = torch.softmax(scores, -1, dtype=lse_dtype(q.dtype))
        kept = F.dropout(p, self.dropout).to(x.dtype)
        look = torch.einsum("hgw,hdw->ghd", kept @ x, value.weight.unflatten(0, (h, d)))
        return p, look + kept.sum(-1).T[..., None] * value.bias.unflatten(0, (h, d))
