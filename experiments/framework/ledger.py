"""What was found, a line each in a file, so that a kill costs the running attempt at most."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from experiments.framework.experiment import Contestant, Experiment


@dataclass(frozen=True)
class Finding:
    """An attempt that is done.

    Attributes:
        key: What decides it, as `key_of` has it.
        contestant: Its name.
        seed: Of the attempt.
        documents: Columns of numbers of the held-out documents.
        cost: What was spent.
        facts: What else is worth keeping.
        commit: Of the code that made it.
        date: When.
    """

    key: str
    contestant: str
    seed: int
    documents: Mapping[str, list[float]]
    cost: Mapping[str, float]
    facts: Mapping[str, Any]
    commit: str | None
    date: str


def key_of(experiment: Experiment, contestant: Contestant, seed: int, threads: int) -> str:
    """All that decides an attempt, in a few letters."""
    every = [experiment.name, experiment.scale, contestant.name, seed, threads]
    text = json.dumps([*every, contestant.settings, experiment.data], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Ledger:
    """The findings of an experiment in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "findings.jsonl"

    @contextmanager
    def in_use(self) -> Generator[None, None, None]:
        """Keeps other processes out; a kill ends that, too.

        Raises:
            FileExistsError: Another process is in it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise FileExistsError(
                f"another process is at work in {self.folder}: wait for it, or name another --work"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def findings(self) -> dict[str, Finding]:
        """All that are whole, by key; a later one replaces an earlier one."""
        found: dict[str, Finding] = {}
        lines = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        for line in lines:
            try:
                one = Finding(**json.loads(line))
            except (json.JSONDecodeError, TypeError):  # a kill came in the middle
                continue
            found[one.key] = one
        return found

    def add(self, finding: Finding) -> None:
        """Appends a line, which is on the disk afterwards."""
        with self.file.open("a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # what a kill left of a line
                    file.write(b"\n")
            file.write(json.dumps(asdict(finding)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
