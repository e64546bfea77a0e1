"""A comparison of times: its settings, its steps, and the result that they fill in."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.framework.environment import command_line, environment, load_average
from experiments.speed.contest import (
    Call,
    Contest,
    Peer,
    UnavailableError,
    contest,
    reason,
    refuse_if_too_slow,
)
from experiments.speed.memory import Peak
from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from experiments.framework.registry import Options
    from experiments.speed.report import Goal, Report

TOLERANCE = 1e-4  # of a peer's output in float32


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of every comparison of times; each adds its own.

    Attributes:
        mine: Longbird.
        peers: The contestants that it is compared with.
        lengths: Lengths at which all contestants take part.
        repeats: Maximum number of rounds; slow calls have fewer, but at least three.
        limit: Peers whose call is predicted to take more seconds are left out.
        budget: Seconds for the rounds of a comparison.
        quick: Whether to measure only what the README quotes.
    """

    mine: Peer
    peers: tuple[Peer, ...]
    lengths: tuple[int, ...]
    repeats: int = 9
    limit: float = 20.0
    budget: float = 60.0
    quick: bool = False

    @property
    def everybody(self) -> tuple[Peer, ...]:
        """Longbird and its peers."""
        return (self.mine, *self.peers)


@dataclass(frozen=True)
class Result:
    """All measurements of a run, which become the JSON file.

    Attributes:
        bench: Name of the experiment.
        command: The command.
        date: Date of the command.
        environment: Machine, versions, commit, and load before and after.
        settings: Settings of the run.
        verified: Deviation of each contestant from what it claims to compute, or why it was not
            checked.
        contests: Comparisons of time.
        peaks: Calls in separate processes.
    """

    bench: str
    command: str
    date: str
    environment: dict[str, Any]
    settings: Any
    verified: dict[str, float | str] = field(default_factory=dict[str, float | str])
    contests: list[Contest] = field(default_factory=list[Contest])
    peaks: list[Peak] = field(default_factory=list[Peak])

    @property
    def mine(self) -> str:
        """Name of Longbird among the contestants."""
        return self.settings.mine.name

    def contest(self, case: Any) -> Contest | None:
        """Return the comparison of a case, or None."""
        return next((each for each in self.contests if each.case == case), None)

    def verify(self, *cases: Any) -> None:
        """Compare each contestant with what it claims, on the first case that it can run."""
        for peer in self.settings.everybody:
            for case in cases:
                try:
                    self.verified[peer.name] = peer.difference(case)
                    break
                except Exception as error:  # the reason of a peer
                    if peer.name == self.mine and not isinstance(error, UnavailableError):
                        raise
                    self.verified[peer.name] = f"not checked: {reason(error)}"

    def compare(
        self,
        case: Any,
        peers: Sequence[Peer],
        more: Mapping[str, Callable[[], Call]] | None = None,
        *,
        limit: float | None = None,
        **facts: Any,
    ) -> Contest:
        """Time peers, and further calls by name, and store the comparison."""
        settings: Settings = self.settings
        most = settings.limit if limit is None else limit
        entries: dict[str, Callable[[], Call]] = {**(more or {})}
        entries = {peer.name: partial(self.ready, peer, case, most) for peer in peers} | entries
        held = contest(case, entries, self.mine, settings.budget, settings.repeats)
        held.facts.update(facts)
        self.contests.append(held)
        return held

    def ready(self, peer: Peer, case: Any, limit: float) -> Call:
        """Return the call of a peer.

        Raises:
            UnavailableError: The peer does not compute what it claims, would take too long, or
                cannot run here.
        """
        deviation = self.verified.get(peer.name, 0.0)
        if not isinstance(deviation, str) and not deviation <= TOLERANCE:
            raise UnavailableError(f"its output is off by {deviation:.2g}")
        if peer.name != self.mine:
            refuse_if_too_slow(peer, case, self.contests, limit)
        return peer.calls(case)[0]


@dataclass(frozen=True)
class Step:
    """A part of a run with a title for the progress display."""

    title: str
    measure: Callable[[Result], object]


def run(
    bench: str,
    settings: Settings,
    steps: Sequence[Step],
    tell: Callable[[str], None] = lambda title: None,
) -> Result:
    """Run all steps, and pass the title of each to `tell` before it runs."""
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    result = Result(bench, command_line(), today, environment(), settings)
    for step in steps:
        tell(step.title)
        step.measure(result)
    result.environment["load_after"] = load_average()
    return result


@dataclass(frozen=True)
class Comparison:
    """An experiment that compares times.

    Attributes:
        name: The name of the experiment.
        settings: What is measured.
        steps: The parts of the run.
        report: Makes a report of the result.
        targets: Compares the result with the ratios to keep.
    """

    name: str
    settings: Settings
    steps: Sequence[Step]
    report: Callable[[Result], Report]
    targets: Callable[[Result], Sequence[Goal]] = lambda result: ()

    def run(self, options: Options) -> list[Path]:
        """Measure everything, and write the results."""
        if options.only:
            raise InvalidValueError(f"{self.name} measures all contestants: leave out `only`")
        result = run(self.name, self.settings, self.steps, options.tell)
        return self.report(result).write(result, self.targets(result), options.out)
