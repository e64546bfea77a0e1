"""Folders of runs that are damaged, in use, or in the wrong place, and data that has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import transformers

import longbird as lb
from longbird.applications.training.engine import evaluation
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trainer import LongbirdTrainer
from longbird.applications.training.tasks.classify import Classify

OPTIONS: dict[str, Any] = {"length": 32, "tokens_per_batch": 128, "learning_rate": 1e-3}


def rows(folder: Path, number: int = 24) -> Path:
    """A file with documents of two classes."""
    file = folder / "train.csv"
    lines = [f"the {('old', 'new')[n % 2]} house {n},{n % 2}" for n in range(number)]
    file.write_text("text,label\n" + "\n".join(lines))
    return file


def run(file: Path, out: Path, model: Any, said: list[str] | None = None, **options: Any) -> Any:
    """A short run."""
    said = [] if said is None else said
    return lb.finetune(
        "classify", file, out, say=said.append, **{**OPTIONS, "model": str(model), **options}
    )


def test_of_equally_good_models_the_last_is_the_best() -> None:
    trainer: Any = LongbirdTrainer.__new__(LongbirdTrainer)
    trainer.args = transformers.TrainingArguments(
        "out", metric_for_best_model="eval_macro_f1", greater_is_better=True, save_strategy="steps"
    )
    trainer.state, bests = transformers.TrainerState(), []
    for step, value in enumerate([0.5, 0.7, 0.6, 0.7, 0.7, 0.6, 0.8, 0.7]):
        trainer.state.global_step = step
        trainer._determine_best_metric({"eval_macro_f1": value}, None)
        bests.append(trainer.state.best_global_step)
    assert bests == [0, 1, 1, 3, 4, 4, 6, 6]


@pytest.mark.slow  # trains
def test_a_damaged_best_checkpoint(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is named, and the last good one is kept instead."""
    falling = (1 / x for x in range(1, 100))  # so that the first model is the best
    monkeypatch.setattr(evaluation, "intervals", lambda *_: {})  # of a metric that is made up
    measure = Classify.measure
    monkeypatch.setattr(
        Classify, "measure", lambda *given: {**measure(*given), "macro_f1": next(falling)}
    )
    file, said = rows(tmp_path), []
    whole = run(file, tmp_path / "run", tiny, epochs=3)
    folder = RunFolder(tmp_path / "run")
    best = json.loads(folder.result.read_text())["best step"]
    last = max(folder.steps())
    assert best < last
    folder.result.unlink()
    weights = folder.checkpoint(best) / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    again = run(file, tmp_path / "run", tiny, said, epochs=3)
    assert whole.finished
    assert again.finished
    assert any(line.startswith("warning") and str(weights) in line for line in said)
    assert json.loads(folder.result.read_text())["best step"] == last


@pytest.mark.slow  # trains
def test_weights_that_are_kept_are_numbers(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gradient that is not finite stops the run before it changes the weights."""
    honest, calls = Classify.loss, []

    def finite_with_such_a_gradient(self: Any, outputs: Any, *more: Any) -> Any:
        calls.append(1)
        zero = (outputs.logits * 0).square().sum().sqrt() if len(calls) > 4 else 0
        return honest(self, outputs, *more) + zero

    monkeypatch.setattr(Classify, "loss", finite_with_such_a_gradient)
    with pytest.raises(ValueError, match=r"the gradient of step \d+ is nan.*with another `out`"):
        run(rows(tmp_path), tmp_path / "run", tiny, epochs=5, save_every=0, hold_out=0)
    folder = RunFolder(tmp_path / "run")
    assert folder.steps()
    for step in folder.steps():
        weights = safetensors.torch.load_file(folder.checkpoint(step) / "model.safetensors")
        assert all(torch.isfinite(x).all() for x in weights.values())


def test_what_is_in_use(tiny: Any, tmp_path: Path) -> None:
    """Another process in the same folder is refused; one that was killed is not in the way."""
    out = tmp_path / "run"
    out.mkdir()
    holding = f"""if True:
        import os, signal
        from pathlib import Path
        from longbird.applications.training.engine.run_folder import RunFolder
        with RunFolder(Path({str(out)!r})).in_use():
            print("holds", flush=True)
            signal.pause()
    """
    process = subprocess.Popen([sys.executable, "-c", holding], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "holds\n"
    with pytest.raises(FileExistsError, match="another process is training in"):
        run(rows(tmp_path), out, tiny)
    process.kill()
    process.communicate()
    with RunFolder(out).in_use():
        assert RunFolder(out).is_new()


@pytest.mark.slow  # trains
def test_changed_files(tiny: Any, tmp_path: Path) -> None:
    """A file that is new, changed or damaged is an error that names it, after the end too."""
    folder = tmp_path / "letters"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for number in range(6):
            (folder / name / f"{number}.txt").write_text(f"the house {name} {number}")
    (folder / "b" / "page.odt").write_text("<p>")
    out, said = tmp_path / "run", []
    run(folder, out, tiny, said, steps=1)
    assert any("left out are 1 files" in line and ".odt" in line for line in said)
    (folder / "a" / "new.txt").write_text("the house")
    with pytest.raises(ValueError, match=r"new\.txt is new since the run began"):
        run(folder, out, tiny, steps=1)
    (folder / "a" / "new.txt").unlink()
    assert run(folder, out, tiny, steps=1).finished
    (out / "result.json").write_text("{")
    with pytest.raises(ValueError, match=r"result\.json is damaged"):
        run(folder, out, tiny, steps=1)
    (out / "result.json").unlink()
    [cache] = (out / "cache").glob("train-*.arrow")
    os.truncate(cache, cache.stat().st_size // 2)
    assert run(folder, out, tiny, steps=1).finished


def test_a_run_inside_its_own_data(tiny: Any, tmp_path: Path) -> None:
    rows(tmp_path)
    with pytest.raises(ValueError, match=r"is inside of .* name another folder"):
        lb.finetune("classify", tmp_path, tmp_path / "run", model=str(tiny), **OPTIONS)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow  # trains
def test_validation_by_what_is_learned(tiny: Any, tmp_path: Path) -> None:
    file, said = rows(tmp_path), []
    run(file, tmp_path / "run", tiny, said, validation=str(file), steps=1)
    assert any(line.startswith("warning") and "is also learned from" in line for line in said)


def test_the_time_of_a_run_is_that_of_all_its_processes(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.seconds() == 0
    # Three processes, each of which counts from 0: 5 s, 10.1 s and 10.3 s.
    for step, runtime in enumerate((1.0, 5.0, 10.1, 10.2, 10.3)):
        began = (100.0, 100.0, 200.0, 300.0, 300.0)[step]
        folder.log({"step": step, "train_runtime": runtime, "began_seconds": began})
        folder.log({"step": step, "eval_loss": 1.0, "began_seconds": began})
    with folder.metrics.open("a", encoding="utf-8") as file:
        file.write('{"step": 9, "train_run')
    assert folder.seconds() == pytest.approx(5 + 10.1 + 10.3)
