"""The documents of a run as tokens on the disk: made once, and never all in memory."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import torch
from datasets import Dataset
from datasets.arrow_writer import ArrowWriter
from torch import Tensor

from longbird.applications.training.data.arrow_columns import lists_of
from longbird.applications.training.data.batches import Batch
from longbird.applications.training.engine.run_folder import naming
from longbird.applications.training.tasks.task import Task
from longbird.models.collator import LongbirdCollator


def stored(
    task: Task,
    examples: Iterable[dict[str, Any]],
    tokenizer: Any,
    length: int,
    file: Path,
    training: bool = False,
) -> Dataset:
    """The features of examples, in a file that is there whole or not at all."""
    made = not file.exists()
    if made:
        file.parent.mkdir(parents=True, exist_ok=True)
        writing = file.with_name(f".{file.name}.writing")
        every = features_of(task, examples, tokenizer, length, training)
        first = next(every, None)
        if first is None:
            return Dataset.from_dict({"input_ids": [], "tokens": []})
        try:
            with naming(file), ArrowWriter(path=str(writing), writer_batch_size=64) as writer:
                for features in itertools.chain([first], every):
                    writer.write(features)
                writer.finalize()
            os.replace(writing, file)
        finally:
            writing.unlink(missing_ok=True)
    try:
        return Dataset.from_file(str(file))
    except (pyarrow.ArrowException, OSError):  # damaged: it is made again
        if made:
            raise
        file.unlink()
        return stored(task, examples, tokenizer, length, file, training)


def features_of(
    task: Task,
    examples: Iterable[dict[str, Any]],
    tokenizer: Any,
    length: int,
    training: bool = False,
) -> Iterator[dict[str, Any]]:
    """The features of examples, with the `lengths` of the parts that each is read in."""
    examples = iter(examples)
    while some := list(itertools.islice(examples, 64)):  # the tokenizer works on them in parallel
        for features in task.features(some, tokenizer, length, training):
            yield {**features, "lengths": [int(each) for each in task.lengths(features)]}


def cache_key(*parts: Any) -> str:
    """A name for what was made of these."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


class DocumentDataset(torch.utils.data.Dataset[dict[str, Any]]):
    """The inputs of the model by number, each a part of a row; ~number does not count.

    Attributes:
        lengths: Tokens of each part; the tokens themselves stay on the disk.
        row_of: The row of each.
        part_of: Which part of its row each is.
    """

    def __init__(self, task: Task, rows: Dataset) -> None:
        self.task, self.rows = task, rows.select_columns([*task.inputs])
        self.read = task.reader(self.rows)
        lengths, parts = lists_of(rows, "lengths")
        self.lengths: list[int] = lengths.tolist()
        self.row_of = np.repeat(np.arange(len(rows)), parts)
        self.part_of = np.arange(len(lengths)) - np.repeat(np.cumsum(parts) - parts, parts)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.lengths)

    def __getitem__(self, number: int) -> dict[str, Any]:
        """The inputs of one part, as it is measured."""
        return self._inputs(number, None)

    def __getitems__(self, batch: Batch) -> list[dict[str, Any]]:
        """Those of a batch of training, as they are in its epoch."""
        return [self._inputs(number, batch.epoch) for number in batch]

    def _inputs(self, number: int, epoch: int | None) -> dict[str, Any]:
        at = max(number, ~number)
        row, part = self.read(int(self.row_of[at]), epoch), int(self.part_of[at])
        return {**self.task.inputs_of(row, part, at, epoch), "number": number}


class Collator:
    """Batches of documents, with the `numbers` of these and how many `items` count."""

    def __init__(self, task: Task, tokenizer: Any) -> None:
        self.task, self.pad = task, LongbirdCollator(tokenizer)

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """A batch."""
        numbers = [example.pop("number") for example in examples]
        batch: dict[str, Any] = self.task.batch(examples, self.pad)
        items = self.task.items(batch)
        if numbers[0] < 0:
            batch, items = self.task.uncounted(batch), 0
        return {**batch, "items": torch.tensor(items), "numbers": torch.tensor(numbers)}


def without_bookkeeping(batch: dict[str, Any]) -> dict[str, Tensor]:
    """What the model takes of a batch."""
    return {name: x for name, x in batch.items() if name not in ("items", "numbers")}
