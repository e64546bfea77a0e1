"""A cache of its own for each test, and tiny genomes."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("LONGBIRD_CACHE", str(folder))
    return folder
