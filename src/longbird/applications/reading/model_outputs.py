"""Answers from the outputs of a model: the best span, its type, and supporting sentences."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

TYPES = ("span", "yes", "no", "none")
"""Types of answers: words of the document, yes, no, or no answer."""
SPAN, NONE = TYPES.index("span"), TYPES.index("none")


def window_outputs(
    outputs: Any, batch: Mapping[str, Tensor], longest: int, typed: bool, supported: bool
) -> list[dict[str, Any]]:
    """Return the best span, the logits of types and those of sentences for each window.

    In `batch`, the inputs, every token outside of the document is global. A span has at most
    `longest` tokens. Some models do not predict types (`typed`) or sentences (`supported`).
    """
    text = batch["attention_mask"] > 0
    possible = text & (batch["global_attention_mask"] == 0)
    begins = batch["paragraph_positions"]  # [rows, paragraphs], -1 for none
    marks = torch.zeros_like(text, dtype=torch.long)
    paragraph = marks.scatter_add(1, begins.clamp(min=0), (begins >= 0).long()).cumsum(1)
    start, end = outputs.start_logits.float(), outputs.end_logits.float()
    low, high, logit, chance = best_spans(start, end, possible, paragraph, longest)
    padding = text.int().argmax(1)  # before the text
    none = [None] * len(text)
    columns = {
        "tokens": torch.stack([low - padding, high - padding], 1).tolist(),
        "logit": logit.tolist(),
        "chance": chance.tolist(),
        "types": outputs.answer_type_logits.float().tolist() if typed else none,
        "sentences": outputs.sentence_logits.float().tolist() if supported else none,
    }
    return [{name: column[row] for name, column in columns.items()} for row in range(len(text))]


def join(
    row: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], typed: bool, supported: bool
) -> dict[str, Any]:
    """Combine the outputs for the windows of a document into one answer.

    The best span is the one with the highest logit, to which the log-probability of the type
    "span" in its window is added, and the value of `worth`, if the row has it. There is no answer
    only if no window has one.

    Returns:
        The `span`, the logits of `types` and `sentences`; `beside`, the logit that the sentence
        of the span supports it; `there`, the types in its window; and `ahead`, the difference to
        the best span of another window.
    """
    worth = row.get("worth") or [0.0] * len(parts)
    spans = [
        part["logit"] + more + (0.0 if part["types"] is None else log_softmax(part["types"])[SPAN])
        for part, more in zip(parts, worth, strict=True)
    ]
    at = int(np.argmax(spans))
    best, span, beside, ahead = parts[at], None, None, 0.0
    sentences = row["sentence_tokens"]
    logits: list[float] = []
    if supported:
        logits = np.max([part["sentences"][: len(sentences)] for part in parts], 0).tolist()
    if best["logit"] > -np.inf:
        (begin, _), first = row["windows"][at], row["first"]
        low, high = (token - first + begin for token in best["tokens"])
        text = row["text"][row["skipped"] :]
        start, end = row["starts"][low], with_accents(text, row["ends"][high])
        span = {"text": text[start:end], "start": start, "end": end, "token": low}
        span |= {"chance": best["chance"], "logit": best["logit"]}
        number = bisect_right(sentences, low) - 1
        beside = logits[number] if supported and number >= 0 else None
        ahead = spans[at] - max(spans[:at] + spans[at + 1 :], default=spans[at])
    types = None
    if typed:
        every = np.array([part["types"] for part in parts])
        types = [*every[:, :NONE].max(0).tolist(), float(every[:, NONE].min())]
    return {
        "span": span,
        "types": types,
        "sentences": logits,
        "beside": beside,
        "there": best["types"],
        "ahead": ahead,
    }


def with_accents(text: str, end: int) -> int:
    r"""Return the end of a span including the marks of its last letter, which tokenizers omit.

    Examples:
        >>> with_accents("cafe\u0301s", 4)
        5
    """
    while unicodedata.category(text[end : end + 1] or " ").startswith("M"):
        end += 1
    return end


def best_spans(
    start: Tensor, end: Tensor, possible: Tensor, paragraph: Tensor, longest: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the best span of each row: first and last token, logit and probability.

    A span has at most `longest` tokens, all `possible` and in one `paragraph`; `start` and `end`
    are the logits of its first and its last token. All tensors are of shape [rows, n].
    """
    start = start.masked_fill(~possible, -torch.inf)
    end = end.masked_fill(~possible, -torch.inf)
    rows, n = start.shape
    best = torch.full((rows,), -torch.inf, device=start.device)
    low, high = torch.zeros_like(best, dtype=torch.long), torch.zeros_like(best, dtype=torch.long)
    for more in range(min(longest, n)):
        torn = paragraph[:, : n - more] != paragraph[:, more:]
        logits = (start[:, : n - more] + end[:, more:]).masked_fill(torn, -torch.inf)
        value, at = logits.max(1)
        better = value > best
        best = torch.where(better, value, best)
        low, high = torch.where(better, at, low), torch.where(better, at + more, high)
    return low, high, best, (best - start.logsumexp(1) - end.logsumexp(1)).exp()


def best_answer(found: Mapping[str, Any]) -> str:
    """Return the type of the best answer, whether or not it is likely."""
    if found["types"] is None:
        return "span"
    return TYPES[int(np.argmax(found["types"][:NONE]))]


def margin(types: Sequence[float]) -> float:
    """Return by how much the logit of no answer exceeds that of the best answer."""
    return types[NONE] - max(types[:NONE])


def log_softmax(logits: Sequence[float]) -> np.ndarray:
    """Return log-probabilities."""
    return np.asarray(logits) - np.logaddexp.reduce(logits)
