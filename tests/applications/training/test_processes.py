"""Several processes learn what one learns, and a run goes on with another number of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
from asking import hotpot_file
from launched import two, without_dropout

from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.processes import shares_weights
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trainer import LongbirdTrainer

OPTIONS: dict[str, Any] = {
    "length": 128, "tokens_per_batch": 400, "steps": 8, "evaluate_every": 4, "save_every": 0,
    "learning_rate": 1e-3,
}  # fmt: skip
DIES = """
import os, signal, sys
from longbird.cli.app import main
from longbird.applications.training.engine.trainer import LongbirdTrainer

original = LongbirdTrainer.training_step

def dies(self, *args, **kwargs):
    if self.state.global_step == 5 and self.args.process_index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    assert not self.is_fsdp_enabled or type(next(self.model.parameters())).__name__ == "DTensor"
    return original(self, *args, **kwargs)

LongbirdTrainer.training_step = dies
main()
"""
NOT_FINITE = """
from longbird.cli.app import main
from longbird.applications.training.engine.trainer import LongbirdTrainer

original = LongbirdTrainer.compute_loss

def not_finite(self, *args, **kwargs):
    bad = self.state.global_step == 3 and self.args.process_index == 1
    return original(self, *args, **kwargs) * (float("nan") if bad else 1)

LongbirdTrainer.compute_loss = not_finite
main()
"""


@pytest.fixture(scope="module")
def calm(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return without_dropout(tiny, tmp_path_factory.mktemp("calm") / "model")


def words_of(task: str, file: Path, out: Path, model: Path) -> list[Any]:
    words: list[Any] = ["finetune", task, file, "--out", out, "--model", model]
    for name, value in OPTIONS.items():
        words += [f"--{name.replace('_', '-')}", value]
    return words


def assert_learned_the_same(one: Path, other: Path) -> None:
    """Every loss and every metric, the best model and the last."""
    mine, theirs = RunFolder(one).logged(), RunFolder(other).logged()
    assert len(mine) == len(theirs) > 8
    for ours, others in zip(mine, theirs, strict=True):
        names = {name for name in ours if not name.endswith(("_seconds", "_second", "_runtime"))}
        assert {name: ours[name] for name in names} == pytest.approx(
            {name: others[name] for name in names}, abs=1e-5
        )
    for folder in ("model", f"checkpoints/checkpoint-{OPTIONS['steps']}"):
        ours, others = (
            safetensors.torch.load_file(each / folder / "model.safetensors")
            for each in (one, other)
        )
        assert ours.keys() == others.keys()
        for name, tensor in ours.items():
            if name == "span.bias":
                continue  # it cancels in the softmax over positions: Adam follows its rounding
            assert (tensor - others[name]).abs().max() < 1e-4, name


@pytest.fixture(scope="module")
def whole(calm: Path, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One process, from beginning to end."""
    out = tmp_path_factory.mktemp("whole") / "run"
    finetune("classify", table, out, model=str(calm), **OPTIONS)
    return out


@pytest.mark.slow  # starts several processes
@pytest.mark.parametrize("launcher", ["torchrun", "FSDP"])
def test_what_two_began_one_ends(
    launcher: str, calm: Path, table: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "two"
    (tmp_path / "dies.py").write_text(DIES)
    done = two(launcher, tmp_path, tmp_path / "dies.py", *words_of("classify", table, out, calm))
    assert done.returncode != 0
    assert RunFolder(out).steps()[-1] == 5, done.stderr
    assert finetune("classify", table, out, model=str(calm), **OPTIONS).finished
    assert_learned_the_same(whole, out)


@pytest.mark.slow  # starts several processes
@pytest.mark.parametrize("launcher", ["torchrun", "efficient FSDP"])
def test_what_one_began_two_end(
    launcher: str,
    calm: Path,
    table: Path,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Killed(BaseException):
        pass

    original = LongbirdTrainer.training_step

    def dies(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.state.global_step == 5:
            raise Killed
        return original(self, *args, **kwargs)

    out = tmp_path / "one"
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(LongbirdTrainer, "training_step", dies)
        finetune("classify", table, out, model=str(calm), **OPTIONS)
    done = two(launcher, tmp_path, "-m", "longbird", *words_of("classify", table, out, calm))
    assert done.returncode == 0, done.stderr
    assert_learned_the_same(whole, out)


@pytest.mark.slow  # starts several processes
def test_a_loss_that_is_not_finite_in_one_process_stops_both(
    calm: Path, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    (tmp_path / "bad.py").write_text(NOT_FINITE)
    words = words_of("classify", table, out, calm)
    done = two("torchrun", tmp_path, tmp_path / "bad.py", *words)
    assert done.returncode != 0
    assert "the loss of step 4 is nan, for the documents" in done.stderr
    assert RunFolder(out).steps()[-1] == 3


@pytest.mark.slow  # starts several processes
def test_two_answer_questions_as_one(calm: Path, tmp_path: Path) -> None:
    file = hotpot_file(tmp_path / "hotpot.json")
    finetune("ask", file, tmp_path / "one", model=str(calm), **OPTIONS)
    words = words_of("ask", file, tmp_path / "two", calm)
    done = two("FSDP", tmp_path, "-m", "longbird", *words)
    assert done.returncode == 0, done.stderr
    assert_learned_the_same(tmp_path / "one", tmp_path / "two")


def test_fsdp_in_the_old_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(ValueError, match="fsdp_version: 2"):
        shares_weights()
    monkeypatch.setenv("FSDP_VERSION", "2")
    assert not shares_weights()  # one process has nobody to share with
