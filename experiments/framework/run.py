"""Running the attempts of an experiment that are missing."""

from __future__ import annotations

import datetime
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from experiments.framework.environment import command_line, commit, environment, load_average
from experiments.framework.experiment import Attempt, Contestant, Experiment
from experiments.framework.ledger import Finding, Ledger, key_of


@dataclass(frozen=True)
class Found:
    """An experiment and all findings so far.

    Attributes:
        experiment: The experiment.
        seeds: The requested seeds.
        findings: Findings by contestant, in the order of seeds; contestants without any are left
            out.
        command: The last command.
        date: Date of the last command.
        environment: Machine, versions, commit, and load before and after.
    """

    experiment: Experiment
    seeds: tuple[int, ...]
    findings: dict[str, list[Finding]]
    command: str
    date: str
    environment: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def missing(self) -> list[str]:
        """Descriptions of the attempts that have not been run."""
        return [
            f"{contestant.name} (seed {seed})" if contestant.seeded else contestant.name
            for contestant in self.experiment.contestants
            for seed in seeds_of(contestant, self.seeds)
            if seed not in {each.seed for each in self.findings.get(contestant.name, [])}
        ]


def seeds_of(contestant: Contestant, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Return the seeds that a contestant is run with."""
    return seeds if contestant.seeded else seeds[:1]


def run(
    experiment: Experiment,
    seeds: tuple[int, ...],
    work: Path,
    only: Collection[str] = (),
    say: Callable[[str], None] = print,
) -> Found:
    """Run the attempts that are not in the ledger yet, and return all findings.

    Args:
        experiment: The experiment.
        seeds: Seeds of the contestants that have any.
        work: Folder for the ledger and for intermediate results, outside of a repository.
        only: Names of the contestants to run; empty for all.
        say: Receives messages about the progress.
    """
    disable_progress_bar()  # for saving models
    where, begun = environment(), datetime.datetime.now(datetime.timezone.utc)
    folder = work / f"{experiment.name}-{experiment.scale}"
    ledger, threads = Ledger(folder), torch.get_num_threads()
    with ledger.in_use():
        known = ledger.findings()
        for contestant, seed in _attempts(experiment, seeds):
            key = key_of(experiment, contestant, seed, threads)
            if key in known or (only and contestant.name not in only):
                continue
            say(f"{contestant.name}, seed {seed}")
            known[key] = _attempt(contestant, seed, key, folder, work / "shared", say)
            ledger.add(known[key])
            shutil.rmtree(_place(folder, contestant, key), ignore_errors=True)
    findings: dict[str, list[Finding]] = {}
    for contestant, seed in _attempts(experiment, seeds):
        key = key_of(experiment, contestant, seed, threads)
        if key in known:
            findings.setdefault(contestant.name, []).append(known[key])
    where["load_after"] = load_average()
    return Found(experiment, seeds, findings, command_line(), begun.date().isoformat(), where)


def _attempts(experiment: Experiment, seeds: tuple[int, ...]) -> Iterator[tuple[Contestant, int]]:
    """Yield all attempts seed by seed, so that a run that is stopped early has all contestants."""
    for seed in seeds:
        for contestant in experiment.contestants:
            if seed in seeds_of(contestant, seeds):
                yield contestant, seed


def _attempt(
    contestant: Contestant,
    seed: int,
    key: str,
    folder: Path,
    shared: Path,
    say: Callable[[str], None],
) -> Finding:
    place = _place(folder, contestant, key)
    place.mkdir(parents=True, exist_ok=True)
    begun = _core_seconds()
    outcome = contestant.attempt(Attempt(seed, place, lambda line: say(f"  {line}"), shared))
    seconds = _core_seconds() - begun
    documents = {name: [float(x) for x in xs] for name, xs in outcome.documents.items()}
    if len({len(column) for column in documents.values()}) != 1:
        raise ValueError(f"{contestant.name} returned columns of different lengths, or none")
    cost = {"core seconds": round(seconds, 1), **outcome.cost}
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return Finding(
        key, contestant.name, seed, documents, cost, dict(outcome.facts), commit(), today
    )


def _core_seconds() -> float:
    """Return the processor time of this process and its children, in seconds.

    A clock would also count the work of other processes on the machine.
    """
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _place(folder: Path, contestant: Contestant, key: str) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", contestant.name.lower()).strip("-")
    return folder / f"{name}-{key}"
