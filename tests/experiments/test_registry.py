"""Experiments are found by name, and one that is defined elsewhere runs like the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import CHECKOUT
from experiments.framework.page import write_run
from experiments.framework.registry import files, load, summary
from longbird.errors import InvalidValueError

OWN = Path(__file__).with_name("own_experiment.py")


def test_an_experiment_defined_elsewhere_runs(cli, tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    done = cli(str(OWN), "--quick", "--seeds", "2", "--work", str(work), "--out", str(out))
    assert done.exit_code == 0, done.output
    assert {path.suffix for path in out.iterdir()} == {".md", ".json", ".png"}
    (data,) = out.glob("*.json")
    figures = json.loads(data.read_text())["figures"]["accuracy"]
    assert figures["last digit"][0] == 100
    assert 20 < figures["guess"][0] < 80
    assert len((work / "parity-quick" / "findings.jsonl").read_text().splitlines()) == 3


def test_a_file_is_enough() -> None:
    assert len(OWN.read_text().splitlines()) < 200


def test_experiments_are_listed_without_importing_them() -> None:
    code = "import sys, experiments.__main__ as m; m._list(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "torch" not in done.stdout.splitlines()[-1].split()
    for name, file in files().items():
        assert name in done.stdout
        assert 20 < len(summary(file)) < 99
    assert {"attention", "encoders", "int8", "training", "dna-speed", "recall"} <= set(files())


def test_what_there_is_not() -> None:
    with pytest.raises(InvalidValueError, match="NAME is 'nothing', expected one of attention"):
        load("nothing", "quick")
    with pytest.raises(InvalidValueError, match="does not start from a model"):
        load("listops", "quick", Path("model"))


def test_results_must_be_small(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected at most 100,000"):
        write_run(tmp_path, "run", "# Run", {"numbers": "1" * 100_001}, lambda path: None)
    assert not list(tmp_path.iterdir())
