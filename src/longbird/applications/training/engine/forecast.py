"""What a run is going to do, before it does: documents, lengths, time and memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from datasets import Dataset

from longbird.analysis.plan import plan
from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.data.batches import Batch, TokenBatches
from longbird.applications.training.data.token_store import (
    Collator,
    DocumentDataset,
    without_bookkeeping,
)
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.tasks.task import Task
from longbird.core.machine import available_bytes, in_words, peak_memory
from longbird.errors import InvalidValueError

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
    documents = DocumentDataset(task, parts["train"])
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
    ran = sum(lengths[number] for number in sample)
    seconds, resident, of_sample = _rehearse(model, task, tokenizer, documents, sample, settings)
    largest = max(sum(lengths[number] for number in batch) for batch in batches)
    at_once, ran_at_once = task.tokens_kept(largest), task.tokens_kept(ran)
    learned = 4 * sum(p.numel() for p in model.parameters() if p.requires_grad)
    # What a pass takes grows with its tokens; gradients and AdamW's two means of them do not.
    more = int(max(of_sample - learned, 0) * at_once / ran_at_once + 3 * learned)
    epoch = seconds * sum(lengths) / ran + _beyond(model.config, lengths, sample)
    yield (
        f"training takes about {_time(epoch)} an epoch and {_time(epoch * steps / per_epoch)} in "
        f"all, beside evaluations, and {in_words(resident + more)} of memory"
    )
    free = available_bytes()
    if more > free:
        advice = ["a smaller `tokens_per_batch` with `accumulate`"]
        if not settings.gradient_checkpointing:
            advice.insert(0, "`gradient_checkpointing`")
        raise InvalidValueError(
            f"a step would take about {in_words(more)}, and {in_words(free)} are free: try "
            f"{' or '.join(advice)}"
        )
    if not settings.gradient_checkpointing:
        yield f"gradient checkpointing is not needed: {in_words(free)} are free"


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
    model: Any,
    task: Task,
    tokenizer: Any,
    documents: DocumentDataset,
    sample: list[int],
    settings: Settings,
) -> tuple[float, int, int]:
    """Seconds of a forward and backward pass, bytes before it, and those that it takes more."""
    collate = Collator(task, tokenizer)
    batch = without_bookkeeping(collate(documents.__getitems__(Batch(sample, epoch=0))))
    if settings.gradient_checkpointing:
        model.gradient_checkpointing_enable()  # as Trainer does
    model.train()
    seconds, saved = [], 0
    with peak_memory() as memory:
        for _ in range(2):  # the first is slower than those after it
            kept = {p.untyped_storage().data_ptr(): 0 for p in model.parameters()}

            def keep(x: torch.Tensor, kept: dict[int, int] = kept) -> torch.Tensor:
                kept.setdefault(x.untyped_storage().data_ptr(), x.untyped_storage().nbytes())
                return x

            started = time.perf_counter()
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
                loss = task.loss(task.run(model, batch), batch, None)
            loss.backward()
            seconds.append(time.perf_counter() - started)
            model.zero_grad()
            saved = sum(kept.values())
    learned = 4 * sum(p.numel() for p in model.parameters() if p.requires_grad)
    # Where the system does not tell, what was kept for the backward pass, and the gradients.
    return min(seconds), memory.before, memory.more or saved + learned


def _beyond(config: Any, lengths: list[int], sample: list[int]) -> float:
    """Seconds that attention takes longer in an epoch than in proportion to the tokens.

    `longbird.plan` knows them: nothing for most graphs, but `Full` takes four times as long for
    a document twice as long as those of the sample.
    """
    known, longest = max(lengths[number] for number in sample), max(lengths)
    if longest < 2 * known:
        return 0.0
    try:
        short, long = (plan(config, n, backward=True).seconds for n in (known, longest))
    except (TypeError, ValueError):  # a graph that would take long to count
        return 0.0
    power = np.log(long / short) / np.log(longest / known)
    longer = np.array([length for length in lengths if length > known]) / known
    return float(max(0.0, short * (longer**power - longer).sum()))


def _time(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
