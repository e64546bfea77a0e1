"""Batches by tokens: documents of any lengths, up to a budget; padding is never computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from torch.utils.data import Sampler


def by_tokens(lengths: Sequence[int], budget: int, seed: int) -> list[list[int]]:
    """All documents in batches of at most `budget` tokens; a longer one is a batch of its own.

    The batches of one seed are always the same, so that an epoch always has as many; what changes
    from epoch to epoch is their order.

    Examples:
        >>> sorted(map(sorted, by_tokens([4, 3, 3, 9, 1], 7, seed=0)))
        [[0, 1], [2, 4], [3]]
    """
    order = np.random.default_rng(seed).permutation(len(lengths))
    batches: list[list[int]] = []
    tokens = budget
    for document in order.tolist():
        if tokens + lengths[document] > budget:
            batches.append([])
            tokens = 0
        batches[-1].append(document)
        tokens += lengths[document]
    return batches


def drawn_anew(lengths: Sequence[int], budget: int, seed: int, epoch: int) -> list[list[int]]:
    """All documents in batches of about `budget` tokens, others in every epoch, but as many.

    A batch may have a part of one document too many, or too few.

    Examples:
        >>> [sorted(map(len, drawn_anew([5] * 7, 10, 0, epoch))) for epoch in range(2)]
        [[1, 2, 2, 2], [1, 2, 2, 2]]
    """
    order = np.random.default_rng((seed, epoch, 1)).permutation(len(lengths))
    ends = np.cumsum(np.array(lengths)[order])
    count = min(len(lengths), -(-int(ends[-1]) // budget))
    middles = ends - np.array(lengths)[order] / 2
    cuts = np.searchsorted(middles, ends[-1] / count * np.arange(1, count))
    # At least one in each.
    cuts = np.maximum.accumulate(cuts - np.arange(count - 1)) + np.arange(count - 1)
    cuts = np.clip(cuts, np.arange(1, count), len(lengths) - np.arange(count - 1, 0, -1))
    return [part.tolist() for part in np.split(order, cuts)]


class Batch(list[int]):
    """The numbers of documents, and the epoch that they are read in."""

    def __init__(self, numbers: Iterable[int], epoch: int) -> None:
        super().__init__(numbers)
        self.epoch = epoch


class TokenBatches(Sampler[list[int]]):
    """The batches of one process, each a share of the documents of a training step.

    All processes take as many steps as one alone would, with the same documents in each, so that
    their number can change when a run goes on. A process without a document of a step gets one
    that does not count, written as ~number.

    Args:
        lengths: Tokens of each document.
        budget: Tokens of a step, over all processes.
        seed: Of the batches and of their order.
        epoch: Says which epoch begins.
        process: Which of the `processes` this is.
        processes: How many there are.
        anew: Are batches drawn anew in each epoch? Otherwise their order alone is.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        budget: int,
        seed: int,
        epoch: Callable[[], int] = lambda: 0,
        process: int = 0,
        processes: int = 1,
        anew: bool = False,
    ) -> None:
        self.lengths, self.budget, self.seed, self.epoch = lengths, budget, seed, epoch
        self.process, self.processes, self.anew = process, processes, anew
        self.batches = (
            drawn_anew(lengths, budget, seed, 0) if anew else by_tokens(lengths, budget, seed)
        )

    def __len__(self) -> int:
        """How many there are in an epoch."""
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        """Those of the epoch that begins."""
        epoch = self.epoch()
        if self.anew:
            self.batches = drawn_anew(self.lengths, self.budget, self.seed, epoch)
        order = np.random.default_rng((self.seed, 1 + epoch)).permutation(len(self))
        for number in order.tolist():
            yield Batch(self.share(self.batches[number]), epoch)

    def share(self, batch: list[int]) -> list[int]:
        """What this process has of a batch: about as many tokens as the others."""
        if self.processes == 1:
            return batch
        longest_first = sorted(batch, key=lambda document: -self.lengths[document])
        shares: list[list[int]] = [[] for _ in range(self.processes)]
        tokens = [0] * self.processes
        for document in longest_first:
            least = tokens.index(min(tokens))
            shares[least].append(document)
            tokens[least] += self.lengths[document]
        return shares[self.process] or [~longest_first[-1]]
