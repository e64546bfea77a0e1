"""A cache of its own for each test, and a genome with planted starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from planting import Planted, planted


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGBIRD_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def genome(tmp_path: Path) -> Planted:
    return planted(tmp_path)
