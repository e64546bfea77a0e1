"""One reader, and several ways to read a document of more than 512 tokens with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from datasets import Dataset

from experiments.framework.experiment import Attempt, Contestant, Outcome
from experiments.quality.documents import Row, write_rows
from longbird.applications.documents.windows import question_windows
from longbird.applications.reading.default_reader import default_reader, shipped_name
from longbird.applications.training.data.token_store import features_of
from longbird.applications.training.engine.prediction import predict
from longbird.applications.training.engine.trained_model import Trained, load_trained
from longbird.applications.training.tasks.ask.task import Ask
from longbird.applications.training.tasks.task import Example, Prediction
from longbird.core.graph import Full

Window = tuple[int, int]
"""The first token that is read, and the one behind the last."""
SHORT = 512
"""Tokens of what BERT reads at once, with the question."""
TOKENS_AT_ONCE = 8192


@dataclass(frozen=True)
class Way:
    """A way to read.

    Attributes:
        name: Name of the contestant.
        about: Description in one sentence.
        windows: `windows(number, features)` returns the windows that are read separately; the best
            answer of all windows counts.
        options: Options for loading the reader.
        twice: Whether the best passages are read again, as in `longbird ask`.
    """

    name: str
    about: str
    windows: Callable[[int, Row], Sequence[Window]]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    twice: bool = True


def of_size(size: int) -> Callable[[int, Row], list[Window]]:
    """Windows of `size` tokens including the question, which overlap as in `longbird ask`."""

    def of(number: int, row: Row) -> list[Window]:
        around = len(row["input_ids"]) - (row["last"] - row["first"])
        return question_windows(row["first"], row["last"], size - around)

    return of


def first_of(size: int) -> Callable[[int, Row], list[Window]]:
    """The first `size` tokens, including the question."""
    return lambda number, row: of_size(size)(number, row)[:1]


def paragraphs(number: int, row: Row) -> list[Window]:
    """Each paragraph separately."""
    begins = row["paragraphs"]
    return list(zip(begins, [*begins[1:], row["last"]], strict=True))


def one_paragraph(chosen: Sequence[int]) -> Callable[[int, Row], list[Window]]:
    """The paragraph that was chosen for a question."""
    return lambda number, row: [paragraphs(number, row)[chosen[number]]]


def whole(length: int) -> Way:
    """Everything at once, along the reader's own graph, and the best passages again."""
    return Way(
        "whole",
        f"up to {length:,} tokens at once, through the graph that it was trained with, and the "
        "best passages again, as `longbird ask` reads",
        of_size(length),
    )


def ways(length: int) -> list[Way]:
    """Return the ways that can read any document."""
    chunks = f"chunks of {SHORT} tokens with the question, a quarter shared"
    return [
        whole(length),
        Way("whole, once", "as whole, without a second look", of_size(length), twice=False),
        Way("first 512", f"the first {SHORT} tokens, as BERT would", first_of(SHORT)),
        Way("chunks", f"{chunks}, and the best passages of all again", of_size(SHORT)),
        Way("chunks, once", f"{chunks}, and the best answer of all counts", of_size(SHORT),
            twice=False),
        Way(
            "dense",
            f"up to {length:,} tokens at once, every token seeing all: the same weights, which "
            "were trained with the graph",
            of_size(length),
            {"graph": Full()},
        ),
        Way("int8", "as whole, with weights in bytes", of_size(length), {"quantize": "int8"}),
    ]  # fmt: skip


def contestant(
    way: Way,
    attempt: Callable[[Attempt], Outcome],
    sizes: Mapping[str, Any],
    published: Mapping[str, float] | None = None,
) -> Contestant:
    """Return the included reader with one way to read; nothing is random, so it runs once."""
    settings = {
        "sizes": sizes, "options": way.options, "twice": way.twice, "reader": shipped_name(),
    }  # fmt: skip
    return Contestant(
        way.name, way.about, attempt, settings, seeded=False, published=published or {}
    )


def load(way: Way) -> tuple[Trained, Ask]:
    """Load the included reader for one way to read, such that every question has an answer."""
    reader = load_trained(default_reader(), **way.options)
    task = reader.task
    assert isinstance(task, Ask)
    task.no_answer, task.twice = None, way.twice
    return reader, task


def read(
    reader: Trained, rows: Sequence[Row], way: Way, scratch: Path, say: Callable[[str], None]
) -> tuple[list[Example], list[Prediction]]:
    """Return the answers of a reader.

    Args:
        reader: The model with its task.
        rows: Questions in HotpotQA's format.
        way: How their documents are read.
        scratch: Folder for temporary files.
        say: Receives messages about the progress.
    """
    task, settings = reader.task, reader.settings
    file = write_rows(scratch / "questions.jsonl", rows)
    examples = task.examples(task.rows([file], settings), settings, lambda _: None)
    features: list[dict[str, Any]] = []
    for number, each in enumerate(features_of(task, examples, reader.tokenizer, reader.length)):
        chosen = {**each, "windows": [list(window) for window in way.windows(number, each)]}
        features.append({**chosen, "lengths": [int(x) for x in task.lengths(chosen)]})
    tokens = sum(sum(each["lengths"]) for each in features)
    say(f"{len(rows):,} questions, {tokens:,} tokens to read")
    table = Dataset.from_list(features)
    said = predict(reader.model, task, table, reader.tokenizer, TOKENS_AT_ONCE)
    return cast(list[Example], list(table.remove_columns([*task.on_disk]))), [*said]
