"""Two models compared: the p-value against every swap by hand, for every kind of task."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from longbird.applications.training.engine.comparison import compare
from longbird.applications.training.engine.evaluation import evaluate
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.tasks.choose import Choose
from longbird.applications.training.tasks.classify import Classify
from longbird.applications.training.tasks.embed.task import Embed
from longbird.applications.training.tasks.tag.task import Tag
from longbird.applications.training.tasks.task import Task
from longbird.cli.app import app


def classified(random: np.random.Generator, n: int) -> tuple[Task, list[Any], list[list[Any]]]:
    examples = [{"label": [str(random.choice(["a", "b", "c"]))]} for _ in range(n)]
    said = [[{"scores": random.random(3).tolist()} for _ in range(n)] for _ in range(2)]
    return Classify(["a", "b", "c"]), examples, said


def tagged(random: np.random.Generator, n: int) -> tuple[Task, list[Any], list[list[Any]]]:
    examples = [{"truth": random.integers(0, 3, 5).tolist()} for _ in range(n)]
    said = [[{"tags": random.integers(0, 3, 5)} for _ in range(n)] for _ in range(2)]
    return Tag(["B-x", "I-x", "O"]), examples, said


def chosen(random: np.random.Generator, n: int) -> tuple[Task, list[Any], list[list[Any]]]:
    examples = [{"label": int(random.integers(0, 4))} for _ in range(n)]
    said = [[{"scores": random.random(4).tolist()} for _ in range(n)] for _ in range(2)]
    return Choose(), examples, said


def searched(random: np.random.Generator, n: int) -> tuple[Task, list[Any], list[list[Any]]]:
    said = [[{"metrics": random.random(6), "documents": n} for _ in range(n)] for _ in range(2)]
    return Embed(), [{} for _ in range(n)], said


@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("made", [classified, tagged, chosen, searched])
@pytest.mark.parametrize("seed", [0, 1])
def test_against_every_swap(made: Any, seed: int) -> None:
    n = 7
    task, examples, (one, two) = made(np.random.default_rng(seed), n)
    found = compare(task, (examples, examples), (one, two))
    observed = {
        name: task.measure(examples, one)[name] - task.measure(examples, two)[name]
        for name in found
    }
    as_large = dict.fromkeys(found, 0)
    for swap in itertools.product((False, True), repeat=n):
        mine = [b if x else a for a, b, x in zip(one, two, swap, strict=True)]
        other = [a if x else b for a, b, x in zip(one, two, swap, strict=True)]
        first, second = task.measure(examples, mine), task.measure(examples, other)
        for name in found:
            as_large[name] += abs(first[name] - second[name]) >= abs(observed[name]) - 1e-9
    for name, each in found.items():
        assert each["difference"] == pytest.approx(observed[name])
        assert each["p_value"] == pytest.approx(as_large[name] / 2**n), name
        assert each["interval"][0] <= each["interval"][1]


def test_many_documents() -> None:
    random = np.random.default_rng(3)
    task, examples, (one, two) = chosen(random, 300)
    better = [
        {"scores": [float(number == example["label"]) for number in range(4)]}
        for example in examples
    ]
    sure = compare(task, (examples, examples), (better, two))["accuracy"]
    assert 0 < sure["p_value"] < 0.001
    assert sure["interval"][0] > 0.5
    alike = compare(task, (examples, examples), (one, one))["accuracy"]
    assert alike["p_value"] == 1
    assert alike["difference"] == 0
    # Over many draws of equally good models, few p-values are small.
    small = 0
    for seed in range(40):
        task, examples, (one, two) = chosen(np.random.default_rng(seed), 40)
        small += compare(task, (examples, examples), (one, two))["accuracy"]["p_value"] < 0.1
    assert small <= 9


@pytest.mark.slow  # trains two models
def test_evaluate_against(tiny: Path, table: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"length": 64, "tokens_per_batch": 400, "model": str(tiny)}
    good, poor = tmp_path / "good", tmp_path / "poor"
    finetune("classify", table, good, epochs=2, learning_rate=1e-2, **options)
    finetune("classify", table, poor, steps=1, learning_rate=0.0, **options)
    found = evaluate(good, table, against=poor, say=lambda _: None).metrics
    accuracy = found["against"]["metrics"]["accuracy"]
    alone = [evaluate(each, table, say=lambda _: None).metrics for each in (good, poor)]
    assert accuracy["value"] == pytest.approx(alone[0]["accuracy"])
    assert accuracy["other"] == pytest.approx(alone[1]["accuracy"])
    assert found["accuracy"] == alone[0]["accuracy"]
    runner = CliRunner()
    said = runner.invoke(
        app, ["evaluate", str(good), str(table), "--against", str(poor), "--json"]
    )
    assert said.exit_code == 0
    shown = json.loads(said.stdout.splitlines()[-1])
    assert shown["against"]["metrics"]["accuracy"]["p_value"] == accuracy["p_value"]
    said = runner.invoke(app, ["evaluate", str(good), str(table), "--against", str(poor)])
    assert "difference" in said.stdout
    assert "macro_f1" in said.stdout


@pytest.mark.slow  # trains, more than once
def test_what_cannot_be_compared(tiny: Path, table: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"length": 64, "steps": 1, "model": str(tiny)}
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace(",sea", ",lake"))
    finetune("classify", table, tmp_path / "one", **options)
    finetune("classify", other, tmp_path / "two", **options)
    file = tmp_path / "mines.csv"
    file.write_text("text,label\nthe gold,mine\niron,mine\n")
    with pytest.raises(ValueError, match="cannot be compared"):
        evaluate(tmp_path / "one", file, against=tmp_path / "two", say=lambda _: None)
