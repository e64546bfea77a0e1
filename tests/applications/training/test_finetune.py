"""Runs that are stopped, killed, corrupted and shared end as one that was not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import longbird as lb
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trainer import LongbirdTrainer, NotFinite

OPTIONS: dict[str, Any] = {
    "length": 128, "tokens_per_batch": 400, "epochs": 2, "learning_rate": 1e-2, "save_every": 0,
}  # fmt: skip


def weights(run: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(RunFolder(run).model / "model.safetensors")


def assert_same_weights(one: Path, other: Path) -> None:
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


@pytest.fixture(scope="module")
def whole(tiny: Path, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert finetune("classify", table, out, model=str(tiny), **OPTIONS).finished
    return out


def test_a_run_holds_everything(whole: Path) -> None:
    run = RunFolder(whole)
    for file in (run.settings, run.data, run.metrics, run.report, run.result, run.worst):
        assert file.stat().st_size > 0, file
    assert (run.start / "certificate.json").exists()  # 64 positions became 128
    assert {"loss.png", "metrics.png", "lengths.png"} == {x.name for x in run.plots.iterdir()}
    assert "## Quality" in (run.model / "README.md").read_text()
    model = lb.LongbirdForSequenceClassification.from_pretrained(run.model)
    assert model.config.id2label == {0: "mine", 1: "sea"}
    losses = [line["loss"] for line in run.logged() if "loss" in line]
    assert sum(losses[-3:]) < sum(losses[:3])
    assert [line["step"] for line in run.logged() if "loss" in line] == list(
        range(1, len(losses) + 1)
    )
    assert "http" not in run.report.read_text().replace("http-equiv", "")


@pytest.mark.slow  # trains
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("step", [1, 3, 7])
def test_a_stopped_run_ends_with_the_same_weights(
    step: int, whole: Path, tiny: Path, table: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    class Killed(BaseException):
        pass

    original = LongbirdTrainer.training_step

    def dies(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == step:
            raise Killed
        return original(self, *args, **kwargs)

    out = tmp_path / "run"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LongbirdTrainer, "training_step", dies)
        finetune("classify", table, out, model=str(tiny), **OPTIONS)
    torch.manual_seed(123)  # another state than the first process had
    assert finetune("classify", table, out, model=str(tiny), **OPTIONS).finished
    assert_same_weights(whole, out)
    steps = [line["step"] for line in RunFolder(out).logged() if "loss" in line]
    assert steps == sorted(set(steps))


@pytest.mark.slow  # trains
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize(
    "place", ["engine.trainer.LongbirdTrainer.evaluate", "engine.finetune.write_report"]
)
def test_a_run_that_is_killed_after_its_steps_takes_no_more_and_measures_all(
    place: str, whole: Path, tiny: Path, table: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """Trainer itself would begin another epoch, or leave out the evaluation after one."""

    class Killed(BaseException):
        pass

    def dies(*args: Any, **kwargs: Any) -> Any:
        raise Killed

    out = tmp_path / "run"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(f"longbird.applications.training.{place}", dies)
        finetune("classify", table, out, model=str(tiny), **OPTIONS)
    assert finetune("classify", table, out, model=str(tiny), **OPTIONS).finished
    assert_same_weights(whole, out)
    ours, theirs = (
        [(line["step"], "loss" in line) for line in RunFolder(each).logged()]
        for each in (whole, out)
    )
    assert ours == theirs


@pytest.mark.slow  # two runs
def test_a_broken_checkpoint_is_named_and_the_one_before_is_used(
    whole: Path, tiny: Path, table: Path, tmp_path: Path
) -> None:
    out, lines = tmp_path / "run", []
    finetune("classify", table, out, model=str(tiny), **OPTIONS)
    run = RunFolder(out)
    run.result.unlink()
    last = run.checkpoint(run.steps()[-1]) / "optimizer.pt"
    data = bytearray(last.read_bytes())
    data[len(data) // 2] ^= 1
    last.write_bytes(data)
    assert finetune("classify", table, out, say=lines.append, model=str(tiny), **OPTIONS).finished
    assert any(str(last) in line and "sha256" in line for line in lines)
    assert_same_weights(whole, out)


@pytest.mark.slow  # trains
def test_ctrl_c_saves_and_says_how_to_go_on(
    whole: Path, tiny: Path, table: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    original = LongbirdTrainer.training_step

    def interrupts(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, *args, **kwargs)

    out, lines = tmp_path / "run", []
    with monkeypatch.context() as patched:
        patched.setattr(LongbirdTrainer, "training_step", interrupts)
        stopped = finetune("classify", table, out, say=lines.append, model=str(tiny), **OPTIONS)
    assert not stopped.finished
    assert "step 5" in lines[-1]
    assert "the same command" in lines[-1]
    assert finetune("classify", table, out, model=str(tiny), **OPTIONS).finished
    assert_same_weights(whole, out)


@pytest.mark.slow  # trains
def test_a_loss_that_is_not_finite_names_the_documents(
    tiny: Path, table: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    original = LongbirdTrainer.compute_loss

    def breaks(self: Any, *args: Any, **kwargs: Any) -> Any:
        loss = original(self, *args, **kwargs)
        return loss * float("nan") if self.state.global_step == 3 else loss

    out = tmp_path / "run"
    with monkeypatch.context() as patched, pytest.raises(NotFinite, match=r"step 4 is nan.*line"):
        patched.setattr(LongbirdTrainer, "compute_loss", breaks)
        finetune("classify", table, out, model=str(tiny), **OPTIONS)
    kept = safetensors.torch.load_file(RunFolder(out).checkpoint(3) / "model.safetensors")
    assert all(x.isfinite().all() for x in kept.values())


def test_other_settings_are_not_the_same_run(whole: Path, tiny: Path, table: Path) -> None:
    with pytest.raises(FileExistsError, match="`seed` was 0 and is 1"):
        finetune("classify", table, whole, model=str(tiny), seed=1, **OPTIONS)


@pytest.mark.slow  # trains
def test_another_model_in_the_same_folder_is_not_the_same_run(
    tiny: Path, table: Path, tmp_path: Path
) -> None:
    model, out = tmp_path / "model", tmp_path / "run"
    shutil.copytree(tiny, model)
    short: dict[str, Any] = {**OPTIONS, "epochs": None, "steps": 1}
    short |= {"model": str(model), "length": 64}
    finetune("classify", table, out, **short)
    RunFolder(out).result.unlink()
    weights = safetensors.torch.load_file(model / "model.safetensors")
    name = next(iter(weights))
    safetensors.torch.save_file({**weights, name: weights[name] + 1}, model / "model.safetensors")
    with pytest.raises(ValueError, match=r"model\.safetensors is not what it was"):
        finetune("classify", table, out, **short)


@pytest.mark.slow  # trains
def test_a_run_goes_on_from_the_model_of_another(whole: Path, table: Path, tmp_path: Path) -> None:
    """By the folder of the run, as `longbird evaluate` takes it."""
    options: dict[str, Any] = {**OPTIONS, "epochs": None, "steps": 1}
    other = finetune("classify", table, tmp_path / "second", model=str(whole), **options)
    assert str(whole / "model" / "model.safetensors") in RunFolder(other.path).data.read_text()
    (whole / "result.json").rename(tmp_path / "result.json")
    try:
        with pytest.raises(FileNotFoundError, match="not finished"):
            finetune("classify", table, tmp_path / "third", model=str(whole), **options)
    finally:
        (tmp_path / "result.json").rename(whole / "result.json")


@pytest.mark.slow  # a run
def test_the_settings_of_a_run_start_the_same_run(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    assert finetune("classify", (), out, config=RunFolder(whole).settings).finished
    assert_same_weights(whole, out)


@pytest.mark.slow  # trains
@pytest.mark.fast_cases(2)
@pytest.mark.parametrize(
    "options",
    [
        {"lora": 2},
        {"frozen_layers": 1},
        {"frozen_words": True},
        {"bf16": True},
        {"gradient_checkpointing": True},
        {"class_weights": "balanced"},
        {"accumulate": 2, "schedule": "cosine", "clip": 0.0},
        {"patience": 1, "evaluate_every": 2},
        {"graph": "Window(16)", "length": 64},
        {"hold_out": 0.0},
    ],
    ids=lambda options: ",".join(options),
)
def test_options(options: dict[str, Any], tiny: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    short: dict[str, Any] = {**OPTIONS, "epochs": 1, "save_every": 300, **options}
    assert finetune("classify", table, out, model=str(tiny), **short).finished
    model = lb.LongbirdForSequenceClassification.from_pretrained(RunFolder(out).model)
    start = lb.LongbirdModel.from_pretrained(
        RunFolder(out).start if short["length"] > 64 else tiny
    )
    moved = {
        name: not torch.equal(value, start.state_dict()[name])
        for name, value in model.longbird.state_dict().items()
        if name in start.state_dict()
    }
    frozen = {name for name, changed in moved.items() if not changed}
    if "frozen_layers" in options:
        assert all(name.startswith(("embeddings", "layers.0")) for name in frozen)
        assert frozen
    elif "frozen_words" in options:
        assert frozen == {"embeddings.tokens.weight"}
    elif "lora" in options:
        assert "embeddings.tokens.weight" in frozen
    if "gradient_checkpointing" in options:
        assert not frozen


@pytest.mark.slow  # starts several processes
def test_kill_minus_nine(whole: Path, tiny: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    script = tmp_path / "run.py"
    script.write_text(
        "from longbird.applications.training.engine.finetune import finetune\n"
        f"finetune('classify', {str(table)!r}, {str(out)!r}, model={str(tiny)!r}, **{OPTIONS!r})\n"
    )
    kills = 0
    while True:
        process = subprocess.Popen([sys.executable, script])
        seen = len(RunFolder(out).steps())
        while process.poll() is None:
            time.sleep(0.02)
            run = RunFolder(out)
            saving = list(run.checkpoints.glob(".saving-*"))
            if kills < 3 and saving and (run.steps() or [0])[-1] >= 2 * kills + 1:
                process.kill()
        if process.wait() == 0:
            break
        kills += 1
        assert kills < 10, seen
    assert kills >= 1
    assert_same_weights(whole, out)
