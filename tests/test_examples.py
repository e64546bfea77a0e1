"""The examples run, and show what they claim."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow  # Hugging Face BigBird, at a length where its memory shows
def test_huggingface_defects() -> None:
    table = example("huggingface_defects").main(["--quick"])
    *exact, memory = table.values()
    assert len(exact) == 4
    for theirs, ours in exact:
        assert theirs > 1e-3
        assert abs(ours) < 2e-6
    assert memory[0] > 5 * memory[1]


@pytest.mark.slow  # trains MiniLM
def test_plain_trainer(tmp_path: Path) -> None:
    assert example("plain_trainer").main(str(tmp_path)) >= 0.75
