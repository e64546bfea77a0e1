"""What a run says it will take."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from longbird.applications.training.engine import forecast
from longbird.core.machine import peak_memory


@pytest.mark.parametrize("power", [1, 2])
def test_time_beyond_the_sample(power: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention along all pairs takes longer than its tokens would tell; a window does not."""

    def plan(config: Any, n: int, backward: bool) -> Any:
        return SimpleNamespace(seconds=1e-6 * n**power)

    monkeypatch.setattr(forecast, "plan", plan)
    lengths = [100, 100, 400, 800]
    expected = sum(1e-6 * n**power for n in (400, 800))
    in_proportion = sum(1e-6 * 100**power * n / 100 for n in (400, 800))
    found = forecast._beyond(None, lengths, [0, 1])
    assert found == pytest.approx(expected - in_proportion, abs=1e-12)
    assert forecast._beyond(None, lengths, [0, 3]) == 0.0  # the sample has the longest


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_peak_memory_is_that_of_the_block() -> None:
    with peak_memory() as memory:
        if memory.before == 0:
            pytest.skip("this system does not tell")
        taken = b"x" * 2**26
        del taken
    assert 0.9 * 2**26 < memory.more < 3 * 2**26
