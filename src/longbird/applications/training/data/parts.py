"""The parts of a run's data: train, validation and test, from files or held out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from datasets import Dataset

from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.data.files import fingerprint, left_out
from longbird.applications.training.data.token_store import cache_key, stored
from longbird.applications.training.engine.processes import processes
from longbird.applications.training.engine.run_folder import RunFolder, read_json, write_text
from longbird.applications.training.initialisation.starting_model import model_fingerprint
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.tasks.task import Task
from longbird.errors import InvalidValueError

PARTS = ("train", "validation", "test")


def read_parts(
    task: Task, settings: Settings, tokenizer: Any, folder: RunFolder, say: Callable[[str], None]
) -> tuple[dict[str, Dataset], dict[str, Any]]:
    """The documents by part, and what is known about the files.

    Raises:
        ValueError: A file has changed since the run began, or is not what it should be.
    """
    given = settings.files()
    files, model = check_unchanged(settings, folder)
    for line in _about_files(given, files):
        say(line)

    source = task.source(settings, say)
    task.learn(source.examples_to_learn())
    division = source.divide()
    key = cache_key(files, asdict(settings), tokenizer.backend_tokenizer.to_str())

    def part_of(part: str) -> Dataset:
        file, training = folder.cache / f"{part}-{key}.arrow", part == "train"
        return stored(task, source.examples(part), tokenizer, settings.length, file, training)

    parts = {part: part_of(part) for part in PARTS if part in source.parts()}
    for part, documents in parts.items():
        if len(documents) == 0:
            raise InvalidValueError(
                f"there are no documents for {part}: give more files, or larger ones"
            )
    data = {
        "files": files,
        "documents": {part: len(documents) for part, documents in parts.items()},
        "tokens": {part: int(numbers_of(x, "tokens").sum()) for part, x in parts.items()},
        "model": model,
        **division,
        "notes": task.notes(),
    }
    if not folder.data.exists() and processes().is_main_process:
        write_text(folder.data, json.dumps(data, indent=1))
    return parts, data


def check_unchanged(
    settings: Settings, folder: RunFolder
) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """The sha256 of all files by part, and of those of the model.

    Raises:
        ValueError: A file is not what it was when the run began.
    """
    given = settings.files()
    files = {part: fingerprint(paths) for part, paths in given.items() if paths}
    model = model_fingerprint(settings)
    if folder.data.exists():
        data = read_json(folder.data)
        before, now = {**data["files"]}, {**files}
        if not folder.start.exists():  # a model that was made longer is there, with its tokenizer
            before["model"], now["model"] = data.get("model", {}), model
        for part, hashes in before.items():
            _compare(hashes, now.get(part, {}))
    return files, model


def _compare(before: dict[str, str], now: dict[str, str]) -> None:
    for file in sorted({*before, *now}):
        if before.get(file) != now.get(file):
            what = "is not what it was when the run began (its sha256 differs)"
            if file not in before:
                what = "is new since the run began"
            elif file not in now:
                what = "is gone since the run began"
            raise InvalidValueError(
                f"{file} {what}: begin a new run with another `out`, or put the files back as "
                "they were"
            )


def _about_files(
    given: dict[str, tuple[str, ...]], files: dict[str, dict[str, str]]
) -> Iterator[str]:
    """What is left out, and what is measured with although it is learned."""
    others = left_out(path for paths in given.values() for path in paths)
    if others:
        kinds = ", ".join(sorted({file.suffix or file.name for file in others})[:5])
        yield f"left out are {len(others):,} files in folders that are of other kinds ({kinds})"
    learned = {*files["train"].values()}
    for part in ("validation", "test"):
        for file, digest in files.get(part, {}).items():
            if digest in learned:
                yield (
                    f"warning: {file} is also learned from, so that what is measured with it for "
                    f"{part} says nothing about other documents"
                )
