"""Time callables in turns, so that all of them run under the same conditions.

If contestants were measured one after the other, changes of the machine (frequency, other
processes, page cache) would be attributed to one of them. Here every round runs each of them once.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

# In shorter samples, clock and scheduler dominate, so short calls are repeated.
SHORTEST_SAMPLE = 0.02

# In shorter calls, what the previous contestant left in the caches matters, so an untimed call
# runs first. In longer calls the effect is negligible.
CACHES_MATTER = 0.3

Samples = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Spread:
    """Median and extremes of some samples.

    Examples:
        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, low=1.0, high=3.0)
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread:
        """Return the spread of at least one sample."""
        if not samples:
            raise ValueError("received no samples, expected at least one")
        return cls(statistics.median(samples), min(samples), max(samples))


@contextmanager
def garbage_collection_off() -> Generator[None, None, None]:
    """Collect garbage now, and turn automatic collection off within the block."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()  # makes collecting between rounds cheap
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def warm_up(call: Callable[[], object]) -> tuple[float, float]:
    """Warm a contestant up, and return the seconds of its first call and of a later one."""
    first = later = _seconds(call, 1)
    if first < 2.0:
        _seconds(call, 1)
        later = _seconds(call, 1)
    return first, later


def interleave(
    contestants: Mapping[str, Callable[[], object]], expected: Mapping[str, float], rounds: int
) -> dict[str, list[float]]:
    """Return seconds per call of every contestant, with one sample per round.

    Args:
        contestants: Calls by name, which should be warm.
        expected: Approximate seconds of a call, which determine how often it is repeated per
            sample.
        rounds: Number of samples of each contestant; sample r of each comes from round r.

    Examples:
        >>> samples = interleave({"sum": lambda: sum(range(1000))}, {"sum": 1e-5}, rounds=3)
        >>> len(samples["sum"])
        3
    """
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    with garbage_collection_off():
        for turn in range(rounds):
            # Each round starts with another contestant.
            shift = turn % max(1, len(names))
            for name in names[shift:] + names[:shift]:
                call = contestants[name]
                if expected[name] < CACHES_MATTER:
                    call()
                repeats = max(1, math.ceil(SHORTEST_SAMPLE / max(expected[name], 1e-9)))
                samples[name].append(_seconds(call, repeats))
            gc.collect()
    return samples


def rounds_within(expected: Mapping[str, float], seconds: float, most: int, least: int = 3) -> int:
    """Return the number of rounds that fit into a time, between `least` and `most`.

    Examples:
        >>> rounds_within({"a": 1.0, "b": 4.0}, seconds=20, most=9)
        4
    """
    one_round = sum(
        max(time, SHORTEST_SAMPLE) + (time if time < CACHES_MATTER else 0.0)
        for time in expected.values()
    )
    fitting = int(seconds / one_round) if one_round else most
    return min(most, max(min(least, most), fitting))


def _seconds(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
