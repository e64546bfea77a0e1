"""The tags that a trained model gives to the documents in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from longbird.applications.training.data.files import rows
from longbird.applications.training.engine.trained_model import load_trained
from longbird.applications.training.tasks.tag.rows import tagged
from longbird.applications.training.tasks.tag.task import Tag
from longbird.errors import InvalidValueError


def tag_files(
    model: str | Path,
    files: Iterable[str | Path],
    *,
    text: str | None = None,
    encoding: str | None = None,
    tokens_per_batch: int = 16384,
    say: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """For each document: its file, its line in a table, and its entities or its words with tags.

    Entities and words have their label, score, text, and first and last character (the end is
    beyond it). Where words are given, they are joined by spaces, and `text` is there too.

    Args:
        model: The folder of a run, or of a model.
        files: A text file is one document, a table has one in each row; one with a word in each
            line (.conll, .bio, .iob) has as many as blank lines divide.
        text: Column of the text or of the words.
        encoding: Of the files.
        tokens_per_batch: Tokens that the model runs over at once.
        say: Is told of a column that was guessed.

    Raises:
        ValueError: The model does not tag, or a file is not what its name says.
    """
    trained = load_trained(model)
    task = trained.task
    if not isinstance(task, Tag):
        raise InvalidValueError(f"{model} does not tag documents: it is for {task.head}")
    settings = trained.settings.overridden({"text": text, "encoding": encoding})
    examples = tagged(rows(files, settings.encoding), settings, say, labelled=False, text=text)
    found: list[dict[str, Any]] = []
    for example, prediction in trained.said_of(examples, tokens_per_batch):
        line = {"line": example["line"]} if example["line"] else {}
        words = {} if example["words"] is None else {"text": example["text"]}
        found.append({"file": example["file"], **line, **words, **task.answer(prediction)})
    return found
