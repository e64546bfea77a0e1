"""The parts of a run's data: train, validation and test, from files or held out."""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from datasets import Dataset

from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.data.files import fingerprint, left_out
from longbird.applications.training.data.split import draw, linked, lowest
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

    def read(part: str, say: Callable[[str], None] = lambda _: None) -> Iterator[dict[str, Any]]:
        return task.examples(task.rows(given[part], settings), settings, say)

    def divided(part: str, say: Callable[[str], None] = lambda _: None) -> Iterator[Any]:
        return (each for each in read("train", say) if each["part"] == part)

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

    examples = divided("train", say) if task.divided else noted(read("train", say))
    first = next(examples, None)
    if first is None and not task.divided:  # those have a message of their own
        raise InvalidValueError(
            f"{', '.join(settings.train)} has no rows: there is nothing to learn"
        )
    task.learn(itertools.chain([] if first is None else [first], examples))
    aside, group = None, getattr(settings, "group", None)
    hold_out = getattr(settings, "hold_out", 0.0)
    if "validation" not in files and hold_out and not task.divided:
        aside = lowest(linked(groups, links, settings.seed), hold_out)
        share = aside.mean()
        if not 0.5 < share / hold_out < 2:
            say(
                f"held out are {aside.sum():,} of {len(aside):,} rows, {share:.0%}: what belongs "
                "together stays on one side"
            )
    key = cache_key(files, asdict(settings), tokenizer.backend_tokenizer.to_str())

    def part_of(part: str) -> Dataset:
        file = folder.cache / f"{part}-{key}.arrow"
        if task.divided:
            return stored(task, divided(part), tokenizer, settings.length, file, part == "train")
        if aside is None or part == "test":
            learned = part == "train"
            return stored(task, read(part), tokenizer, settings.length, file, learned)
        wanted = part == "validation"
        chosen = (each for each, out in zip(read("train"), aside, strict=True) if out == wanted)
        return stored(task, chosen, tokenizer, settings.length, file, not wanted)

    there = {*files, *(() if aside is None else ("validation",)), *task.divided}
    parts = {part: part_of(part) for part in PARTS if part in there}
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
        "held out": None if aside is None else f"by {group or 'equal text'}",
        **({"parts": dict(task.divided)} if task.divided else {}),
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
                f"{file} {what}: begin a new run with another --out, or put the files back as "
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
