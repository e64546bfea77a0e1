"""A question and its document as a model takes them: tokens, windows, and what is right."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from datasets import Dataset, concatenate_datasets

from longbird.applications.reading.model_inputs import (
    EncodedQuestion,
    encode,
    window_inputs,
)
from longbird.applications.reading.model_outputs import TYPES
from longbird.applications.reading.second_pass import first_pass_bonus, passages
from longbird.applications.training.tasks.ask.questions import Question

MENTIONS = 16
"""Places of an answer in a document that are learned from."""


def encoded(
    examples: list[dict[str, Any]], tokenizer: Any, length: int
) -> Iterator[tuple[Question, EncodedQuestion]]:
    """The questions with their tokens."""
    asked: list[Question] = [example["asked"] for example in examples]
    pairs = [(each.question, each.text) for each in asked]
    tokens = encode(pairs, [each.place for each in asked], tokenizer, length)
    return zip(asked, tokens, strict=True)


def window_to_learn(asked: Question, tokens: EncodedQuestion, length: int) -> range:
    """The window with most mentions of the answer, then most support, then the most central."""
    windows = tokens.windows(length)
    if len(windows) == 1:
        return windows[0]
    spans = [span for span in (tokens.tokens_of(*each) for each in asked.spans) if span]
    support = set(asked.support or ())
    marks = [
        place[0]
        for each in asked.sentences
        if (each.title, each.index) in support
        and (place := tokens.tokens_of(each.start, each.end))
    ]

    def worth(window: range) -> tuple[int, int, float]:
        inside = [span for span in spans if span[0] in window and span[1] in window]
        places = [*(low for low, _ in inside), *(mark for mark in marks if mark in window)]
        middle = (window.start + window.stop) / 2
        far = -abs(sum(places) / len(places) - middle) if places else 0.0
        return len(inside), sum(mark in window for mark in marks), far

    best = max(windows, key=worth)  # of equals the first
    size = len(windows[0])
    if spans and worth(best)[0] == 0 and spans[0][1] - spans[0][0] < size:
        # The answer is longer than what windows share: one of its own.
        start = min(max(spans[0][0], tokens.first), tokens.last - size)
        return range(start, start + size)
    return best


def features_of(
    asked: Question,
    tokens: EncodedQuestion,
    windows: Sequence[range],
    places: Sequence[tuple[int, int]],
) -> dict[str, Any]:
    """A question and its document, of which the model reads the windows.

    Args:
        asked: The question.
        tokens: Its own, and those of the document.
        windows: Tokens that are read together.
        places: Characters of the sentences: those of the file, if it has any.
    """
    spans = [span for span in (tokens.tokens_of(*each) for each in asked.spans) if span]
    spans = list(dict.fromkeys(spans)) or [(-1, -1)]  # an empty list would have no type
    named = [(each.title, each.index) for each in asked.sentences] or [None] * len(places)
    sentences = [
        (name, token[0])
        for name, place in zip(named, places, strict=True)
        if (token := tokens.tokens_of(*place))
    ]
    support = set(asked.support or ())
    gold = {"answers": asked.answers, "metric": asked.metric, "support": asked.support}
    return {
        "place": asked.place,
        "text": f"{asked.question}\n{asked.text}",
        "skipped": len(asked.question) + 1,
        "gold": json.dumps(gold),
        "names": json.dumps([name for name, _ in sentences if name is not None]),
        "tokens": len(tokens.ids),
        **tokens.row(asked.text),
        "windows": [[window.start, window.stop] for window in windows],
        "starts_of_mentions": [low for low, _ in spans],
        "ends_of_mentions": [high for _, high in spans],
        "answer_types": TYPES.index(asked.kind),
        "sentence_tokens": [token for _, token in sentences] or [-1],
        "sentence_support": [int(name in support) for name, _ in sentences] or [0],
    }


def inputs_of_window(row: Mapping[str, Any], part: int, rows: int | None) -> dict[str, Any]:
    """Return the inputs of a window; all but the document is global: the question.

    Args:
        row: The features of a question and its document.
        part: Number of the window.
        rows: Positions of the model, if they restart in every paragraph.
    """
    start, stop = row["windows"][part]
    first = row["first"]
    column = {token: first + token - start for token in range(start, stop)}
    mentions = [
        (column[low], column[high])
        for low, high in zip(row["starts_of_mentions"], row["ends_of_mentions"], strict=True)
        if low in column and high in column
    ][:MENTIONS]
    absent = [-1] * (MENTIONS - len(mentions))
    return {
        **window_inputs(row, start, stop, rows),
        "start_positions": [low for low, _ in mentions] + absent,
        "end_positions": [high for _, high in mentions] + absent,
        "answer_types": row["answer_types"],
        "sentence_support": row["sentence_support"],
    }


def best_passages(rows: Dataset, predictions: Sequence[Mapping[str, Any]]) -> Dataset | None:
    """Return the rows with the best passages of long documents as windows; None without any."""
    made: dict[str, list[Any]] = {"windows": [], "lengths": [], "worth": []}
    needed = ["paragraphs", "sentence_tokens", "windows", "lengths"]
    every: Any = rows.select_columns(needed)
    for row, found in zip(every, predictions, strict=True):
        start, stop = row["windows"][0]
        around = row["lengths"][0] - (stop - start)  # the question
        chosen = passages(row, found)
        made["windows"].append(chosen)
        made["worth"].append(first_pass_bonus(row, found, chosen))
        made["lengths"].append([around + stop - start for start, stop in chosen])
    if not any(made["windows"]):
        return None
    others = rows.remove_columns(["windows", "lengths"])
    return concatenate_datasets([others, Dataset.from_dict(made)], axis=1)
