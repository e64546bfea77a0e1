"""A task that is defined outside of the package, as the page of the docs shows it."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import longbird as lb
from longbird.applications.training.tasks import registry
from longbird.applications.training.tasks.task import (
    Features,
    Metrics,
    Objective,
    Presentation,
    Reading,
    Task,
)

PAGE = Path(__file__).parents[3] / "docs" / "adding-a-task.md"


@pytest.mark.slow  # trains
def test_a_task_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trained, measured, resumed, extended, and loaded again by another process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    module = tmp_path / "rate.py"
    module.write_text(code)
    runpy.run_path(str(module), run_name="__main__")
    assert {"run.toml", "result.json", "report.html", "model"} <= {
        each.name for each in (tmp_path / "run").iterdir()
    }
    assert "largest = 5.0" in (tmp_path / "run" / "run.toml").read_text()
    options = {"model": "scratch:tiny", "tokenizer": "tokenizer", "length": 32, "largest": 5.0}
    longer = lb.finetune("rate", "letters.csv", "run", steps=4, extend=True, **options)
    low, high = longer.metrics["validation"]["intervals"]["error"]
    assert low <= longer.metrics["validation"]["error"] <= high
    script = "import rate, longbird as lb; print(lb.evaluate('run', 'letters.csv').metrics)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "'error': " in done.stdout
    script = "import longbird as lb; lb.evaluate('run', 'letters.csv')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "received 'rate'" in done.stderr


@pytest.mark.parametrize("part", [Reading, Features, Objective, Metrics, Presentation])
def test_a_part_has_few_methods(part: type) -> None:
    methods = [name for name, value in vars(part).items() if callable(value) or name == "of_model"]
    assert 3 <= len(methods) < 10
    assert issubclass(Task, part)


def test_names_of_parts_do_not_collide() -> None:
    parts = (Reading, Features, Objective, Metrics, Presentation)
    names = [name for part in parts for name in vars(part) if not name.startswith("__")]
    assert len(names) == len(set(names))
