"""Contestants prepare, those that cannot take part are named, and the others run in turns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from longbird.bench.environment import memory_bytes
from longbird.bench.timing import interleave, rounds_within, warm_up


class UnavailableError(Exception):
    """A peer cannot take part; the message is the reason, and it goes into the report."""


@dataclass(frozen=True)
class Contest:
    """Seconds a call, round by round, of those that took part; and why the others did not."""

    samples: dict[str, list[float]]
    first_call: dict[str, float]
    skipped: dict[str, str]


def contest(
    entries: Mapping[str, Callable[[], Callable[[], object]]],
    mine: str,
    *,
    budget: float,
    repeats: int,
) -> Contest:
    """Time contestants side by side.

    Args:
        entries: By name, what makes a contestant's call ready, outside of all timing. Whatever it
            or the first call fails with is the reason that a peer is left out.
        mine: The contestant whose failure is an error.
        budget: Seconds that the rounds may take; there are never less than three.
        repeats: Most rounds.

    Examples:
        >>> held = contest({"sum": lambda: lambda: sum([1])}, "sum", budget=0.1, repeats=2)
        >>> len(held.samples["sum"])
        2
    """
    calls: dict[str, Callable[[], object]] = {}
    expected: dict[str, float] = {}
    first_call: dict[str, float] = {}
    skipped: dict[str, str] = {}
    for name, prepare in entries.items():
        try:
            call = prepare()
            warm = warm_up(call)
        except UnavailableError as error:
            skipped[name] = str(error)
        except Exception as error:
            if name == mine:
                raise
            skipped[name] = first_line(error)
        else:
            calls[name] = call
            expected[name], first_call[name] = warm.later, warm.first
    rounds = rounds_within(expected, budget, repeats)
    return Contest(interleave(calls, expected, rounds), first_call, skipped)


def refuse_without_memory(needed: int) -> None:
    """Raise `UnavailableError` if the machine does not have these bytes to spare."""
    free = memory_bytes("MemAvailable")
    if free is not None and needed > 0.9 * free:
        raise UnavailableError(
            f"needs about {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free"
        )


def refuse_if_too_slow(
    known: Sequence[tuple[int, float]], n: int, growth: float, limit: float
) -> None:
    """Raise `UnavailableError` if the last measured length predicts a call beyond a limit.

    Args:
        known: Lengths and seconds, ascending.
        n: The length to predict.
        growth: Time grows as the length to this power.
        limit: Seconds.
    """
    if not known:
        return
    length, seconds = known[-1]
    predicted = seconds * (n / length) ** growth
    if predicted > limit:
        raise UnavailableError(
            f"a call is predicted to take {predicted:.0f} s, the limit is {limit:g} s"
        )


def first_line(error: Exception) -> str:
    """An error in one line, without paths of the machine."""
    lines = str(error).strip().splitlines() or ["no message"]
    without_paths = re.sub(r"(?:/[\w.+-]+){2,}", "(a path)", lines[0])
    return f"{type(error).__name__}: {without_paths}"
