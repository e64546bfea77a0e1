"""The block patterns that published BigBird checkpoints were trained with, draw for draw.

Use `longbird.bigbird` for new models. A checkpoint is only reproduced with its own random blocks.
They come from NumPy's legacy generator in a certain order, reach only the first 1,024 tokens or 11
blocks, and at some lengths list a block twice, which then counts twice in the softmax.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import integer, tile_for
from longbird.core.graph.base import Graph
from longbird.errors import InvalidValueError

Table = npt.NDArray[np.int32]

PLANS = ("google", "huggingface", "huggingface_eval")

# Lengths that use the plan of the paper; other lengths were added later, with another plan.
PAPER_LENGTHS = {
    "google": (1024, 2048, 3072, 4096),
    "huggingface": (1024, 3072, 4096),
    "huggingface_eval": (),
}
PAPER_REACH = 1024  # the plan of the paper draws key blocks from the first tokens only


@dataclass(frozen=True)
class LegacyBigBird(Graph):
    """The pattern of a BigBird checkpoint, with its multiplicities.

    With m blocks of keys k[0] ... k[m-1] and the random table of the plan:

    - the first and the last query block attend to all keys;
    - query block 1 attends to k[0], k[1], k[2], k[m-1] and its random blocks;
    - query block i attends to k[0], k[i-1], k[i], k[i+1], k[m-1] and its random blocks;
    - query block m-2 attends to k[0], k[m-3], k[m-2], k[m-1] and its random blocks.

    A block that is listed twice counts twice.

    Args:
        plan: "google" (google-research/bigbird), "huggingface" (Hugging Face in training mode, and
            always before 4.29) or "huggingface_eval" (Hugging Face in evaluation mode since 4.29:
            every random block is block 0, in every head).
        block: Number of tokens in a block; the last block may have fewer.
        random: Number of random blocks for each query block.
        seed: Seed of the layer; the checkpoints use the number of the layer.
        max_length: Length for which the plan of the paper is built (Hugging Face:
            `max_position_embeddings`).
        full_up_to: Length up to which attention is full; by default `(5 + 2 * random) * block` for
            the plans of Hugging Face, and 512 for Google's.

    Examples:
        >>> graph = LegacyBigBird("google")
        >>> graph.plan_table(4096, heads=12)[0, :2]
        array([[ 9, 14,  7],
               [ 9,  6,  7]], dtype=int32)
        >>> int(LegacyBigBird("huggingface_eval").counts(1024)[0, 64, 0])
        4
    """

    plan: str
    block: int = 64
    random: int = 3
    seed: int = 0
    max_length: int = 4096
    full_up_to: int | None = None

    kind, multiset = "legacy", True

    def __post_init__(self) -> None:
        """Check the arguments."""
        if self.plan not in PLANS:
            raise InvalidValueError(
                f"LegacyBigBird plan must be one of {', '.join(PLANS)}, received {self.plan!r}"
            )
        self._set(
            block=integer(self.block, "LegacyBigBird block", least=1),
            random=integer(self.random, "LegacyBigBird random"),
            seed=integer(self.seed, "LegacyBigBird seed", most=2**32 - 1),
            max_length=integer(self.max_length, "LegacyBigBird max_length", least=1),
        )
        full = 512 if self.plan == "google" else (5 + 2 * self.random) * self.block
        if self.full_up_to is not None:
            full = integer(self.full_up_to, "LegacyBigBird full_up_to")
        drawn = self.plan != "huggingface_eval" and self.random > 0
        self._set(full_up_to=full, per_head=drawn, tile_size=tile_for(self.block))
        super().__post_init__()

    def reseed(self, offset: int) -> Graph:
        """Return the same graph with `offset` added to the seed, if the plan uses one."""
        reseeded = super().reseed(offset)
        return reseeded if self.per_head else self

    def tile_count(self, n: int, size: int) -> float:
        """Return all tiles, or those of the blocks of each row and of the two global rows."""
        rows = -(-n // size)
        if self.is_full(n):
            return float(rows) ** 2
        return rows * min(rows, (7 + self.random) * max(1, self.block / size))

    def is_full(self, n: int) -> bool:
        """Return whether attention over `n` tokens is full."""
        return n <= (self.full_up_to or 0)

    def plan_table(self, n: int, heads: int) -> Table:
        """Return the random key blocks of query blocks 1 to m-2: int32 [heads, m-2, random].

        Raises:
            ValueError: The plan does not exist at this length.
        """
        blocks = -(-n // self.block)
        if blocks < 4:
            raise InvalidValueError(
                f"LegacyBigBird needs 4 blocks of {self.block} tokens or more, received a length "
                f"of {n}; raise full_up_to={self.full_up_to} to use full attention there"
            )
        table = np.zeros((heads, blocks, self.random), np.int32)
        if not self.per_head:
            return table[:, 1:-1]
        # A local generator has the same stream as the global one that the checkpoints used.
        generator = np.random.RandomState(self.seed)
        paper = blocks * self.block in PAPER_LENGTHS[self.plan]
        draws = self._paper_draws(heads, blocks) if paper else self._later_draws(heads, blocks)
        for head, row, slots, candidates, forbidden in draws:
            drawn = generator.permutation(candidates)
            drawn = [column for column in drawn if column not in forbidden]
            wanted = slots.stop - slots.start
            if len(drawn) < wanted:
                raise InvalidValueError(
                    f"the {self.plan} plan of LegacyBigBird has only {len(drawn)} blocks to draw "
                    f"{wanted} from at a length of {n} with block={self.block}, "
                    f"random={self.random}, max_length={self.max_length}, as in the original; "
                    "raise full_up_to to use full attention there"
                )
            if row < blocks:
                table[head, row, slots] = drawn[:wanted]
        return table[:, 1:-1]

    def _paper_draws(self, heads: int, blocks: int) -> Iterator[tuple[int, int, slice, Any, Any]]:
        """Yield the draws of the paper's plan in order: (head, row, slots, candidates, forbidden).

        It draws for `max_length` and keeps the first rows. Its flaws (a row near the end may draw
        a block of its own window) are those of the original.
        """
        total = self.max_length // self.block
        if blocks > total:
            raise InvalidValueError(
                f"LegacyBigBird draws for max_length={self.max_length} tokens at most, received "
                f"{blocks} blocks of {self.block}"
            )
        middle = np.arange(1, total - 1, dtype=np.int32)
        last = total - 1
        if 2 * self.block < PAPER_REACH:
            last = PAPER_REACH // self.block - 1
        for head in range(heads):
            for row in range(1, total - 1):
                start, end = row - 2, row
                if row <= 2:
                    candidates = middle[row + 1 : last]
                elif row >= total - 3 or start > last:
                    candidates = middle[:last]
                elif end + 1 == last:
                    candidates = middle[:start]
                else:
                    candidates = np.concatenate([middle[:start], middle[end + 1 : last]])
                yield head, row, slice(0, self.random), candidates, ()

    def _later_draws(self, heads: int, blocks: int) -> Iterator[tuple[int, int, slice, Any, Any]]:
        """Yield the draws of the later plan in order: (head, row, slots, candidates, forbidden).

        It divides the sequence at one block and draws a number of blocks from each part.
        """
        random = self.random
        if 2 * random + 5 < blocks:
            cut, left = 2 * random + 5, random
        elif random + 5 < blocks:
            cut, left = random + 5, random // 2
        else:
            cut, left = blocks, random
        before, after = (0, cut, slice(0, left)), (cut, blocks, slice(left, random))
        upper, lower = range(1, cut), range(cut, blocks)
        for rows, (start, end, slots) in (
            (upper, before),
            (upper, after),
            (lower, before),
            (lower, after),
        ):
            if slots.start == slots.stop:
                continue
            for row in rows:
                forbidden = {row - 1, row, row + 1, 0, end - 1}
                forbidden |= {end - 2} if row == 1 else set()
                forbidden |= {1} if row == end - 2 else set()
                for head in range(heads):
                    yield head, row, slots, np.arange(start, end, dtype=np.int32), forbidden

    def blocks(self, n: int, heads: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the block pairs of a length that is not full, and how often each is listed.

        Returns:
            Sorted codes `(head * m + row) * m + column` for m blocks, and their multiplicities.
            Without random blocks, the codes are those of one head that stands for all.
        """
        heads = heads if self.per_head else 1
        table = self.plan_table(n, heads).astype(np.int64)
        m = -(-n // self.block)
        every = np.arange(m)
        rows = np.arange(1, m - 1)
        listed = [
            np.zeros(m, np.int64) * m + every,
            (m - 1) * m + every,
            rows * m,
            rows * m + (m - 1),
            *(rows * m + column for column in (rows - 1, rows, rows + 1)),
        ]
        # The windows of rows 1 and m-2 contain the first and last block, which are listed once.
        twice = np.array([1 * m, (m - 2) * m + (m - 1)])
        codes, counts = np.unique(np.concatenate(listed), return_counts=True)
        counts[np.searchsorted(codes, twice)] -= 1
        fixed = np.repeat(codes, counts)
        drawn = (np.arange(heads)[:, None, None] * m + rows[:, None]) * m + table
        shared = np.arange(heads)[:, None] * (m * m) + fixed
        return np.unique(np.concatenate([shared, drawn], axis=None), return_counts=True)

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return how often the block of each key is listed for the block of the query."""
        if self.is_full(n):
            return np.ones((1, n, n), bool)
        m = -(-n // self.block)
        codes, counts = self.blocks(n, heads)
        listed = np.zeros((heads if self.per_head else 1, m, m), np.int32)
        listed.flat[codes] = counts
        block_of_token = np.arange(n) // self.block
        return listed[:, block_of_token[:, None], block_of_token[None, :]]
