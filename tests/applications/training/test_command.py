"""`longbird finetune`, `evaluate` and `classify`, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longbird.cli.app import app, main


def longbird(*words: Any) -> subprocess.CompletedProcess[str]:
    script = "import sys; from longbird.cli.app import main; sys.argv[0] = 'longbird'; main()"
    command = [sys.executable, "-c", script, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ})


@pytest.fixture(scope="module")
def run(tiny: Path, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("command") / "run"
    done = longbird(
        "finetune", "classify", table, "--text", "text", "--label", "label", "--model", tiny,
        "--length", 128, "--out", out, "--steps", 3, "--seed", 1, "--tokens-per-batch", 400,
        "--validation", table,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""  # what is going on is said on stderr
    assert "histogram" not in done.stderr
    assert "lengths" in done.stderr
    return out


@pytest.mark.slow  # starts several processes
def test_evaluate_and_classify(run: Path, table: Path, tmp_path: Path) -> None:
    done = longbird("evaluate", run, table, "--json", "--worst", tmp_path / "worst.jsonl")
    assert done.returncode == 0, done.stderr
    assert f"the model learned from {table}" in done.stderr.replace("\n", " ")
    metrics = json.loads(done.stdout)
    assert metrics["documents"] == 40
    assert {"accuracy", "macro_f1", "micro_f1", "auc", "intervals"} <= set(metrics)
    assert (tmp_path / "worst.jsonl").stat().st_size > 0

    report = tmp_path / os.fsdecode(b"caf\xe9 \n report.txt")  # no UTF-8, and two lines
    report.write_text("the ship and the sail")
    done = longbird("classify", run, report)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert "caf\\udce9 report.txt: " in done.stdout
    done = CliRunner().invoke(app, ["classify", str(run), str(report), str(table), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found) == 41
    assert found[0]["file"] == str(report)
    assert found[0]["label"] in ("sea", "mine")
    assert set(found[0]["scores"]) == {"sea", "mine"}
    assert sum(found[0]["scores"].values()) == pytest.approx(1, abs=1e-5)
    right = [row["label"] for row in found[1:]]
    expected = [["sea", "mine"][number % 2] for number in range(40)]
    share = sum(a == b for a, b in zip(right, expected, strict=True)) / 40
    assert share == pytest.approx(metrics["accuracy"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("finetune", "sing"), "No such command 'sing'"),
        (("finetune", "classify"), "at least one file"),
        (("finetune", "classify", "none.csv", "--out", "x"), "there is no file none.csv"),
        (("evaluate", "nowhere", "none.csv"), "nowhere"),
    ],
)
def test_mistakes_are_one_line(
    words: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # where --out is
    monkeypatch.setattr(sys, "argv", ["longbird", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
