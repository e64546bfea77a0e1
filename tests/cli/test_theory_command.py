from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from longbird.cli.app import app


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    """Runs `longbird theory` as in a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["theory", *arguments], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.stdout

    return run


def test_turing(run, tmp_path) -> None:
    assert "increment" in run("turing")
    assert "increment" in [each["machine"] for each in json.loads(run("turing", "--json"))]
    with pytest.raises(ValueError, match="nothing to draw without a machine"):
        run("turing", "-o", str(tmp_path / "none.png"))
    said = run("turing", "increment", "111", "-o", str(tmp_path / "run.png"))
    assert "halts in done after 8 steps" in said
    assert "1 0 0 0, from cell -1" in said
    assert (tmp_path / "run.png").exists()


def test_turing_with_a_file(run, tmp_path) -> None:
    file = tmp_path / "flip.tm"
    file.write_text("start: q\nblank: _\nq a -> b R q\nq b -> a R q\n")
    found = json.loads(run("turing", str(file), "abba", "--json", "--steps", "3"))
    assert found["ok"]
    assert not found["halted"]
    assert found["steps"] == 3
    assert found["configurations"][1] == ["q", "b", 1]
    assert found["tape"] == {"0": "b", "1": "a", "2": "a", "3": "a"}
    with pytest.raises(ValueError, match=r"line 3: the move is 'X'"):
        file.write_text("start: q\nblank: _\nq a -> b X q\n")
        run("turing", str(file))


def test_turing_says_when_a_step_differs(run, monkeypatch: pytest.MonkeyPatch) -> None:
    from longbird.analysis.theory import turing

    monkeypatch.setattr(turing, "cross_edges", lambda nodes, cells: nodes[:0, None].repeat(2, 1))
    assert "FAILED  after step 0" in run("turing", "increment", "111", code=1)


def test_universality(run, tmp_path) -> None:
    said = run("universality", "-o", str(tmp_path / "codes.svg"))
    assert "24 codes, 24 expected" in said
    assert "have the same code" in said
    assert (tmp_path / "codes.svg").exists()
    assert "no star" in run("universality", "Window(1)", code=1)
    (found,) = json.loads(run("universality", "Full", "-n", "2", "--json"))
    assert found["ok"]
    assert found["star"] == 0
    assert found["distinct"] == 8
    assert "off by up to 4.1" in run(
        "universality", "GlobalTokens([0]) | Window(0)", "--softmax", "20"
    )


def test_furthest(run, tmp_path) -> None:
    picture = str(tmp_path / "furthest.svg")
    said = run("furthest", "-n", "8", "--hubs", "2", "--graph", "Window(1)", "-o", picture)
    assert "2 hubs" in said
    assert "full attention" in said
    assert "Window(radius" in said
    assert max(map(len, said.splitlines())) <= 80
    found = json.loads(run("furthest", "-n", "8", "--instance", "bits", "--json"))
    assert [each["n"] for each in found] == [8] * 3
    assert found[0]["layers"] == 1
    said = run("furthest", "-n", "4", "--graph", "Edges([])", "--json")
    found = json.loads(said, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert found[-1]["comparisons"] is None
    assert found[-1]["edges"] == 0


@pytest.mark.parametrize("command", ["turing", "universality", "furthest"])
def test_a_picture_of_an_unknown_kind_is_refused_at_once(run, command: str) -> None:
    with pytest.raises(ValueError, match=r"expected a name that ends in \.png"):
        run(command, *["increment"] * (command == "turing"), "-o", "picture.txt")
