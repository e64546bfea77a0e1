"""The labels that a trained model gives to the documents in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from datasets import Dataset

from longbird.tasks.classify import Classify, as_text
from longbird.tasks.columns import find_column
from longbird.tasks.documents import features_of
from longbird.tasks.files import Row, rows
from longbird.tasks.predict import predict
from longbird.tasks.trained import load_trained

AT_ONCE = 256
"""Documents that are read before the model runs."""


def classify_files(
    model: str | Path,
    files: Iterable[str | Path],
    *,
    text: str | None = None,
    encoding: str | None = None,
    tokens_per_batch: int = 16384,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """For each document: its file, its line in a table, its label and the scores of all labels.

    Args:
        model: The folder of a run, or of a model.
        files: A text file is one document, a table has one in each row.
        text: Column of the text.
        encoding: Of the files.
        tokens_per_batch: Tokens that the model runs over at once.
        say: Is told of a column that was guessed, and of documents that are too long.

    Raises:
        ValueError: The model does not classify, or a file is not what its name says.
    """
    trained = load_trained(model)
    task = trained.task
    if not isinstance(task, Classify):
        raise ValueError(f"{model} does not classify documents: it is for {task.head}")
    settings = trained.settings.overridden({"text": text, "encoding": encoding})
    found: list[dict[str, Any]] = []
    waiting: list[Row] = []
    column: dict[Path, str] = {}

    def run() -> None:
        examples = [
            {
                "place": row.place,
                "text": as_text(row.values[column[row.file]], row, "text"),
                "label": [],
            }
            for row in waiting
        ]
        features = list(features_of(task, examples, trained.tokenizer, trained.length))
        for row, each in zip(waiting, features, strict=True):
            if each["tokens"] > trained.length:
                say(
                    f"{row.place} has {each['tokens']:,} tokens; the first {trained.length:,} "
                    "were read"
                )
        said = predict(
            trained.model, task, Dataset.from_list(features), trained.tokenizer, tokens_per_batch
        )
        for row, prediction in zip(waiting, said, strict=True):
            line = {"line": row.line} if row.line else {}
            found.append({"file": str(row.file), **line, **task.answer(prediction)})
        waiting.clear()

    for row in rows(files, settings.encoding):
        if row.file not in column:
            names = list(row.values)
            named = settings.text if settings.text in names else text
            column[row.file] = find_column("text", named, names, say)
        waiting.append(row)
        if len(waiting) == AT_ONCE:
            run()
    if waiting:
        run()
    return found
