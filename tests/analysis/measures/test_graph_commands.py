"""`longbird graph analyse`, `compare`, `path` and `plots`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import longbird as lb
from longbird.analysis.measures import plots
from longbird.cli.app import app


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["graph", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_analyse_prints_a_table_and_draws(tmp_path: Path) -> None:
    picture = tmp_path / "a.svg"
    output = run("analyse", "Window(8)", "-n", "256", "-o", str(picture))
    assert "Window(8), 256 tokens" in output
    assert picture.exists()
    line = next(line for line in output.splitlines() if line.startswith("diameter"))
    assert line.split() == ["diameter", "32", "exact"]


@pytest.mark.slow  # measures a graph
def test_analyse_prints_json() -> None:
    found = json.loads(run("analyse", "bigbird(block=16)", "-n", "200", "--heads", "2", "--json"))
    expected = lb.bigbird(block=16).analyse(200, heads=2)
    assert found["clustering"] == expected.clustering
    assert found["diameter"] == 2
    assert [head["edges"] for head in found["per_head"]] == [h.edges for h in expected.per_head]


def test_compare_has_a_row_for_each() -> None:
    output = run("compare", "Full", "Window(4)", "ErdosRenyi(0.1)", "-n", "100").splitlines()
    assert output[0] == "100 tokens"
    assert [line.split()[0] for line in output[2:-1]] == ["Full", "Window(4)", "ErdosRenyi(0.1)"]
    assert output[-1].startswith("~ from a sample")
    found = json.loads(run("compare", "Full", "Window(4)", "-n", "100", "--json"))
    assert [each["diameter"] for each in found] == [1, 25]


def test_paths_of_tokens() -> None:
    output = run("path", "Window(3) & Causal", "7", "0", "-n", "10").splitlines()
    assert output == [
        "token 7 hears of token 0 after 3 layers: each sees the next", "7 -> 4 -> 1 -> 0"
    ]  # fmt: skip
    assert "never" in run("path", "Window(3) & Causal", "0", "7", "-n", "10")
    found = json.loads(
        run("path", "Window(3) | GlobalTokens([5])", "0", "9", "-n", "10", "--json")
    )
    assert found == {"layers": 2, "path": [0, 5, 9]}
    found = json.loads(run("path", "Causal", "0", "9", "-n", "10", "--json"))
    assert found == {"layers": None, "path": None}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("compare Full -n 10", "two graphs or more"),
        ("analyse Nonsense -n 10", "Nonsense"),
        ("analyse Full -n 10 -o a.txt", r"ends in \.png"),
        ("analyse Full -n 10 -o nowhere/a.png", "there is no folder nowhere for a.png"),
        ("path Full 10 0 -n 10", "READER is token 10, and the last of 10 tokens is 9"),
    ],
)
def test_mistakes(line: str, message: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        CliRunner().invoke(app, ["graph", *line.split()], catch_exceptions=False)


def test_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "PLOTS", {"global": lambda: plots.global_token((64, 128))})
    assert "global.png" in run("plots", "-o", str(tmp_path / "new")).replace("\n", "")
    assert (tmp_path / "new" / "global.png").exists()
