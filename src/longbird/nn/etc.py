"""BigBird-ETC: added global tokens, with labelled attention to and from the segments of a text.

The global tokens of all documents follow the text tokens: x is [t + g, w]. Text tokens see the
graph and their document's global tokens in one softmax; global tokens see each other and the whole
text in another. An edge with a global token at either end has a label with an embedding E and a
bias B: its score is (q . k + q . E[label] + B[label]) / sqrt(d), as in Ainslie et al. 2020.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longbird.graph import Graph
from longbird.nn.attention import SelfAttention
from longbird.nn.packing import Documents
from longbird.ops.call import lse_dtype
from longbird.ops.merge import merge

TEXT_TO_OWN, TEXT_TO_OTHER, GLOBAL_TO_OWN, GLOBAL_TO_OTHER, GLOBAL_TO_GLOBAL = range(5)
"""Labels: a text token and the global token of its segment, or of another one; and back. Labels
from GLOBAL_TO_GLOBAL on are clipped distances between global tokens."""


class EtcAttention(SelfAttention):
    """Attention of text tokens and of added global tokens, [t + g, w]."""

    def __init__(self, config: Any, graph: Graph, layer: int) -> None:
        super().__init__(config, graph, layer)
        self.reach = config.global_max_distance
        labels = GLOBAL_TO_GLOBAL + 2 * self.reach + 1
        self.label_embedding = nn.Embedding(labels, config.hidden_size)
        self.label_bias = nn.Embedding(labels, self.heads)

    def forward(self, x: Tensor, documents: Documents) -> Tensor:
        """[t + g, w] to [t + g, w]."""
        text, added = x.split([len(x) - sum(documents.added), sum(documents.added)])
        q, k, v = (self.split(project(text)) for project in (self.query, self.key, self.value))
        own = (
            (self.query_global, self.key_global, self.value_global)
            if self.global_projections
            else (self.query, self.key, self.value)
        )
        q_added, k_added, v_added = (self.split(project(added)) for project in own)

        near, near_lse = documents.attend(
            q, k, v, self.graph, dropout_p=self.dropout, return_lse=True
        )
        outs: list[Tensor] = []
        looks: list[Tensor] = []
        last = 0
        for (start, end), count in zip(documents.bounds, documents.added, strict=True):
            first, last = last, last + count
            row, its = slice(start, end), slice(first, last)
            own_segment = torch.zeros(end - start, count, dtype=torch.bool, device=x.device)
            if documents.segments is not None:
                own_segment = documents.segments[row, None] == torch.arange(count, device=x.device)
            far = self._labelled(
                q[row], k_added[its], v_added[its],
                torch.where(own_segment, TEXT_TO_OWN, TEXT_TO_OTHER),
            )  # fmt: skip
            out, _ = merge((near[row], near_lse[row]), far)
            outs.append(out.to(x.dtype))
            place = torch.arange(count, device=x.device)
            distance = (place - place[:, None]).clamp(-self.reach, self.reach) + self.reach
            down = torch.where(own_segment.T, GLOBAL_TO_OWN, GLOBAL_TO_OTHER)
            look, _ = self._labelled(
                q_added[its],
                torch.cat([k_added[its], k[row]]),
                torch.cat([v_added[its], v[row]]),
                torch.cat([GLOBAL_TO_GLOBAL + distance, down], 1),
            )
            looks.append(look)
        return self.output(torch.cat(outs + looks).flatten(1))

    def _labelled(self, q: Tensor, k: Tensor, v: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Every query [i, h, d] sees every key [j, h, d]; labels [i, j]. Output and lse [i, h]."""
        embedding = self.split(self.label_embedding.weight)  # [label, h, d]
        by_label = torch.einsum("ihd,lhd->hil", q, embedding) + self.label_bias.weight.T[:, None]
        scores = torch.einsum("ihd,jhd->hij", q, k)
        scores = scores + by_label.gather(2, labels.expand(self.heads, -1, -1))
        scores = scores.to(lse_dtype(q.dtype)) / math.sqrt(q.shape[-1])
        lse = torch.logsumexp(scores, -1)
        p = F.dropout(torch.exp(scores - lse[..., None]), self.dropout).to(v.dtype)
        return torch.einsum("hij,jhd->ihd", p, v), lse.T
