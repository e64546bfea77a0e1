"""Time callables in turns, so that all of them run under the same conditions.

Measuring one contestant after the other credits the machine's mood (frequency, neighbours, page
cache) to whoever happened to run. Here every round runs every contestant once.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

# A sample shorter than this is mostly clock and scheduler: short calls are repeated up to it.
SHORTEST_SAMPLE = 0.02

# Below this, what the contestant before left in the caches shows in the sample, so an untimed call
# goes first. Above it, the effect drowns and the extra call would only cost time.
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
        """Summarise samples, of which there must be at least one."""
        if not samples:
            raise ValueError("received no samples, expected at least one")
        return cls(statistics.median(samples), min(samples), max(samples))


@contextmanager
def garbage_collection_off() -> Generator[None, None, None]:
    """Collect now, and not again by itself until the block is left."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()  # collecting between rounds is then cheap: it looks at what is new alone
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def warm_up(call: Callable[[], object]) -> tuple[float, float]:
    """Run a contestant until it is warm: seconds of its first call, and of a later one."""
    first = later = _seconds(call, 1)
    if first < 2.0:
        _seconds(call, 1)
        later = _seconds(call, 1)
    return first, later


def interleave(
    contestants: Mapping[str, Callable[[], object]], expected: Mapping[str, float], rounds: int
) -> dict[str, list[float]]:
    """Seconds per call of every contestant, one sample a round, in turns.

    Args:
        contestants: What to run, by name. They should be warm already.
        expected: Rough seconds of a call of each, which decide how often it is repeated in a
            sample.
        rounds: Samples of each contestant; sample r of every name comes from round r.

    Examples:
        >>> samples = interleave({"sum": lambda: sum(range(1000))}, {"sum": 1e-5}, rounds=3)
        >>> len(samples["sum"])
        3
    """
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    with garbage_collection_off():
        for turn in range(rounds):
            # Starting with another contestant each time, nobody always follows the same one.
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
    """How many rounds fit into a time, between `least` and `most`.

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
