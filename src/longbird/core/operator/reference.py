"""Dense attention, the specification of the operator: O(n^2), for small n and for checks.

Accumulation is in float64 for float64 inputs and in float32 for all others.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from longbird.core.graph.base import Graph
from longbird.core.operator import dropout
from longbird.core.operator.call import Call, lse_dtype
from longbird.core.operator.sequences import over_sequences
from longbird.core.operator.tracing import eagerly
from longbird.errors import InvalidValueError

NAME = "reference"


def missing() -> str | None:
    """Return None: this implementation is always available."""
    return None


def unsupported(call: Call) -> list[str]:  # noqa: ARG001
    """Return no reasons: it can run every call."""
    return []


def run(call: Call) -> tuple[Tensor, Tensor]:
    """Run `attend` over the sequences of a call."""

    def one(
        q: Tensor, k: Tensor, v: Tensor, numbers: Tensor, first: int, marked: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        return attend(
            q,
            k,
            v,
            call.graph.of(first, q.shape[2]),
            global_tokens=marked,
            relative_bias=call.relative_bias,
            dropout_p=call.dropout_p,
            dropout_seed=call.dropout_seed,
            sequences=numbers,
            scale=call.scale,
        )

    return eagerly(over_sequences, call, one)


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    graph: Graph,
    *,
    global_tokens: Tensor | None = None,
    relative_bias: Tensor | None = None,
    dropout_p: float = 0.0,
    dropout_seed: Tensor | None = None,
    sequences: Tensor | None = None,
    scale: float | None = None,
    scoring: Literal["softmax", "hardmax"] = "softmax",
) -> tuple[Tensor, Tensor]:
    """Return attention over sequences of one length, by its definition.

    For every sequence, head and query i, with c[i, j] the multiplicity of the edge from i to j:

        c[i, j]  = max(graph.counts(n, heads)[head, i, j], i is global or j is global)
        s[i, j]  = scale * q[i] . k[j] + relative_bias[head, clip(j - i, -m, m) + m]
        lse[i]   = log(sum_j c[i, j] * exp(s[i, j]))
        p[i, j]  = c[i, j] * exp(s[i, j] - lse[i])        (an edge counted c times adds log c to s)
        p[i, j]  = p[i, j] * kept(i, j) / (1 - dropout_p)
        out[i]   = sum_j p[i, j] * v[j]

    A query without keys has out 0, lse -inf and no gradient. With hardmax scoring
    (Pérez et al. 2019, and the Turing completeness proof of BigBird) p is uniform over the keys
    with the largest s, counted with their multiplicities, and lse is that largest s.

    Args:
        q: Queries [b, heads, n, head_dim].
        k: Keys, of the shape of q.
        v: Values, of the shape of q.
        graph: Graph of the edges from queries to keys.
        global_tokens: Tokens that are global besides those of the graph: bool [n].
        relative_bias: Table of biases by distance: [heads, 2m + 1].
        dropout_p: Probability of dropping a weight.
        dropout_seed: Seed, a 0-d int64 tensor, required if `dropout_p` > 0.
        sequences: Numbers of the sequences for dropout, int64 [b]; by default 0, 1, ...
        scale: Factor of q . k; by default 1 / sqrt(head_dim).
        scoring: "softmax" or "hardmax".

    Returns:
        Output [b, heads, n, head_dim] of the dtype of q, and log-sum-exp [b, heads, n] of the
        accumulation dtype.

    Examples:
        >>> import torch, longbird as lb
        >>> q = k = torch.eye(3)[None, None]
        >>> v = torch.arange(3.0).reshape(1, 1, 3, 1).expand(1, 1, 3, 3)
        >>> out, _ = attend(q, k, v, lb.Causal(), scoring="hardmax")
        >>> out[0, 0, :, 0]
        tensor([0., 1., 2.])
    """
    if scoring not in ("softmax", "hardmax"):
        raise InvalidValueError(f'scoring must be "softmax" or "hardmax", received {scoring!r}')
    b, heads, n, head_dim = q.shape
    dtype = lse_dtype(q.dtype)
    scale = 1.0 / math.sqrt(head_dim) if scale is None else scale
    token = torch.arange(n, device=q.device)

    counts = torch.from_numpy(graph.counts(n, heads)).to(q.device)
    if global_tokens is not None:
        marked = global_tokens.to(q.device)
        counts = counts.maximum((marked[:, None] | marked).to(counts.dtype))

    scores = scale * (q.to(dtype) @ k.to(dtype).transpose(-1, -2))
    if relative_bias is not None:
        m = relative_bias.shape[1] // 2
        distance = (token - token[:, None]).clamp(-m, m) + m
        scores = scores + relative_bias.to(dtype)[:, distance]
    scores = scores.masked_fill(counts == 0, -math.inf)
    top = scores.detach().amax(-1, keepdim=True)

    if scoring == "hardmax":
        weights = counts * ((scores == top) & (counts > 0)).to(dtype)
        lse = top.squeeze(-1)
    else:
        # Shifting by the largest score keeps exp in range; a row without keys has none.
        shift = top.masked_fill(top == -math.inf, 0.0)
        weights = counts * torch.exp(scores - shift)
        lse = shift.squeeze(-1) + torch.log(_total(weights)).squeeze(-1)
        lse = lse.masked_fill((counts == 0).all(-1), -math.inf)
    p = weights / _total(weights)

    if dropout_p > 0.0:
        assert dropout_seed is not None
        numbers = torch.arange(b, device=q.device) if sequences is None else sequences
        stream = dropout.streams(dropout_seed, numbers, heads)[:, :, None, None]
        keep = dropout.kept(stream, token[:, None], token, dropout_p)
        p = p * keep / (1.0 - dropout_p)
    return (p @ v.to(dtype)).to(q.dtype), lse


def _total(weights: Tensor) -> Tensor:
    total = weights.sum(-1, keepdim=True)
    return total.masked_fill(total == 0, 1.0)
