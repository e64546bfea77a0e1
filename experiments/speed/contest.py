"""One comparison: contestants get ready, those that cannot are named, the others take turns."""

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
    """A peer cannot take part; the message is the reason, and it goes into the report."""


@dataclass(frozen=True, kw_only=True)
class Peer(ABC):
    """A contestant: its name in reports, a short one for the head of a column, how time grows.

    That is about as the length to the power `growth`.
    """

    name: str
    short: str
    growth: float = 1.0

    @abstractmethod
    def calls(self, *cases: Any) -> list[Call]:
        """Calls ready to be timed, of one model for all cases; or raises `UnavailableError`."""

    @abstractmethod
    def difference(self, case: Any) -> float:
        """Largest difference of its output from dense attention on the graph that it claims."""


@dataclass(frozen=True)
class Contest:
    """What a comparison measured.

    Attributes:
        case: What everybody did: a frozen dataclass of each bench, with `n` tokens, the `layers`
            that are run, and `kind`, which is the same for cases that differ in these alone.
        samples: Seconds a call, round by round, of those that took part.
        first_call: Seconds of their very first call.
        skipped: Why the others did not take part.
        facts: What else is known about the case.
    """

    case: Any
    samples: dict[str, list[float]]
    first_call: dict[str, float]
    skipped: dict[str, str]
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    def median(self, name: str) -> float:
        """Median of a contestant's samples, in seconds."""
        return Spread.of(self.samples[name]).median


def contest(
    case: Any, entries: Mapping[str, Callable[[], Call]], mine: str, budget: float, repeats: int
) -> Contest:
    """Time contestants side by side.

    Args:
        case: What they do.
        entries: By name, what makes a contestant's call ready, outside of all timing. Whatever it
            or the first call fails with is the reason that a peer is left out.
        mine: The contestant whose failure is an error.
        budget: Seconds that the rounds may take; there are never fewer than three.
        repeats: Most rounds.
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
    """Raise `UnavailableError` if the machine does not have these bytes to spare."""
    free = memory_bytes("MemAvailable")
    if free is not None and needed > 0.9 * free:
        raise UnavailableError(
            f"needs about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free"
        )


def refuse_if_too_slow(peer: Peer, case: Any, before: Sequence[Contest], limit: float) -> None:
    """Raise `UnavailableError` if the last case of the kind predicts a call beyond a limit."""
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
    """Why somebody did not take part, in one line, without paths of the machine."""
    if isinstance(error, UnavailableError):
        return str(error)
    lines = str(error).strip().splitlines() or ["no message"]
    without_paths = re.sub(r"(?:/[\w.+-]+){2,}", "(a path)", lines[0])
    return f"{type(error).__name__}: {without_paths}"
