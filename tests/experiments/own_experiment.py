"""Compare how well two rules tell even from odd numbers."""

from __future__ import annotations

import numpy as np

from experiments.framework.experiment import (
    Attempt,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    mean_of,
)

NUMBERS = {"default": 1000, "quick": 50}


def guess(count: int, attempt: Attempt) -> Outcome:
    """Guess at random."""
    right = np.random.default_rng(attempt.seed).integers(0, 2, count)
    return Outcome({"right": right.tolist()})


def last_digit(count: int, _attempt: Attempt) -> Outcome:
    """Look at the last digit, which is always right."""
    return Outcome({"right": [1.0] * count})


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
    count = NUMBERS[scale]
    return Experiment(
        name="parity",
        title="Even and odd numbers",
        asks="Does the last digit tell whether a number is even?",
        scale=scale,
        contestants=[
            Contestant(
                "last digit",
                "looks at the last digit",
                lambda attempt: last_digit(count, attempt),
                {"count": count},
                seeded=False,
            ),
            Contestant(
                "guess", "guesses", lambda attempt: guess(count, attempt), {"count": count}
            ),
        ],
        reference="guess",
        metrics=[Metric("accuracy", "right answers, in percent", mean_of("right"), scale=100)],
        budget="none.",
        data=[f"The numbers from 0 to {count - 1}."],
    )
