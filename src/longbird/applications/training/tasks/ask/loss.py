"""The losses of question answering: where the answer is, and which sentences support it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor


def span_loss(starts: Tensor, ends: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the loss of the answer, which is any of its mentions: their probabilities are added.

    Args:
        starts: Logits of the first token of the answer, [rows, n].
        ends: Logits of its last token, [rows, n].
        batch: Has the tokens of the mentions, [rows, mentions]; -1 where there is none.
    """
    start, end = batch["start_positions"], batch["end_positions"]
    counts = (start >= 0) & (end >= 0)
    both = sum(
        logits.float().log_softmax(1).gather(1, at.clamp(min=0))
        for logits, at in ((starts, start), (ends, end))
    )
    assert isinstance(both, Tensor)
    # Rows without a mention are left out before the sum, whose gradient is NaN there.
    there = counts.any(1)
    marginal = both.masked_fill(~counts, -torch.inf)[there].logsumexp(1)
    return -marginal.sum() / 2 / len(start)  # one mention: the mean of both cross-entropies


def sentence_loss(logits: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the loss of the sentences that support the answer, from logits [rows, sentences]."""
    real = batch["sentence_positions"] >= 0
    each = F.binary_cross_entropy_with_logits(
        logits.float(), batch["sentence_support"].float(), reduction="none"
    )
    # A sum lets documents of a hundred sentences drown the answers, and a mean lets those of few
    # drown them.
    weight = real.sum(1, keepdim=True).clamp(min=1).rsqrt()
    return (each * weight).masked_fill(~real, 0.0).sum() / len(real)
