"""The documents of a run as tokens on the disk: made once, and never all in memory."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from datasets import Dataset
from datasets.arrow_writer import ArrowWriter
from torch import Tensor

from longbird.models.collator import LongbirdCollator
from longbird.tasks.task import Task


def stored(
    task: Task,
    examples: Iterable[dict[str, Any]],
    tokenizer: Any,
    length: int,
    file: Path,
    training: bool = False,
) -> Dataset:
    """The features of examples, in a file that is there whole or not at all."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        writing = file.with_name(f".{file.name}.writing")
        with ArrowWriter(path=str(writing), writer_batch_size=64) as writer:
            make = task.training_features if training else task.features
            for features in _features(make, examples, tokenizer, length):
                writer.write(features)
            writer.finalize()
        os.replace(writing, file)
    return Dataset.from_file(str(file))


def _features(
    make: Callable[..., Iterator[dict[str, Any]]],
    examples: Iterable[dict[str, Any]],
    tokenizer: Any,
    length: int,
) -> Iterator[dict[str, Any]]:
    examples = iter(examples)
    while some := list(itertools.islice(examples, 64)):  # the tokenizer works on them in parallel
        yield from make(some, tokenizer, length)


def cache_key(*parts: Any) -> str:
    """A name for what was made of these."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


class Documents(torch.utils.data.Dataset[dict[str, Any]]):
    """The inputs of the model by number, each a part of a document; ~number does not count.

    Attributes:
        parts: For each number: which row, and which part of it.
        lengths: Tokens of each.
    """

    def __init__(self, task: Task, rows: Dataset) -> None:
        self.task, self.rows = task, rows.select_columns([*task.inputs])
        self.parts: list[tuple[int, int]] = []
        self.lengths: list[int] = []
        for number, row in enumerate(self.rows):
            lengths = task.lengths(cast(dict[str, Any], row))
            self.parts += [(number, part) for part in range(len(lengths))]
            self.lengths += lengths

    def __len__(self) -> int:
        """How many there are."""
        return len(self.parts)

    def __getitem__(self, number: int) -> dict[str, Any]:
        """The inputs of one part."""
        row, part = self.parts[max(number, ~number)]
        return {**self.task.inputs_of(self.rows[row], part), "number": number}


class Collator:
    """Batches of documents, with the `numbers` of these and how many `items` count."""

    def __init__(self, task: Task, tokenizer: Any) -> None:
        self.task, self.pad = task, LongbirdCollator(tokenizer)

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """A batch."""
        numbers = [example.pop("number") for example in examples]
        batch: dict[str, Any] = self.task.batch(examples, self.pad)
        items = 0 if numbers[0] < 0 else self.task.items(batch)
        return {**batch, "items": torch.tensor(items), "numbers": torch.tensor(numbers)}


def without_bookkeeping(batch: dict[str, Any]) -> dict[str, Tensor]:
    """What the model takes of a batch."""
    return {name: x for name, x in batch.items() if name not in ("items", "numbers")}
