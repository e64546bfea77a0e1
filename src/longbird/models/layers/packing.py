"""Documents without padding, on which every layer works.

A padded batch [rows, n, ...] is packed into [tokens, ...] at the entry of a model, and padded
again at its exit. A document consists of the tokens that the attention mask keeps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from longbird.errors import InvalidValueError
from longbird.models.layers.checks import check_device, check_marks, check_tensor


@dataclass(frozen=True, eq=False)
class Documents:
    """The places of the tokens of a batch of documents."""

    rows: int
    n: int
    places: Tensor | None = None
    """int64 [tokens]: the place of each token in rows * n; None if there is no padding."""
    cu_seqlens: Tensor | None = None
    """int64 [rows + 1]: the token at which each document starts, if there is padding."""
    lengths: Tensor | None = None
    """int64 [rows]: number of tokens of each document in an exported program. Its shapes cannot
    depend on a mask, so that padding is moved to the end of every row and stays there."""

    @classmethod
    def of(cls, rows: int, n: int, attention_mask: Tensor | None) -> Documents:
        """Find the documents that an attention mask [rows, n] keeps; all tokens without a mask."""
        if attention_mask is None:
            return cls(rows, n)
        if attention_mask.shape != (rows, n):
            raise InvalidValueError(
                f"attention_mask must have the shape of the batch ({rows}, {n}): 1 for a token, 0 "
                f"for padding; received {tuple(attention_mask.shape)}. The graph and "
                "global_attention_mask decide which token sees which"
            )
        kept = attention_mask != 0
        if torch.compiler.is_exporting():
            lengths = kept.sum(1)
            rank = torch.where(kept, kept.cumsum(1), lengths[:, None] + (~kept).cumsum(1)) - 1
            every = torch.arange(rows * n, device=kept.device)
            rank = rank.flatten() + every // n * n  # where each place goes, documents first
            return cls(rows, n, torch.zeros_like(every).scatter(0, rank, every), lengths=lengths)
        check_marks("attention_mask", attention_mask)
        if bool(kept.all()):
            return cls(rows, n)
        ends = kept.sum(1).cumsum(0)
        cu_seqlens = torch.cat([ends.new_zeros(1), ends])
        return cls(rows, n, kept.flatten().nonzero()[:, 0], cu_seqlens)

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """The first token of every document, and the one after its last."""
        if self.cu_seqlens is None:
            return [(row * self.n, (row + 1) * self.n) for row in range(self.rows)]
        return list(itertools.pairwise(self.cu_seqlens.tolist()))

    def columns(self, row: int) -> Tensor:
        """Return the columns of the batch that the tokens of a document are in, int64."""
        if self.places is None:
            return torch.arange(self.n)
        start, end = self.bounds[row]
        return self.places[start:end] - row * self.n

    @property
    def longest(self) -> int:
        """Number of tokens of the longest document."""
        return self.n if self.cu_seqlens is None else int(self.cu_seqlens.diff().max())

    def pack(self, x: Tensor, name: str = "an input") -> Tensor:
        """Pack [rows, n, ...] into [tokens, ...]; errors use the name."""
        check_tensor(name, x)
        if x.shape[:2] != (self.rows, self.n):
            raise InvalidValueError(
                f"{name} must have the shape of the batch, ({self.rows}, {self.n}), received "
                f"{tuple(x.shape)}"
            )
        x = x.flatten(0, 1)
        if self.places is None:
            return x
        check_device(name, x, "attention_mask", self.places.device)
        return x.index_select(0, self.places)

    def pad(self, x: Tensor, value: float = 0.0) -> Tensor:
        """Pad [tokens, ...] to [rows, n, ...], with `value` where there is no token."""
        if self.lengths is not None:
            x = torch.where(self.present(x), x, value)
        if self.places is not None:
            everywhere = x.new_full((self.rows * self.n, *x.shape[1:]), value)
            x = everywhere.index_copy(0, self.places, x)
        return x.unflatten(0, (self.rows, self.n))

    def present(self, x: Tensor) -> Tensor:
        """Return which tokens belong to a document, bool [tokens, 1, ...] for x [tokens, ...]."""
        assert self.lengths is not None
        there = torch.arange(self.n, device=x.device) < self.lengths[:, None]
        return there.reshape(-1, *[1] * (x.ndim - 1))

    def counted(self, present: Tensor) -> Tensor:
        """Count the `present` tokens (bool [tokens]) of its document up to each token."""
        if self.cu_seqlens is None:
            return present.unflatten(0, (self.rows, self.n)).cumsum(1).flatten()
        total = torch.cat([present.new_zeros(1, dtype=torch.int64), present.cumsum(0)])
        return total[1:] - self.spread(total[self.cu_seqlens[:-1]])  # type: ignore[index]

    def spread(self, x: Tensor) -> Tensor:
        """Repeat values of documents [rows, ...] for their tokens, [tokens, ...]."""
        if self.cu_seqlens is None:
            return x.repeat_interleave(self.n, 0)
        return x.repeat_interleave(self.cu_seqlens.diff(), 0)

    def first(self, x: Tensor) -> Tensor:
        """Return the first token of every document, [rows, ...]; zeros if it has no tokens."""
        if self.lengths is not None:
            x = x * self.present(x)
        if self.n == 0:
            return x.new_zeros(self.rows, *x.shape[1:])
        if self.cu_seqlens is None:
            return x.unflatten(0, (self.rows, self.n))[:, 0]
        present = self.cu_seqlens.diff() > 0
        out = x.new_zeros(self.rows, *x.shape[1:])
        return out.index_put((present.nonzero()[:, 0],), x[self.cu_seqlens[:-1][present]])

    def check_tokens(self) -> None:
        """Raise if there are documents but no columns for their tokens.

        A row of nothing but padding is accepted, because it may fill up a batch; its result is
        finite.
        """
        if self.n == 0 and self.rows > 0:
            raise InvalidValueError(
                "every document must have at least one token, received none in rows 0 to "
                f"{self.rows - 1} of a batch of shape [{self.rows}, 0]; leave empty texts out"
            )

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the tokens of every document, [rows, ...]."""
        if self.lengths is not None:
            lengths, x = self.lengths, x * self.present(x)
            total = x.unflatten(0, (self.rows, self.n)).sum(1)
        elif self.cu_seqlens is None:
            return x.unflatten(0, (self.rows, self.n)).mean(1)
        else:
            lengths, row = self.cu_seqlens.diff(), torch.arange(self.rows, device=x.device)
            total = x.new_zeros(self.rows, *x.shape[1:]).index_add(0, self.spread(row), x)
        return total / lengths.clamp(min=1).to(x.dtype).reshape(-1, *[1] * (x.ndim - 1))

    def align(self, x: Tensor) -> Tensor:
        """Pad [tokens, ...] to [rows, n, ...] with every document at the beginning of its row."""
        if self.cu_seqlens is None:
            return x.unflatten(0, (self.rows, self.n))
        place = torch.arange(len(x), device=x.device) + self.spread(
            torch.arange(self.rows, device=x.device) * self.n - self.cu_seqlens[:-1]
        )
        aligned = x.new_zeros(self.rows * self.n, *x.shape[1:]).index_copy(0, place, x)
        return aligned.unflatten(0, (self.rows, self.n))
