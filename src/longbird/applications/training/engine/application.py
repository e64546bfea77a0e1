"""What a trained model says of documents in files: labels, tags or summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from longbird.applications.training.engine.trained_model import load_trained
from longbird.errors import InvalidValueError


def apply(
    task: str,
    model: str | Path,
    files: Iterable[str | Path],
    *,
    text: str | None = None,
    encoding: str | None = None,
    tokens_per_batch: int = 16384,
    say: Callable[[str], None] = print,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Apply a model to each document in files.

    Args:
        task: Name of the task that the model must be for.
        model: Folder of a run or of a model.
        files: A text file is one document, a table has one in each row.
        text: Column of the text.
        encoding: Encoding of the files.
        tokens_per_batch: Maximum number of tokens per batch.
        say: Function that is called with each message.

    Returns:
        The answers, with the file and the line of each document, and the answers as text.

    Raises:
        ValueError: The model is for another task, or a file has unexpected content.
    """
    trained = load_trained(model)
    own = trained.task
    if own.name != task:
        raise InvalidValueError(f"{model} does not {task} documents: it is for {own.head}")
    settings = trained.settings.overridden({"text": text, "encoding": encoding})
    documents = own.documents(own.rows(files, settings), settings, say, text)
    found: list[dict[str, Any]] = []
    texts: list[str] = []
    for example, prediction in trained.said_of(documents, tokens_per_batch):
        if example["tokens"] > trained.length and own.cuts_long_documents:
            say(
                f"{example['place']} has {example['tokens']:,} tokens; the first "
                f"{trained.length:,} were read"
            )
        line = {"line": example["line"]} if example["line"] else {}
        answer = own.answer(prediction)
        found.append({"file": example["file"], **line, **example.get("shown", {}), **answer})
        texts.append(own.as_text(answer))
    return found, texts
