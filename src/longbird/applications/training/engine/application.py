"""What a trained model says of whole documents in files: their labels, or their summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from longbird.applications.training.data.columns import find_column, value_of
from longbird.applications.training.data.files import rows
from longbird.applications.training.engine.trained_model import load_trained
from longbird.applications.training.tasks.task import Task
from longbird.errors import InvalidValueError


def apply(
    kind: type[Task],
    model: str | Path,
    files: Iterable[str | Path],
    *,
    text: str | None = None,
    encoding: str | None = None,
    tokens_per_batch: int = 16384,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """For each document: its file, its line in a table, and what the model says of it.

    Args:
        kind: The task that the model must be for.
        model: The folder of a run, or of a model.
        files: A text file is one document, a table has one in each row.
        text: Column of the text.
        encoding: Of the files.
        tokens_per_batch: Tokens that the model runs over at once.
        say: Is told of a column that was guessed, and of documents that are too long.

    Raises:
        ValueError: The model is for another task, or a file is not what its name says.
    """
    trained = load_trained(model)
    task = trained.task
    if not isinstance(task, kind):
        raise InvalidValueError(f"{model} does not {kind.name} documents: it is for {task.head}")
    settings = trained.settings.overridden({"text": text, "encoding": encoding})
    columns: dict[Path, str] = {}

    def examples() -> Iterator[dict[str, Any]]:
        for row in rows(files, settings.encoding):
            if row.file not in columns:
                names = list(row.values)
                named = settings.text if settings.text in names else text
                able = names if named in names else task.text_columns(names)
                columns[row.file] = find_column("text", named, able, say)
            column = columns[row.file]
            content = value_of(row, column)
            if isinstance(content, str) and not content.strip():
                say(f"{row.place} has no text")
            where = {"place": row.place, "file": str(row.file), "line": row.line}
            yield {**where, **task.unanswered(content, row, column)}

    found: list[dict[str, Any]] = []
    for example, prediction in trained.said_of(examples(), tokens_per_batch):
        if example["tokens"] > trained.length:
            say(
                f"{example['place']} has {example['tokens']:,} tokens; the first "
                f"{trained.length:,} were read"
            )
        line = {"line": example["line"]} if example["line"] else {}
        found.append({"file": example["file"], **line, **task.answer(prediction)})
    return found
