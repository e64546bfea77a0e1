"""The summaries that a trained model writes of the documents in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from longbird.tasks.columns import NAMES, find_column
from longbird.tasks.files import rows
from longbird.tasks.summarize import Summarize, joined_text
from longbird.tasks.trained import load_trained


def summarize_files(
    model: str | Path,
    files: Iterable[str | Path],
    *,
    text: str | None = None,
    encoding: str | None = None,
    tokens_per_batch: int = 16384,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """For each document: its file, its line in a table, and its summary.

    Args:
        model: The folder of a run, or of a model.
        files: A text file is one document, a table has one in each row.
        text: Column of the text.
        encoding: Of the files.
        tokens_per_batch: Tokens that the model runs over at once.
        say: Is told of a column that was guessed, and of documents that are too long.

    Raises:
        ValueError: The model does not write, or a file is not what its name says.
    """
    trained = load_trained(model)
    task = trained.task
    if not isinstance(task, Summarize):
        raise ValueError(f"{model} does not summarize documents: it is for {task.head}")
    settings = trained.settings.overridden({"text": text, "encoding": encoding})
    columns: dict[Path, str] = {}

    def examples() -> Iterator[dict[str, Any]]:
        for row in rows(files, settings.encoding):
            if row.file not in columns:
                names = list(row.values)
                named = settings.text if settings.text in names else text
                able = names if named in names else without_summaries(names)
                columns[row.file] = find_column("text", named, able, say)
            value = joined_text(row.values.get(columns[row.file]), row, columns[row.file])
            where = {"place": row.place, "file": str(row.file), "line": row.line}
            yield {**where, "text": value}

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


def without_summaries(names: list[str]) -> list[str]:
    """The columns that can be the text; an abstract is one, if nothing else is.

    Examples:
        >>> without_summaries(["article", "abstract"]), without_summaries(["abstract", "id"])
        (['article'], ['abstract', 'id'])
    """
    others = [name for name in names if name.lower() not in NAMES["summary"]]
    return others if any(name.lower() in NAMES["text"] for name in others) else names
