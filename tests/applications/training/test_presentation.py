"""What users see: tables of labels, predictions as text, runners-up, warnings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longbird.applications.training.data.files import rows
from longbird.applications.training.engine.evaluation import evaluate
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.metrics import classification
from longbird.applications.training.settings.tasks import (
    ClassifySettings,
    SummarizeSettings,
    TagSettings,
)
from longbird.applications.training.tasks.classify import Classify
from longbird.applications.training.tasks.summarize.task import Summarize
from longbird.applications.training.tasks.tag.task import Tag
from longbird.cli.app import app

SHORT: dict[str, Any] = {"length": 64, "tokens_per_batch": 400, "steps": 2, "save_every": 300}


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def run(tiny: Path, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("presented") / "run"
    finetune("classify", table, out, model=str(tiny), say=silent, **SHORT)
    return out


def test_the_report_has_tables_of_labels_and_predictions_as_text(run: Path) -> None:
    page = RunFolder(run).report.read_text()
    assert "Confusion matrix" in page
    assert "<th>true label<th>mine<th>sea" in page
    assert "<th>precision<th>recall<th>F1<th>documents" in page
    worst = page.split("most wrong about")[1]
    assert "&quot;scores&quot;" not in worst
    assert "; then " in worst


def test_evaluate_has_the_same_tables(run: Path, table: Path) -> None:
    found = evaluate(run, table, say=silent).metrics
    counts = found["confusion"]["counts"]
    assert [sum(row) for row in counts] == [20, 20]
    assert sum(counts[n][n] for n in range(2)) / 40 == pytest.approx(found["accuracy"])
    shown = CliRunner().invoke(app, ["evaluate", str(run), str(table)], env={"COLUMNS": "160"})
    assert shown.exit_code == 0, shown.output
    for words in ("Confusion matrix", "precision", "worst examples", "; then "):
        assert words in shown.output
    assert "{" not in shown.output


def test_classify_shows_the_runners_up(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("the ship and the sail")
    shown = CliRunner().invoke(app, ["classify", str(run), str(file)]).stdout
    assert shown.count("(0.") == 2
    assert "; then " in shown
    scores = {"a": 0.5, "b": 0.125, "c": 0.25, "d": 0.125}
    text = Classify(list(scores)).as_text({"label": "a", "scores": scores})
    assert text == "a (0.50); then c (0.25), b (0.12)"


@pytest.mark.parametrize(
    ("task", "settings", "other"),
    [
        (Classify, ClassifySettings, "stars"),
        (Summarize, SummarizeSettings, "gist"),
        (Tag, TagSettings, "places"),
    ],
)
def test_a_table_of_text_and_one_other_column(
    task: Any, settings: Any, other: str, tmp_path: Path
) -> None:
    file, lines = tmp_path / "a.jsonl", list[str]()
    value: Any = [[0, 3, "who"]] if task is Tag else "yes"
    file.write_text(json.dumps({other: value, "text": "she went home"}) + "\n")
    [example] = task().examples(rows([file]), settings(task.name, (str(file),)), lines.append)
    assert example["text"] == "she went home"
    assert any(f"the column {other} is taken" in line for line in lines)
    more = tmp_path / "b.jsonl"
    more.write_text(json.dumps({other: value, "text": "she", "more": 1}) + "\n")
    with pytest.raises(ValueError, match="which column"):
        list(task().examples(rows([more]), settings(task.name, (str(more),)), silent))


def test_empty_documents_are_counted(tiny: Path, tmp_path: Path) -> None:
    file, lines = tmp_path / "a.csv", list[str]()
    texts = [*(["the ship"] * 3), *([" "] * 20), *(["iron gold"] * 3)]
    file.write_text("text,label\n" + "".join(f'"{x}",{n % 2}\n' for n, x in enumerate(texts)))
    finetune(
        "classify", file, tmp_path / "run", model=str(tiny), say=lines.append,
        **{**SHORT, "hold_out": 0.0},
    )  # fmt: skip
    assert "warning: 20 of 26 documents to learn from have no text" in lines


def test_many_labels_have_a_small_confusion_matrix() -> None:
    import numpy as np

    truth = np.eye(100, dtype=bool)[np.arange(400) % 100]
    truth[:50] = np.eye(100, dtype=bool)[7]
    found = classification.measure(
        truth, truth.astype(float), [f"l{n}" for n in range(100)], False
    )
    assert len(found["confusion"]["labels"]) == classification.MOST_CONFUSED
    assert "l7" in found["confusion"]["labels"]
    assert found["by_label"]["l7"]["documents"] == truth[:, 7].sum()
