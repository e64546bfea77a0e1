"""Examples to batches: padding for the inputs that tokenizers do not know."""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.data.data_collator import pad_without_fast_tokenizer_warning

from longbird.nn.checks import IGNORED

PER_TOKEN = {"global_attention_mask": 0, "segment_ids": -1}
"""Inputs with a number for each token, and what padding has."""

COLUMNS = {"edges": -1, "sentence_positions": -1, "start_positions": None, "end_positions": None}
"""Inputs that are columns of the batch, which move if padding comes first; and their padding."""

MARKS = {"sentence_support": 0}
"""Inputs of another length than the text, and their padding."""


@dataclass
class LongbirdCollator:
    """Makes a padded batch of examples, for the `Trainer` or a `DataLoader`.

    The tokenizer pads what it knows. `segment_ids`, `global_attention_mask`, `edges`,
    `sentence_positions` and labels of tokens are padded with it, on the same side.

    Args:
        tokenizer: Of transformers.
        pad_to_multiple_of: Length of the batch.

    Examples:
        >>> import longbird as lb, tokenizers, transformers
        >>> words = tokenizers.models.WordLevel({"[PAD]": 0, "a": 1, "b": 2}, unk_token="[PAD]")
        >>> words = tokenizers.Tokenizer(words)
        >>> tokenizer = transformers.PreTrainedTokenizerFast(
        ...     tokenizer_object=words, pad_token="[PAD]"
        ... )
        >>> examples = [
        ...     {"input_ids": [1, 2, 2], "segment_ids": [0, 0, 1], "labels": [3, 4, 5]},
        ...     {"input_ids": [2], "segment_ids": [0], "labels": [6]},
        ... ]
        >>> batch = lb.LongbirdCollator(tokenizer)(examples)
        >>> batch["segment_ids"]
        tensor([[ 0,  0,  1],
                [ 0, -1, -1]])
        >>> batch["labels"]
        tensor([[   3,    4,    5],
                [   6, -100, -100]])
    """

    tokenizer: Any
    pad_to_multiple_of: int | None = None

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """A batch of tensors [batch, ...] of all that the examples have."""
        rows = [dict(example) for example in examples]
        names = {"label": "labels", "label_ids": "labels"}
        rows = [{names.get(name, name): x for name, x in row.items()} for row in rows]
        own = [*PER_TOKEN, *COLUMNS, *MARKS, "labels"]
        taken = {name: [row.pop(name) for row in rows] for name in own if self._has(rows, name)}
        lengths = [len(row["input_ids"]) for row in rows]
        batch = dict(
            pad_without_fast_tokenizer_warning(
                self.tokenizer,
                rows,
                padding=True,
                pad_to_multiple_of=self.pad_to_multiple_of,
                return_tensors="pt",
            )
        )
        n, left = batch["input_ids"].shape[1], self.tokenizer.padding_side == "left"
        for name, values in taken.items():
            given = [torch.as_tensor(value) for value in values]
            if name in COLUMNS and left:
                given = [
                    torch.where(x >= 0, x + n - length, x)
                    for x, length in zip(given, lengths, strict=True)
                ]
            if name in PER_TOKEN or (name == "labels" and _of_tokens(given, lengths)):
                value = PER_TOKEN.get(name, IGNORED)
                batch[name] = self._padded(name, given, lengths, n, left, value)
            else:
                filler = {**COLUMNS, **MARKS}.get(name)
                batch[name] = _stacked(name, given, filler)
        return batch

    @staticmethod
    def _has(rows: list[dict[str, Any]], name: str) -> bool:
        """Have the examples an input of this name? All, or none of them."""
        there = [row.get(name) is not None for row in rows]
        if any(there) and not all(there):
            raise ValueError(
                f"example {there.index(False)} has no {name}, and others have: give it to all"
            )
        return any(there)

    @staticmethod
    def _padded(
        name: str, given: list[Tensor], lengths: list[int], n: int, left: bool, value: int
    ) -> Tensor:
        """[batch, n]."""
        for number, (x, length) in enumerate(zip(given, lengths, strict=True)):
            if x.shape != (length,):
                raise ValueError(
                    f"{name} of example {number} must have one number for each of its {length} "
                    f"tokens, received shape {list(x.shape)}"
                )
        out = torch.full((len(given), n), value, dtype=torch.int64)
        for row, x in zip(out, given, strict=True):
            row[slice(n - len(x), n) if left else slice(len(x))] = x
        return out


def _of_tokens(labels: list[Tensor], lengths: list[int]) -> bool:
    """Is there an integer label for every token?"""
    return all(
        x.shape == (length,) and not x.is_floating_point()
        for x, length in zip(labels, lengths, strict=True)
    )


def _stacked(name: str, given: list[Tensor], filler: int | None) -> Tensor:
    """[batch, ...]: of the same shape, or filled up along the first axis."""
    if name == "edges":
        given = [x.reshape(-1, 2).long() if x.numel() == 0 else x for x in given]
    if filler is not None and all(x.ndim for x in given):
        return torch.nn.utils.rnn.pad_sequence(given, batch_first=True, padding_value=filler)
    if len({x.shape for x in given}) > 1:
        raise ValueError(
            f"{name} of the examples have the shapes {[list(x.shape) for x in given]}: expected "
            "one number for each token, or the same shape everywhere"
        )
    return torch.stack(given)
