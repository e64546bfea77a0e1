"""The parts of a run's data: train, validation and test, from files or held out."""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from datasets import Dataset

from longbird.tasks.documents import cache_key, stored
from longbird.tasks.files import fingerprint
from longbird.tasks.folder import RunFolder, write_text
from longbird.tasks.numbers import numbers_of
from longbird.tasks.processes import processes
from longbird.tasks.settings import Settings
from longbird.tasks.split import draw, linked, lowest
from longbird.tasks.starting import model_fingerprint
from longbird.tasks.task import Task

PARTS = ("train", "validation", "test")


def read_parts(
    task: Task, settings: Settings, tokenizer: Any, folder: RunFolder, say: Callable[[str], None]
) -> tuple[dict[str, Dataset], dict[str, Any]]:
    """The documents by part, and what is known about the files.

    Raises:
        ValueError: A file has changed since the run began, or is not what it should be.
    """
    given = {part: getattr(settings, part) for part in PARTS}
    files = {part: fingerprint(paths) for part, paths in given.items() if paths}
    model = model_fingerprint(settings)
    _check_unchanged({**files, "model": model}, folder)

    def read(part: str, say: Callable[[str], None] = lambda _: None) -> Iterator[dict[str, Any]]:
        return task.examples(task.rows(given[part], settings), settings, say)

    groups = array("Q")  # one number for each row, of which there may be many
    links = array("Q")  # pairs of groups that stay together

    def noted(examples: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for example in examples:
            several = example["group"]
            names = [several] if isinstance(several, str) else several
            first, *more = (draw(name, settings.seed) for name in names)
            groups.append(first)
            for other in more:
                links.extend((first, other))
            yield example

    examples = noted(read("train", say))
    first = next(examples, None)
    if first is None:
        raise ValueError(f"{', '.join(settings.train)} has no rows: there is nothing to learn")
    task.learn(itertools.chain([first], examples))
    aside = None
    if "validation" not in files and settings.hold_out:
        aside = lowest(linked(groups, links, settings.seed), settings.hold_out)
    key = cache_key(files, asdict(settings), tokenizer.backend_tokenizer.to_str())

    def part_of(part: str) -> Dataset:
        file = folder.cache / f"{part}-{key}.arrow"
        if aside is None or part == "test":
            learned = part == "train"
            return stored(task, read(part), tokenizer, settings.length, file, learned)
        wanted = part == "validation"
        chosen = (each for each, out in zip(read("train"), aside, strict=True) if out == wanted)
        return stored(task, chosen, tokenizer, settings.length, file, not wanted)

    there = {*files, *(() if aside is None else ("validation",))}
    parts = {part: part_of(part) for part in PARTS if part in there}
    for part, documents in parts.items():
        if len(documents) == 0:
            raise ValueError(f"there are no documents for {part}: give more files, or larger ones")
    data = {
        "files": files,
        "documents": {part: len(documents) for part, documents in parts.items()},
        "tokens": {part: int(numbers_of(x, "tokens").sum()) for part, x in parts.items()},
        "model": model,
        "held out": None if aside is None else f"by {settings.group or 'equal text'}",
    }
    if not folder.data.exists() and processes().is_main_process:
        write_text(folder.data, json.dumps(data, indent=1))
    return parts, data


def _check_unchanged(files: dict[str, dict[str, str]], folder: RunFolder) -> None:
    """Raises if a file is not what it was when the run began."""
    if not folder.data.exists():
        return
    data = json.loads(folder.data.read_text("utf-8"))
    # A model that was made longer is in the folder of the run, with its tokenizer.
    model = {} if folder.start.exists() else {"model": data.get("model", {})}
    for part, hashes in {**data["files"], **model}.items():
        for file, digest in hashes.items():
            if files.get(part, {}).get(file) != digest:
                raise ValueError(
                    f"{file} is not what it was when the run began (its sha256 differs): begin a "
                    "new run with another --out, or put the old file back"
                )
