"""Storing each finding as a line of a file, so that at most the current attempt can be lost."""

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
        key: Key from `key_of`.
        contestant: Name of the contestant.
        seed: Seed of the attempt.
        documents: Columns of numbers of the held-out documents.
        cost: Costs by name.
        facts: Other facts.
        commit: Commit of the code.
        date: Date of the attempt.
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
    """Return a short hash of everything that determines an attempt."""
    every = [experiment.name, experiment.scale, contestant.name, seed, threads]
    text = json.dumps([*every, contestant.settings, experiment.data], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Ledger:
    """A folder with the findings of an experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "findings.jsonl"

    @contextmanager
    def in_use(self) -> Generator[None, None, None]:
        """Lock the folder; the lock also ends if the process is killed.

        Raises:
            FileExistsError: Another process uses the folder.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise FileExistsError(
                f"another process uses {self.folder}: wait for it, or give another --work"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def findings(self) -> dict[str, Finding]:
        """Return all complete findings by key; a later one replaces an earlier one."""
        found: dict[str, Finding] = {}
        lines = self.file.read_text("utf-8").splitlines() if self.file.exists() else []
        for line in lines:
            try:
                one = Finding(**json.loads(line))
            except (json.JSONDecodeError, TypeError):  # the process was killed while writing
                continue
            found[one.key] = one
        return found

    def add(self, finding: Finding) -> None:
        """Append a finding, and wait until it is on the disk."""
        with self.file.open("a+b") as file:
            file.seek(0, os.SEEK_END)
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # an incomplete line
                    file.write(b"\n")
            file.write(json.dumps(asdict(finding)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
