"""Softmax with its log-sum-exp, and merging of attention over disjoint sets of edges."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def softmax(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return weights and log-sum-exp over the last axis: 0 and -inf if all scores are -inf."""
    top = scores.detach().amax(-1, keepdim=True)
    shift = top.masked_fill(top == -math.inf, 0.0)
    weights = torch.exp(scores - shift)
    total = weights.sum(-1, keepdim=True)
    nothing = total == 0
    total = total.masked_fill(nothing, 1.0)
    lse = (shift + torch.log(total)).masked_fill(nothing, -math.inf)
    return weights / total, lse.squeeze(-1)


def merge(first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return attention over the union of two disjoint sets of edges."""
    share, lse = softmax(torch.stack([first[1], second[1]], -1))
    return share[..., :1] * first[0] + share[..., 1:] * second[0], lse
