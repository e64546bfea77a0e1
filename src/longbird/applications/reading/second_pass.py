"""Choosing the passages that are read a second time, each alone.

Among many paragraphs, a small model finds the one that has the answer more reliably than the
first and the last word of the answer, which it finds well in a single paragraph. So the first
pass over the whole document decides which passages matter, and the second what the answer is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PASSAGES = 8
"""Maximum number of passages, which take about a quarter of the time of 4,096 tokens. On the
validation questions of HotpotQA, F1 was 28 with one pass, 33 with one passage in a second pass,
38 with five and 40 with eight; on articles of SQuAD 55, 65, 66 and 66."""
PRIOR = 0.2
"""Weight of the logits of the first pass among those of the second, which has not seen the rest
of the document: it adds two points of F1 on HotpotQA and on articles. A weight of 1 was worse
than none."""
LEAST = 6
"""Number of tokens below which a paragraph, such as a heading, is read with its neighbours. Of 71
questions about lists, forms and minutes with blank lines between short items, 44 were right with
24, 54 with 6 and 57 with 1, which however reads headings alone. With 64, which joins paragraphs
of HotpotQA, a second pass added 2 points of F1 instead of 7."""
MOST = 384
"""Maximum number of tokens; of a longer paragraph, the part around the sentence is read."""

AGAIN = 0.7
"""Weight of the second pass for a sentence that both passes have read. On 110 validation
questions of HotpotQA, F1 of supporting sentences was 41 with the first pass alone, 48 with a
weight of 0.5, 50 with this and 49 with the second pass alone."""
UNREAD = -1e4
"""Logits below this belong to sentences that no window has."""


def passages(row: Mapping[str, Any], found: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return the first token of each passage to read again, and the token after its last.

    The first passage has the best span, and the others the sentences that support an answer
    most. There are none if the document is one short paragraph.

    Args:
        row: The document: the `windows` that were read, `paragraphs` and `sentence_tokens`.
        found: The answer of the first pass, from `model_outputs.join`.

    Examples:
        >>> row = {"windows": [(10, 810)], "paragraphs": [10, 210, 510, 520]}
        >>> row["sentence_tokens"] = [10, 210, 300, 520]
        >>> found = {"span": {"token": 305}, "sentences": [-3.0, -1.0, -2.0, -4.0]}
        >>> passages(row, found)
        [(210, 510), (10, 210), (520, 810)]
    """
    (begin, first_end), (_, end) = row["windows"][0], row["windows"][-1]
    most = min(MOST, first_end - begin)  # the model may read less at once
    paragraphs = [begin, *(each for each in row["paragraphs"] if begin < each < end)]
    if end - begin <= most and len(paragraphs) == 1:
        return []
    chosen: list[tuple[int, int]] = []
    for token in _candidates(row, found):
        if len(chosen) == PASSAGES:
            break
        known = any(start <= token < stop for start, stop in chosen)
        if begin <= token < end and not known:
            chosen.append(_around(token, paragraphs, end, most))
    return chosen


def first_pass_bonus(
    row: Mapping[str, Any], found: Mapping[str, Any], chosen: Sequence[tuple[int, int]]
) -> list[float]:
    """Return what the first pass adds to the logits of each passage, by its best sentence.

    Examples:
        >>> found = {"sentences": [-3.0, 4.0, 2.0]}
        >>> first_pass_bonus(
        ...     {"sentence_tokens": [10, 60, 90]}, found, [(50, 100), (10, 50), (0, 5)]
        ... )
        [0.8, -0.6, 0.0]
    """
    known = list(zip(row["sentence_tokens"], found["sentences"], strict=False))
    inside = ([logit for token, logit in known if start <= token < stop] for start, stop in chosen)
    return [round(PRIOR * max(logits, default=0.0), 6) for logits in inside]


def _candidates(row: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[int]:
    """Yield the tokens around which to read, the most important first."""
    if found["span"] is not None:
        yield found["span"]["token"]
    pairs = zip(found["sentences"], row["sentence_tokens"], strict=False)
    for _, token in sorted(pairs, key=lambda pair: -pair[0]):
        yield token


def _around(token: int, paragraphs: Sequence[int], end: int, most: int) -> tuple[int, int]:
    """Return the passage around a token: its paragraph, a part of it, or several paragraphs."""
    number = bisect_right(paragraphs, token) - 1
    ends = [*paragraphs[1:], end]
    low = high = number  # paragraphs of the passage
    while ends[high] - paragraphs[low] < LEAST:
        if high + 1 < len(ends) and ends[high + 1] - paragraphs[low] <= most:
            high += 1
        elif low > 0 and ends[high] - paragraphs[low - 1] <= most:
            low -= 1
        else:
            break
    start, stop = paragraphs[low], ends[high]
    if stop - start > most:
        start = min(max(start, token - most // 2), stop - most)
        stop = start + most
    return start, stop


def combined_passes(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Combine the answers of both passes; the first one is kept as `first`.

    The second pass decides where the answer is, and has more weight for the sentences that it
    has read. The first pass decides on the type of the answer, which may depend on several
    paragraphs.

    Examples:
        >>> first = {"types": None, "sentences": [2.0, -1.0]}
        >>> second = {"span": None, "beside": None, "there": None, "ahead": 0.0}
        >>> combined_passes(first, {**second, "sentences": [4.0, UNREAD]})["sentences"]
        [3.4, -1.0]
    """
    chosen = {name: second[name] for name in ("span", "beside", "there", "ahead")}
    pairs = zip(first["sentences"], second["sentences"], strict=True)
    both = [
        before if again <= UNREAD else round((1 - AGAIN) * before + AGAIN * again, 6)
        for before, again in pairs
    ]
    return {**first, **chosen, "sentences": both, "first": dict(first)}
