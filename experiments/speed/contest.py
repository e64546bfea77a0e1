"""One comparison: contestants prepare, and those that can take part run in turns."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiments.framework.environment import memory_bytes
from experiments.speed.timing import Spread, interleave, rounds_within, warm_up

Call = Callable[[], Any]


class UnavailableError(Exception):
    """A peer cannot take part; the message is the reason that the report gives."""


@dataclass(frozen=True, kw_only=True)
class Peer(ABC):
    """A contestant.

    Attributes:
        name: Name in reports.
        short: Short name for the head of a column.
        growth: Exponent with which time grows with the length.
    """

    name: str
    short: str
    growth: float = 1.0

    @abstractmethod
    def calls(self, *cases: Any) -> list[Call]:
        """Return calls that are ready to be timed, or raise `UnavailableError`."""

    @abstractmethod
    def difference(self, case: Any) -> float:
        """Return the largest difference from dense attention on the graph that it claims."""


@dataclass(frozen=True)
class Contest:
    """The result of a comparison.

    Attributes:
        case: What was computed: a frozen dataclass with the number of tokens `n`, the number of
            `layers` that ran, and `kind`, which is equal for cases that differ only in these.
        samples: Seconds per call, round by round, by contestant.
        first_call: Seconds of the first call of each contestant.
        skipped: Reasons why other contestants did not take part.
        facts: Other facts about the case.
    """

    case: Any
    samples: dict[str, list[float]]
    first_call: dict[str, float]
    skipped: dict[str, str]
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    def median(self, name: str) -> float:
        """Return the median of a contestant's samples, in seconds."""
        return Spread.of(self.samples[name]).median


def contest(
    case: Any, entries: Mapping[str, Callable[[], Call]], mine: str, budget: float, repeats: int
) -> Contest:
    """Time contestants side by side.

    Args:
        case: What they compute.
        entries: Functions by name that prepare a contestant's call, outside of all timing. If a
            function or the first call fails, the contestant is left out with that reason.
        mine: Name of the contestant whose failure is an error.
        budget: Seconds for the rounds; at least three rounds are run.
        repeats: Maximum number of rounds.
    """
    held = Contest(case, {}, {}, {})
    calls: dict[str, Call] = {}
    expected: dict[str, float] = {}
    for name, prepare in entries.items():
        try:
            call = prepare()
            held.first_call[name], expected[name] = warm_up(call)
            calls[name] = call
        except Exception as error:
            if name == mine and not isinstance(error, UnavailableError):
                raise
            held.skipped[name] = reason(error)
    rounds = rounds_within(expected, budget, repeats)
    held.samples.update(interleave(calls, expected, rounds))
    return held


def refuse_without_memory(needed: int) -> None:
    """Raise `UnavailableError` if less memory than this is free."""
    free = memory_bytes("MemAvailable")
    if free is not None and needed > 0.9 * free:
        raise UnavailableError(
            f"needs about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free"
        )


def refuse_if_too_slow(peer: Peer, case: Any, before: Sequence[Contest], limit: float) -> None:
    """Raise `UnavailableError` if the last case of this kind predicts a call above the limit."""
    known = [x for x in before if x.case.kind == case.kind and peer.name in x.samples]
    if not known:
        return
    last = known[-1].case
    seconds = min(known[-1].samples[peer.name]) * case.layers / max(1, last.layers)
    predicted = seconds * (case.n / last.n) ** peer.growth
    if predicted > limit:
        raise UnavailableError(
            f"a call is predicted to take {predicted:.0f} s, the limit is {limit:g} s"
        )


def reason(error: Exception) -> str:
    """Return the reason why a contestant did not take part, in one line, without paths."""
    if isinstance(error, UnavailableError):
        return str(error)
    lines = str(error).strip().splitlines() or ["no message"]
    without_paths = re.sub(r"(?:/[\w.+-]+){2,}", "(a path)", lines[0])
    return f"{type(error).__name__}: {without_paths}"
