"""The reader that ships: what is in the package, and the folder that is made of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from longbird.reading import default


def test_what_ships_is_small_and_knows_what_it_is() -> None:
    files = {file.name: file.stat().st_size for file in default.SHIPPED.iterdir()}
    assert {"config.json", default.DIFFERENCE, "README.md"} <= set(files)
    assert sum(files.values()) < 15_000_000
    kept = json.loads((default.SHIPPED / "config.json").read_text("utf-8"))
    said = kept["task_specific_params"]["question-answering"]
    assert 0 <= said["confidence"]["least"] <= 1  # fitted, not assumed
    assert said["positions"] == "paragraph"


def test_another_calibration_is_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = shutil.copytree(default.SHIPPED, tmp_path / "shipped")
    monkeypatch.setattr(default, "SHIPPED", shipped)
    monkeypatch.setattr(default, "cached", lambda name, *_, **__: name)
    before = default.default_reader()
    assert default.default_reader() == before
    config = shipped / "config.json"
    config.write_text(config.read_text("utf-8") + "\n", "utf-8")
    assert default.default_reader() != before
