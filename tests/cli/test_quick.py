"""The command answers before it imports anything that takes long."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "matplotlib", "numpy", "scipy", "pandas")

# Runs the command in this very process, then says what it imported.
SCRIPT = f"""
import json, sys
from longbird.cli.app import main
sys.argv[0] = "longbird"
try:
    main()
finally:
    print(json.dumps([name for name in {HEAVY} if name in sys.modules]), file=sys.__stderr__)
"""


def imported(*arguments: str, **environment: str) -> tuple[list[str], str]:
    """What a command line imports of what takes long, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    return json.loads(done.stderr.splitlines()[-1]), done.stdout + done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "--help", "--version", "", "demo --help", "info --help", "graph --help",
        "graph show --help", "graph analyse --help", "graph analyse", "graph compare --help",
        "graph plots --help", "embed --help", "search --help", "theory --help",
        "theory turing --help", "check --help", "plan --help", "convert --help",
        "dna --help", "dna scan --help", "dna finetune", "nonsense",
        "check", "plan -n ten", "plan --nonsense", "embed", "embed x --unit page",
        "plan bigbird --layers 0", "--show-completion",
    ],
)  # fmt: skip
def test_nothing_heavy_is_imported(line: str) -> None:
    heavy, said = imported(*line.split())
    assert heavy == [], said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("convert nowhere out", "there is no folder nowhere"),
        ("convert ./nowhere out", "there is no folder ./nowhere"),
        ("convert empty out", "no config.json"),
        ("convert there full", "full exists already"),
        ("convert there /proc/new", "/proc/new cannot be made"),
        ("embed nowhere.txt --out out.npy", "there is no file nowhere.txt"),
        ("embed full --out out.csv", "out.csv ends in '.csv'"),
        ("embed full --out out.npy --model nowhere", "there is no folder nowhere"),
        ("search nowhere.npy word", "there is no file nowhere.npy"),
        ("dna finetune sorting full", "TASK must be one of promoter"),
        ("dna pretrain nowhere.fa", "there is no file nowhere.fa"),
        ("dna scan nowhere full --out out.bed", "there is no folder nowhere"),
        ("dna scan there full --out out.txt", "out.txt ends in '.txt'"),
        ("dna evaluate there nowhere.fa", "there is no file nowhere.fa"),
        ("convert there out --task sorting", "--task must be one of"),
        ("convert there out --problem-type sums", "--problem-type must be one of"),
        ("convert there out --pooling most", "--pooling must be one of"),
        ("convert there out --graph Windo(3)", "Windo"),
        ("check bigbird --impl foo", "--impl must be one of native"),
    ],
)
def test_wrong_values_are_answered_at_once(
    line: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("there", "full", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "there" / "config.json").write_text("{}")
    (tmp_path / "full" / "notes.txt").touch()
    heavy, said = imported(*line.split())
    assert not set(heavy) - {"numpy"}, said
    assert f"error: {complaint}" in said or complaint in said.partition("error:")[2]
    assert not (tmp_path / "out").exists()


def test_names_are_those_of_the_library() -> None:
    """The command has them by itself, so that it can answer without the library."""
    from longbird.cli.convert import POOLINGS, PROBLEM_TYPES
    from longbird.cli.options import IMPLEMENTATIONS
    from longbird.core.operator.dispatch import ALL
    from longbird.models.field_rules import RULES

    assert tuple(each.NAME for each in ALL) == IMPLEMENTATIONS
    assert RULES["pooling"].expected == f"one of {', '.join(POOLINGS)}"
    assert RULES["problem_type"].expected == f"one of {', '.join(PROBLEM_TYPES)}, or None"


@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("command", ["convert", "", "plan", "graph show", "check", "demo"])
def test_help_is_readable_on_80_columns(command: str) -> None:
    said = imported(*command.split(), "--help", COLUMNS="80", TERMINAL_WIDTH="80")[1]
    assert "…" not in said  # nothing is cut
    for line in said.splitlines():
        if re.search(r"--(help|json|quick|new-head|version|debug|backward)\b", line):
            assert "bool" not in line.lower(), said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("longbird gr", "graph"),
        ("longbird graph show big", "bigbird"),
        ("longbird graph show Win", "Window"),
        ("longbird check bigbird --impl na", "native"),
        ("longbird check bigbird --dtype bf", "bfloat16"),
        ("longbird convert mini", "minilm"),
        ("longbird convert x y --task tok", "token-classification"),
        ("longbird convert x y --problem-type reg", "regression"),
        ("longbird convert x y --graph big", "bigbird"),
    ],
)
def test_completion(shell: str, typed: str, offered: str) -> None:
    heavy, said = imported(
        _LONGBIRD_COMPLETE=f"complete_{shell}",
        COMP_WORDS=typed,
        COMP_CWORD=str(len(typed.split()) - 1),
        _TYPER_COMPLETE_ARGS=typed,
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _TYPER_COMPLETE_WORD_TO_COMPLETE=typed.split()[-1],
    )
    assert not set(heavy) - {"numpy"}, said  # which graphs are made of
    assert offered in said


def test_version_is_the_packages() -> None:
    import longbird

    assert f"longbird {longbird.__version__}" in imported("--version")[1]


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("line", ["--help", "check --help", "--version", "nonsense"])
def test_answers_quickly(line: str) -> None:
    """0.2 s on an idle core; processor time, as others may be running, and room for slow disks."""
    before = os.times()
    start = time.perf_counter()
    imported(*line.split())
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    assert min(spent, time.perf_counter() - start) < 1.0
