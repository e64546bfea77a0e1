"""Fixtures of the tests of experiments."""

from contextlib import nullcontext

import pytest
from typer.testing import CliRunner


@pytest.fixture(scope="session", autouse=True)
def samples_need_not_be_good():
    """Every call is a sample, however short, and garbage is collected whenever Python likes."""
    from experiments.speed import contest, timing

    def once(contestants, expected, rounds):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(timing, "SHORTEST_SAMPLE", 1e-9)
            patch.setattr(timing, "CACHES_MATTER", 0.0)
            patch.setattr(timing, "garbage_collection_off", nullcontext)
            patch.setattr(timing.gc, "collect", lambda: 0)
            return timing.interleave(contestants, expected, rounds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contest, "interleave", once)
        yield


@pytest.fixture
def cli():
    """Runs the command, and returns what it said and how it ended."""
    from experiments.__main__ import app

    return lambda *arguments: CliRunner().invoke(app, list(arguments))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The bases of a small E. coli with planted starts, genes and ChIP peaks."""
    from small_coli import planted

    yield from planted(monkeypatch, tmp_path)
