"""Odd files end in a clear sentence before the first step, or in an honest result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import longbird as lb
from longbird.applications.training.engine.run_folder import RunFolder

QUICK: dict[str, Any] = {"length": 64, "tokens_per_batch": 256, "steps": 2, "save_every": 300}


def write(folder: Path, rows: list[dict[str, Any]], name: str = "train.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def rows(count: int = 12, **changed: Any) -> list[dict[str, Any]]:
    return [
        {"text": f"ship {'sail ' * number}", "label": "ab"[number % 2], **changed}
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ([], {}, "has no rows"),
        (rows(label="a"), {}, "1 label .a., expected two or more"),
        (rows(text=None), {}, "line 1: the column text holds null, expected text"),
        (rows(text=[1]), {}, r"line 1: the column text holds \[1\], expected text"),
        (rows(label=""), {}, "line 1: the column label is empty"),
        (rows(), {"label": "kind"}, "`label=kind` names a column that is not among"),
        ([*rows(), {"text": "a"}], {}, "line 13 has no column label; it has text"),
        (rows(), {"group": "author"}, "has no column author"),
        (rows(text="the same"), {}, "of one group"),
        (rows(), {"hold_out": 0.95}, "`hold_out` must be between 0 and 0.9"),
        (rows(), {"lora": -1}, "`lora` must be between"),
        (rows(), {"frozen_layers": 9}, "at most the 2 layers"),
        (rows(), {"schedule": "up"}, "one of linear, cosine, constant"),
        (rows(), {"graph": "Nothing()"}, "Nothing"),
        (rows(), {"length": 10**9}, "length|memory|free"),
    ],
)
def test_said_before_the_first_step(
    given: list[Any], options: dict[str, Any], said: str, tiny: Path, tmp_path: Path
) -> None:
    file = write(tmp_path, given)
    with pytest.raises(ValueError, match=said):
        lb.finetune("classify", file, tmp_path / "run", model=str(tiny), **{**QUICK, **options})
    assert not RunFolder(tmp_path / "run").steps()


def test_labels_that_the_training_files_lack(tiny: Path, tmp_path: Path) -> None:
    file, other = write(tmp_path, rows()), write(tmp_path, rows(4, label="c"), "other.jsonl")
    with pytest.raises(ValueError, match=r"other.jsonl, line 1 has the label 'c'.*knows a, b"):
        lb.finetune("classify", file, tmp_path / "run", model=str(tiny), validation=other, **QUICK)


@pytest.mark.slow  # trains
def test_documents_without_words_and_far_too_long_ones(tiny: Path, tmp_path: Path) -> None:
    odd = [{"text": "", "label": "a"}, {"text": "ship " * 200_000, "label": "b"}, *rows()]
    lines: list[str] = []
    file = write(tmp_path, odd)
    run = lb.finetune(
        "classify", file, tmp_path / "run", say=lines.append, model=str(tiny), **QUICK
    )
    assert run.finished
    assert any("longer than the 64 tokens" in line for line in lines)
    found = lb.evaluate(run.path, file, say=lines.append)
    assert found.metrics["documents"] == len(odd)


@pytest.mark.slow  # trains
def test_several_labels(tiny: Path, tmp_path: Path) -> None:
    given = [
        {"text": f"ship {'sail ' * number}", "label": ["a", "b", "c"][: number % 4]}
        for number in range(24)
    ]
    run = lb.finetune(
        "classify", write(tmp_path, given), tmp_path / "run", model=str(tiny),
        class_weights="balanced", **QUICK,
    )  # fmt: skip
    model = lb.LongbirdForSequenceClassification.from_pretrained(run.model)
    assert model.config.problem_type == "multi_label_classification"
    assert set(run.metrics["validation"]) >= {"accuracy", "macro_f1", "micro_f1", "auc"}


@pytest.mark.slow  # trains
def test_a_file_that_changed_and_a_folder_that_is_no_run(tiny: Path, tmp_path: Path) -> None:
    file, out = write(tmp_path, rows()), tmp_path / "run"
    lb.finetune("classify", file, out, model=str(tiny), **QUICK)
    RunFolder(out).result.unlink()
    write(tmp_path, rows(13))
    with pytest.raises(ValueError, match=r"train.jsonl is not what it was when the run began"):
        lb.finetune("classify", file, out, model=str(tiny), **QUICK)
    with pytest.raises(FileExistsError, match="is not the folder of a run"):
        lb.finetune("classify", file, tmp_path, model=str(tiny), **QUICK)
    with pytest.raises(FileNotFoundError, match="a run that is not finished"):
        lb.evaluate(out, file)


@pytest.mark.slow  # trains, more than once
def test_a_full_disk(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import longbird.applications.training.engine.trainer as trainer

    def full(self: Any, folder: str) -> None:
        raise OSError(28, "No space left on device")

    file, out = write(tmp_path, rows()), tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(trainer.LongbirdTrainer, "_save_optimizer_and_scheduler", full)
        with pytest.raises(OSError, match=r"checkpoint-1 was not written.*the same command"):
            lb.finetune("classify", file, out, model=str(tiny), **{**QUICK, "save_every": 0})
    assert not list(RunFolder(out).checkpoints.iterdir())
    assert lb.finetune(
        "classify", file, out, model=str(tiny), **{**QUICK, "save_every": 0}
    ).finished


@pytest.mark.slow  # trains
def test_a_mistake_can_be_mended_in_the_same_folder(tiny: Path, tmp_path: Path) -> None:
    file, out = write(tmp_path, rows()), tmp_path / "run"
    with pytest.raises(ValueError, match="`label=kind`"):
        lb.finetune("classify", file, out, model=str(tiny), label="kind", **QUICK)
    longer = {**QUICK, "length": 128}  # another model to start from
    with pytest.raises(ValueError, match="at most the 2 layers"):
        lb.finetune("classify", file, out, model=str(tiny), frozen_layers=9, **longer)
    run = lb.finetune("classify", file, out, model=str(tiny), **QUICK)
    assert run.finished
    assert not RunFolder(out).start.exists()
