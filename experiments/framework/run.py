"""Running what is missing of an experiment."""

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
    """An experiment and all that was found of it.

    Attributes:
        experiment: What was asked.
        seeds: Those that were to be run.
        findings: By contestant, in the order of seeds; who has none is not there.
        command: The last command.
        date: Of the last command.
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
        """What has not been run, in words."""
        return [
            f"{contestant.name} (seed {seed})" if contestant.seeded else contestant.name
            for contestant in self.experiment.contestants
            for seed in seeds_of(contestant, self.seeds)
            if seed not in {each.seed for each in self.findings.get(contestant.name, [])}
        ]


def seeds_of(contestant: Contestant, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """The seeds that a contestant is run with."""
    return seeds if contestant.seeded else seeds[:1]


def run(
    experiment: Experiment,
    seeds: tuple[int, ...],
    work: Path,
    only: Collection[str] = (),
    say: Callable[[str], None] = print,
) -> Found:
    """Runs what is not in the ledger of the work folder yet, and returns all that is.

    Args:
        experiment: What is asked.
        seeds: Seeds of each contestant that has any.
        work: The folder of the ledger, and of what attempts keep; any folder outside a repository.
        only: Names of contestants to run; all by default.
        say: Is told what is going on.
    """
    disable_progress_bar()  # of saving models, which takes a moment
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
    """Seed by seed, so that what is stopped early has all contestants."""
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
        raise ValueError(f"{contestant.name} gave columns of different lengths, or none")
    cost = {"core seconds": round(seconds, 1), **outcome.cost}
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return Finding(
        key, contestant.name, seed, documents, cost, dict(outcome.facts), commit(), today
    )


def _core_seconds() -> float:
    """Seconds of a core that this process and its children have had.

    An hour's experiment is seldom alone on its machine, and a clock would count what others do.
    """
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _place(folder: Path, contestant: Contestant, key: str) -> Path:
    name = re.sub(r"[^a-z0-9]+", "-", contestant.name.lower()).strip("-")
    return folder / f"{name}-{key}"
