"""What all tests of applications check."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def metrics_lie_within_their_intervals(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every evaluation of every test, of all tasks: a metric lies within its own interval."""
    paths = {item.path.parent.name for item in request.session.items}
    if not paths & {"training", "dna"}:  # the others need not wait for the import
        yield
        return
    from longbird.applications.training.engine import evaluation

    original = evaluation.intervals

    def checked(task: Any, examples: Any, said: Any) -> dict[str, tuple[float, float]]:
        found, values = original(task, examples, said), task.measure(examples, said)
        for name, (low, high) in found.items():
            if name in values and not math.isnan(low):
                slack = 1e-9 + 1e-6 * abs(values[name])
                assert low - slack <= values[name] <= high + slack, (task.name, name)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "intervals", checked)
        yield
