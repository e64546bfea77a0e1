"""The loss of embeddings: every query finds its own document among all of a batch.

InfoNCE with the other documents of the batch as negatives, over all processes. A document that
belongs to a query, as far as the batch tells, is never a negative of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

QUERY, POSITIVE, NEGATIVE, NOTHING = 0, 1, 2, 3
"""What a text is to its example: a query, the document to be found, one that is not to be found;
or nothing, as those of a process that has no document of a step."""
NO_CLASS = 0
"""Of texts of which nobody knows what else they belong to."""


def contrastive_loss(
    embeddings: Tensor, texts: Mapping[str, Tensor], temperature: float, symmetric: bool
) -> Tensor:
    """The mean over the queries of this process, [].

    Args:
        embeddings: [texts, w], of length 1.
        texts: What is known of each, int64 [texts]: `kinds`; `examples`, their number in the
            batch; `keys`, equal for equal texts; `classes`, equal for texts that belong together.
        temperature: That cosines are divided by.
        symmetric: Must the query be found by its document as well?
    """
    exact = torch.promote_types(embeddings.dtype, torch.float32)  # cosines need their digits
    gathered, about = everywhere(embeddings.to(exact), texts)
    process = dist.get_rank() if several() else 0

    def picked(kind: int, mine: bool = False) -> Tensor:
        found = about["kinds"] == kind
        return (found & (about["process"] == process) if mine else found).nonzero()[:, 0]

    def each(rows: Tensor, columns: Tensor) -> Tensor:
        """The loss of each row, which is to find the text of its example."""

        def equal(name: str) -> Tensor:
            return about[name][rows][:, None] == about[name][columns]

        own = equal("examples") & equal("process") & (about["kinds"][columns] != NEGATIVE)
        known = about["classes"][rows][:, None] != NO_CLASS
        # Equal to the row, of its class, or equal to a text of its class: a document of one query
        # may be given as a negative of another.
        of_class = (equal("classes") & known | own).to(exact)
        same = about["keys"][columns][:, None] == about["keys"][columns]
        alike = equal("keys") | (of_class @ same.to(exact) > 0)
        logits = gathered[rows] @ gathered[columns].T / temperature
        logits = logits.masked_fill(alike & ~own, -torch.inf)
        return logits.logsumexp(1) - (logits.masked_fill(~own, 0.0)).sum(1)

    documents = torch.cat([picked(POSITIVE), picked(NEGATIVE)])
    with torch.autocast(embeddings.device.type, enabled=False):
        loss = each(picked(QUERY, mine=True), documents)
        if symmetric:
            loss = (loss + each(picked(POSITIVE, mine=True), picked(QUERY))) / 2
    # A process without queries has none to take the mean of, and its part in the graph.
    return loss.sum() / max(1, len(loss))


def several() -> bool:
    """Are there several processes?"""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def everywhere(
    embeddings: Tensor, texts: Mapping[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    """The embeddings of all processes, with their gradients, and what is known of the texts."""
    names = list(texts)
    about = torch.stack([texts[name] for name in names])
    process = torch.zeros_like(about[0])
    if several():
        # As many from each, as gathering wants it: what is added is nothing.
        counts = torch.zeros(dist.get_world_size(), dtype=torch.int64, device=about.device)
        counts[dist.get_rank()] = about.shape[1]
        dist.all_reduce(counts)
        most = int(counts.max())
        more = most - about.shape[1]
        there = torch.arange(most, device=about.device) < counts[:, None]
        process, kept = there.nonzero()[:, 0], there.flatten()
        about = _Gathered.apply(F.pad(about.T, (0, 0, 0, more)))[kept].T
        embeddings = _Gathered.apply(F.pad(embeddings, (0, 0, 0, more)))[kept]
    return embeddings, {**dict(zip(names, about, strict=True)), "process": process}


class _Gathered(torch.autograd.Function):
    """The tensors [n, w] of all processes as one, [processes * n, w].

    That of torch, `torch.distributed.nn`, is on its way out, and what follows it is private.
    """

    @staticmethod
    def forward(ctx: Any, mine: Tensor) -> Tensor:
        found = [
            torch.empty_like(mine, memory_format=torch.contiguous_format)
            for _ in range(dist.get_world_size())
        ]
        dist.all_gather(found, mine.contiguous())
        return torch.cat(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """What the losses of all processes want of the tensor of this one."""
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total.chunk(dist.get_world_size())[dist.get_rank()]
