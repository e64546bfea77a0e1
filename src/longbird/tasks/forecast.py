"""What a run is going to do, before it does: documents, lengths, time and memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from datasets import Dataset

from longbird.machine import available_bytes, in_words
from longbird.tasks.batches import Batch, TokenBatches
from longbird.tasks.documents import Collator, Documents, without_bookkeeping
from longbird.tasks.numbers import numbers_of
from longbird.tasks.settings import Settings
from longbird.tasks.task import Task

BARS = " ▁▂▃▄▅▆▇█"
SAMPLE = 2048
"""Tokens of the pass that is timed."""


def forecast(
    model: Any, task: Task, tokenizer: Any, parts: Mapping[str, Dataset], settings: Settings
) -> Iterator[str]:
    """Lines that say what a run is going to do.

    Raises:
        ValueError: A step would not fit into memory; says what would help.
    """
    for part, documents in parts.items():
        tokens = numbers_of(documents, "tokens")
        yield (
            f"{part}: {len(tokens):,} {task.rows_are} of {int(np.median(tokens)):,} tokens "
            f"(median; {tokens.min():,} to {tokens.max():,}), {tokens.sum():,} in all"
        )
        yield f"  lengths {histogram(tokens)}"
        yield from task.about(documents, settings.length)
    documents = Documents(task, parts["train"])
    lengths = documents.lengths
    batches = TokenBatches(
        lengths, settings.tokens_per_batch, settings.seed, anew=task.new_batches
    ).batches
    per_epoch = -(-len(batches) // settings.accumulate)
    steps = settings.steps or int(np.ceil(settings.epochs * per_epoch))
    yield (
        f"{steps:,} steps of up to {settings.tokens_per_batch:,} tokens, {per_epoch:,} an epoch"
        + (f", each of {settings.accumulate} batches" if settings.accumulate > 1 else "")
    )
    sample = _sample(lengths)
    seconds, kept = _rehearse(model, task, tokenizer, documents, sample)
    ran = sum(lengths[number] for number in sample)
    largest = max(sum(lengths[number] for number in batch) for batch in batches)
    largest, ran_at_once = task.tokens_kept(largest), task.tokens_kept(ran)
    learned = sum(p.numel() for p in model.parameters() if p.requires_grad)
    weights = 4 * sum(p.numel() for p in model.parameters()) + 12 * learned
    layers = model.config.num_hidden_layers
    of_a_step = kept * largest / ran_at_once / (layers if settings.gradient_checkpointing else 1)
    needed = int(weights + of_a_step)
    yield (
        f"about {_time(seconds * sum(lengths) / ran)} for an epoch, "
        f"{_time(seconds * sum(lengths) / ran * steps / per_epoch)} in all, "
        f"and {in_words(needed)} of memory"
    )
    free = available_bytes()
    if needed > free:
        advice = ["a smaller --tokens-per-batch with --accumulate"]
        if not settings.gradient_checkpointing:
            advice.insert(0, "--gradient-checkpointing")
        raise ValueError(
            f"a step would take about {in_words(needed)}, and {in_words(free)} are free: try "
            f"{' or '.join(advice)}"
        )


def histogram(tokens: np.ndarray, bars: int = 24) -> str:
    """Lengths as a row of bars, from the shortest to the longest, by powers.

    Examples:
        >>> histogram(np.array([10, 20, 20, 1000]), bars=3)
        '10 █ ▃ 1,000'
    """
    low, high = max(1, tokens.min()), max(2, tokens.max())
    edges = np.geomspace(low, high + 1, bars + 1)
    counts, _ = np.histogram(np.maximum(tokens, low), edges)
    marks = "".join(BARS[-(-int(count) * 8 // max(1, counts.max()))] for count in counts)
    return f"{low:,} {marks} {high:,}"


def _sample(lengths: list[int]) -> list[int]:
    """A few documents with about `SAMPLE` tokens."""
    chosen, tokens = [], 0
    for number in np.random.default_rng(0).permutation(len(lengths)).tolist():
        chosen.append(number)
        tokens += lengths[number]
        if tokens >= SAMPLE:
            break
    return chosen


def _rehearse(
    model: Any, task: Task, tokenizer: Any, documents: Documents, sample: list[int]
) -> tuple[float, int]:
    """Seconds of a forward and backward pass, and the bytes kept between the two."""
    collate = Collator(task, tokenizer)
    batch = without_bookkeeping(collate(documents.__getitems__(Batch(sample, epoch=0))))
    kept: dict[int, int] = {}

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    model.train()
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    seconds = []
    for _ in range(2):  # the first is slower than those after it
        started = time.perf_counter()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            loss = task.loss(task.run(model, batch), batch, None)
        loss.backward()
        seconds.append(time.perf_counter() - started)
        model.zero_grad()
    return min(seconds), sum(size for at, size in kept.items() if at not in parameters) // 2


def _time(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
