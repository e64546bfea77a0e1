"""The examples of a run that come from files: named files for each part, or rows held out."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np

from longbird.applications.training.data.split import draw, linked, lowest
from longbird.errors import InvalidValueError


class ExampleSource(Protocol):
    """Where the examples of each part come from."""

    def examples_to_learn(self) -> Iterator[dict[str, Any]]:
        """Yield the examples that the task looks at before training."""
        ...

    def divide(self) -> dict[str, Any]:
        """Decide what each part has, after that; return what `data.json` says about it."""
        ...

    def parts(self) -> Iterable[str]:
        """Return the parts that have examples: train, validation, test."""
        ...

    def examples(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the examples of a part."""
        ...


class FileSource:
    """Examples from files; without validation files, groups of training rows are held out."""

    def __init__(self, task: Any, settings: Any, say: Callable[[str], None]) -> None:
        self.task, self.settings, self.say = task, settings, say
        self.files = {part: paths for part, paths in settings.files().items() if paths}
        self.held_out: np.ndarray | None = None
        self.groups = array("Q")  # one number for each row, of which there may be many
        self.links = array("Q")  # pairs of groups that stay together

    def _read(self, part: str, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        rows = self.task.rows(self.files[part], self.settings)
        return self.task.examples(rows, self.settings, say)

    def examples_to_learn(self) -> Iterator[dict[str, Any]]:
        """Yield the examples of the training files, and note their groups."""
        empty = count = 0
        for example in self._read("train", self.say):
            count += 1
            empty += not str(example.get("text", "text")).strip()
            several = example["group"]
            names = [several] if isinstance(several, str) else several
            first, *more = (draw(name, self.settings.seed) for name in names)
            self.groups.append(first)
            self.links.extend(itertools.chain(*((first, other) for other in more)))
            yield example
        if not count:
            raise InvalidValueError(
                f"{', '.join(self.settings.train)} has no rows: there is nothing to learn"
            )
        if empty:
            self.say(f"warning: {empty:,} of {count:,} documents to learn from have no text")

    def divide(self) -> dict[str, Any]:
        """Hold rows out for validation if there are no files for it."""
        share = self.settings.hold_out
        if "validation" in self.files or not share:
            return {"held out": None}
        draws = linked(self.groups, self.links, self.settings.seed)
        self.held_out = lowest(draws, share)
        found = self.held_out.mean()
        if not 0.5 < found / share < 2:
            self.say(
                f"holding out {self.held_out.sum():,} of {len(draws):,} rows, {found:.0%}: rows "
                "that belong together stay on one side"
            )
        return {"held out": f"by {self.settings.group or 'equal text'}"}

    def parts(self) -> Iterable[str]:
        """Return the parts that have files, or rows held out."""
        return {*self.files} | ({"validation"} if self.held_out is not None else set())

    def examples(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the examples of a part."""
        if self.held_out is None or part == "test":
            return self._read(part, lambda _: None)
        wanted = part == "validation"
        rows = zip(self._read("train", lambda _: None), self.held_out, strict=True)
        return (example for example, held in rows if held == wanted)
