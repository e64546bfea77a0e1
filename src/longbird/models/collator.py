"""Make padded batches of examples, including the inputs that tokenizers do not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers.data.data_collator import pad_without_fast_tokenizer_warning

from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.layers.checks import IGNORED

PER_TOKEN = {"global_attention_mask": 0, "position_ids": 0, "segment_ids": -1}
"""Inputs with a number for each token, and their padding."""

COLUMNS = {
    "edges": -1,
    "sentence_positions": -1,
    "paragraph_positions": -1,
    "start_positions": None,
    "end_positions": None,
}
"""Inputs that are columns of the batch, which move with padding on the left; and their padding."""

LABELS = ("labels", "label", "label_ids")
"""Names of labels in datasets; a batch calls them `labels`."""

MARKS = {"sentence_support": 0}
"""Inputs whose length is not that of the text, and their padding."""


@dataclass
class LongbirdCollator:
    """Make a padded batch of examples, for the `Trainer` or a `DataLoader`.

    The tokenizer pads the inputs that it knows. `segment_ids`, `global_attention_mask`, `edges`,
    `sentence_positions`, `paragraph_positions` and labels of tokens are padded on the same side.

    Args:
        tokenizer: A tokenizer of transformers.
        pad_to_multiple_of: Number that the length of the batch is a multiple of.

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

    def __post_init__(self) -> None:
        """Check the arguments, which would otherwise fail with the first batch."""
        if not hasattr(self.tokenizer, "pad") or not hasattr(self.tokenizer, "padding_side"):
            raise InvalidTypeError(
                "tokenizer must be one of transformers, as AutoTokenizer.from_pretrained(...) "
                f"gives it, received {self.tokenizer!r:.80}"
            )
        multiple = self.pad_to_multiple_of
        if multiple is not None and (not isinstance(multiple, int) or isinstance(multiple, bool)):
            raise InvalidTypeError(
                f"pad_to_multiple_of must be an integer or None, received {multiple!r:.80}"
            )
        if multiple is not None and multiple < 1:
            raise InvalidValueError(f"pad_to_multiple_of must be at least 1, received {multiple}")

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Make a batch of tensors [batch, ...] of all inputs of the examples."""
        rows = _rows(examples)
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
            given = [_numbers(name, number, value) for number, value in enumerate(values)]
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
        """Whether the examples have an input of this name; all of them must, or none."""
        there = [row.get(name) is not None for row in rows]
        if any(there) and not all(there):
            raise InvalidValueError(
                f"example {there.index(False)} has no {name}, and others have; give it to all"
            )
        return any(there)

    @staticmethod
    def _padded(
        name: str, given: list[Tensor], lengths: list[int], n: int, left: bool, value: int
    ) -> Tensor:
        """[batch, n]."""
        for number, (x, length) in enumerate(zip(given, lengths, strict=True)):
            if x.shape != (length,):
                raise InvalidValueError(
                    f"{name} of example {number} must have one number for each of its {length} "
                    f"tokens, received shape {list(x.shape)}"
                )
        out = torch.full((len(given), n), value, dtype=torch.int64)
        for row, x in zip(out, given, strict=True):
            row[slice(n - len(x), n) if left else slice(len(x))] = x
        return out


def _rows(examples: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Copy the examples, with one name for labels."""
    if isinstance(examples, (Mapping, str)) or not isinstance(examples, Iterable):
        raise InvalidTypeError(
            f"the collator takes a list of examples, received {type(examples).__name__}"
        )
    rows: list[dict[str, Any]] = []
    for number, example in enumerate(examples):
        if not isinstance(example, Mapping):
            raise InvalidTypeError(
                "an example must be a dict such as a tokenizer gives, received "
                f"{type(example).__name__} as example {number}"
            )
        named = [name for name in LABELS if example.get(name) is not None]
        if len(named) > 1:
            raise InvalidValueError(
                f"example {number} has its labels under several names ({', '.join(named)}); give "
                "them once"
            )
        ids = example.get("input_ids")
        if isinstance(ids, str) or not isinstance(ids, (Sequence, np.ndarray, Tensor)):
            raise InvalidValueError(
                f"example {number} must have a list of input_ids, received the inputs "
                f"{list(example)}; a tokenizer makes input_ids of a text"
            )
        for name, x in example.items():
            first = x[0] if isinstance(x, (list, tuple)) and x else x
            if isinstance(first, str) and name not in {*PER_TOKEN, *COLUMNS, *MARKS, *LABELS}:
                raise InvalidValueError(
                    f"example {number} has text in {name!r}, which cannot be in a batch of "
                    f"tensors; leave it out, dataset.remove_columns({name!r})"
                )
        rows.append(
            {
                "labels" if name in named else name: x
                for name, x in example.items()
                if x is not None
            }
        )
    if not rows:
        raise InvalidValueError("a batch must have at least one example, received none")
    return rows


def _numbers(name: str, number: int, value: Any) -> Tensor:
    """An input of an example as a tensor, of the type and shape that it must have."""
    where = f"{name} of example {number}"
    try:
        x = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):  # text, lists of different lengths, None
        raise InvalidTypeError(f"{where} must be numbers, received {value!r:.60}") from None
    if name in (*PER_TOKEN, *COLUMNS) and x.is_floating_point():
        if bool((x != x.round()).any()):
            raise InvalidTypeError(f"{where} must be integers, received {value!r:.60}")
        x = x.long()
    if name == "edges":
        x = x.reshape(-1, 2).long() if x.numel() == 0 else x
        if x.ndim != 2 or x.shape[1] != 2:
            raise InvalidValueError(
                f"{where} must be pairs (query, key), received the shape {list(x.shape)}"
            )
    return x


def _of_tokens(labels: list[Tensor], lengths: list[int]) -> bool:
    """Whether there is an integer label for every token."""
    return all(
        x.shape == (length,) and not x.is_floating_point()
        for x, length in zip(labels, lengths, strict=True)
    )


def _stacked(name: str, given: list[Tensor], filler: int | None) -> Tensor:
    """[batch, ...]: tensors of the same shape, or padded along the first axis."""
    if filler is not None and all(x.ndim for x in given):
        return torch.nn.utils.rnn.pad_sequence(given, batch_first=True, padding_value=filler)
    if len({x.shape for x in given}) > 1:
        raise InvalidValueError(
            f"{name} must have one number for each token, or the same shape in all examples; "
            f"received the shapes {[list(x.shape) for x in given]}"
        )
    return torch.stack(given)
