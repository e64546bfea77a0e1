"""What a model says of a question and a document: the best span, its type, what supports it."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

TYPES = ("span", "yes", "no", "none")
"""What an answer is: words of the document, yes, no, or that there is none."""
SPAN, NONE = TYPES.index("span"), TYPES.index("none")


def said(
    outputs: Any, batch: Mapping[str, Tensor], longest: int, typed: bool, supported: bool
) -> list[dict[str, Any]]:
    """Of each window of a batch: its best span, the logits of the types, and those of sentences.

    Args:
        outputs: Of `LongbirdForQuestionAnswering`.
        batch: Its inputs, with all but the document global.
        longest: Tokens of the longest answer.
        typed: Does the model tell types of answers apart?
        supported: Does it say which sentences support them?
    """
    text = batch["attention_mask"] > 0
    possible = text & (batch["global_attention_mask"] == 0)
    begins = batch["paragraph_positions"]  # [rows, paragraphs], -1 for none
    marks = torch.zeros_like(text, dtype=torch.long)
    paragraph = marks.scatter_add(1, begins.clamp(min=0), (begins >= 0).long()).cumsum(1)
    padding = text.int().argmax(1)  # before the text
    start, end = outputs.start_logits.float(), outputs.end_logits.float()
    low, high, logit, chance = (
        x.tolist() for x in best_spans(start, end, possible, paragraph, longest)
    )
    rows, before = len(text), padding.tolist()
    types = outputs.answer_type_logits.float().tolist() if typed else [None] * rows
    sentences = outputs.sentence_logits.float().tolist() if supported else [None] * rows
    return [
        {
            "tokens": (low[row] - before[row], high[row] - before[row]),
            "logit": logit[row],
            "chance": chance[row],
            "types": types[row],
            "sentences": sentences[row],
        }
        for row in range(rows)
    ]


def join(
    row: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], typed: bool, supported: bool
) -> dict[str, Any]:
    """What was said of the windows of a document as one answer.

    The best span is that of highest logit, where the type is likely to be a span, and in a window
    of `worth`, if the row has that. An answer in any window is an answer; that there is none must
    be so in all of them. `beside` is the logit that the sentence of the span supports it, `there`
    are the types of its window, and `ahead` is by how much it beats the spans of other windows.
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
        words, chance = text[start:end], best["chance"]
        span = {"text": words, "start": start, "end": end, "token": low, "chance": chance}
        span["logit"] = best["logit"]
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
    r"""The end of a span with the marks of its last letter, which tokenizers leave out.

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
    """The best span of each row: its first and last token, its logit and its probability.

    No answer goes on in the next paragraph.

    Args:
        start: Logits, [rows, n].
        end: The same.
        possible: Where an answer can be, bool [rows, n].
        paragraph: The number of each token's paragraph, [rows, n].
        longest: Tokens that an answer can have.
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
    """The type of the best answer, whether or not there is one."""
    if found["types"] is None:
        return "span"
    return TYPES[int(np.argmax(found["types"][:NONE]))]


def margin(types: Sequence[float]) -> float:
    """By how much the logit of no answer exceeds that of the best answer."""
    return types[NONE] - max(types[:NONE])


def log_softmax(logits: Sequence[float]) -> np.ndarray:
    """Log-probabilities."""
    return np.asarray(logits) - np.logaddexp.reduce(logits)
