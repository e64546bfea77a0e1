"""What a model says of documents: batches by tokens, shared between the processes there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from accelerate.utils import gather_object
from datasets import Dataset

from longbird.applications.training.data.batches import by_tokens
from longbird.applications.training.data.token_store import (
    Collator,
    DocumentDataset,
    without_bookkeeping,
)
from longbird.applications.training.engine.processes import processes
from longbird.applications.training.tasks.task import Task


def predict(
    model: Any,
    task: Task,
    rows: Dataset,
    tokenizer: Any,
    tokens_per_batch: int,
    advance: Callable[[int], None] = lambda _: None,
    learning: bool = False,
) -> list[dict[str, Any]]:
    """Return a prediction for each row, in order; every process returns the same.

    Rows that a task looks at twice are read again, except while a model is being trained.

    Args:
        model: The model, in the mode in which it is run.
        task: The task of the model.
        rows: Rows with features, as `longbird.applications.training.data.token_store.stored`
            returns them.
        tokenizer: The tokenizer of the model.
        tokens_per_batch: Maximum number of tokens per batch, unless one document has more.
        advance: Function that is called with the number of further documents that are done.
        learning: Whether to compute only what the task measures during training.
    """
    first = _read(model, task, rows, tokenizer, tokens_per_batch, advance, learning)
    if learning:
        return first
    return task.second_look(
        rows, first, lambda again: _read(model, task, again, tokenizer, tokens_per_batch)
    )


@torch.no_grad()
def _read(
    model: Any,
    task: Task,
    rows: Dataset,
    tokenizer: Any,
    tokens_per_batch: int,
    advance: Callable[[int], None] = lambda _: None,
    learning: bool = False,
) -> list[dict[str, Any]]:
    state, documents, collate = processes(), DocumentDataset(task, rows), Collator(task, tokenizer)
    device = next(model.parameters()).device
    found: list[tuple[int, dict[str, Any]]] = []
    look = task.watched if learning else task.predictions
    batches = by_tokens(documents.lengths, tokens_per_batch, seed=0)
    # If the weights are sharded over processes, all of them must run the model equally often: at
    # the end, some repeat a batch of another process.
    for first in range(0, len(batches), state.num_processes):
        mine = first + state.process_index
        batch = batches[min(mine, len(batches) - 1)]
        collated = without_bookkeeping(collate([documents[number] for number in batch]))
        on_device = {name: x.to(device) for name, x in collated.items()}
        said = look(model, on_device)
        if mine >= len(batches):
            continue
        found += zip(batch, said, strict=True)
        advance(sum(documents.part_of[number] == 0 for number in batch))
    if state.num_processes > 1:
        found = gather_object(found)
    parts: list[list[dict[str, Any]]] = [[] for _ in range(len(rows))]
    for number, prediction in sorted(found, key=lambda pair: pair[0]):
        parts[documents.row_of[number]].append(prediction)
    unused = [name for name in task.on_disk if name not in task.joins]
    every = cast(Any, rows.remove_columns(unused))
    return [task.joined(row, said) if said else {} for row, said in zip(every, parts, strict=True)]
