"""Options are defined once: the command, the checks and run.toml follow the definition."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
from typer.main import get_command
from typer.testing import CliRunner

from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder, read_json
from longbird.applications.training.settings.definition import (
    described,
    make_settings,
    options_of,
    read_settings,
)
from longbird.applications.training.settings.tasks import (
    SETTINGS,
    CausalSettings,
    ClassifySettings,
)
from longbird.cli.app import app

OLD = """
[longbird]
task = "classify"
train = ["a.csv"]
validation = []
test = []
answer_tokens = 30
summary_tokens = 128
beams = 8
encoding = "utf-8"
documents = "file"
hold_out = 0.1
model = "minilm"
length = 4096
tokens_per_batch = 16384
accumulate = 1
epochs = 3.0
learning_rate = 5e-05
warmup = 0.1
schedule = "linear"
weight_decay = 0.01
clip = 1.0
bf16 = false
gradient_checkpointing = false
frozen_layers = 0
frozen_words = false
lora = 0
class_weights = "balanced"
mask = 0.15
whole_words = false
temperature = 0.05
symmetric = false
tokens_at_once = 16384
patience = 0
evaluate_every = 0
save_every = 300.0
seed = 0
"""
"""A run.toml of version 0.2, which lists the options of all tasks."""
SHORT: dict[str, Any] = {"length": 64, "tokens_per_batch": 400, "save_every": 300}


def silent(_: str) -> None:
    pass


def make(**given: Any) -> ClassifySettings:
    return make_settings(ClassifySettings, "classify", "a.csv", given)


@pytest.mark.parametrize("task", SETTINGS)
def test_the_command_has_the_options_of_its_task_and_no_others(task: str) -> None:
    words = ["pretrain"] if task in ("mlm", "causal") else ["finetune", task]
    command: Any = get_command(app)
    for word in words:
        command = command.commands[word]
    names = {parameter.name for parameter in command.params}
    own = {*options_of(SETTINGS["mlm" if words == ["pretrain"] else task])}
    assert names == own | {"files", "out", "config", "extend"} | (
        {"objective"} if words == ["pretrain"] else set()
    )


@pytest.mark.parametrize("task", SETTINGS)
def test_every_option_is_described(task: str) -> None:
    for option in options_of(SETTINGS[task]).values():
        assert option.help.endswith("."), option.name
        assert len(option.help) < 170, option.name
    assert len(list(described(SETTINGS[task]))) == len(options_of(SETTINGS[task]))


def test_definitions_need_no_torch() -> None:
    code = (
        "import sys, longbird.cli.app\n"
        "sys.exit(bool({'torch', 'transformers', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("lr", "unknown option `lr`: use `learning_rate`"),
        ("num_train_epochs", "use `epochs`"),
        ("batch_size", "use `tokens_per_batch`; batches are filled by tokens"),
        ("per_device_train_batch_size", "use `tokens_per_batch`"),
        ("beams", "classify has no option `beams`, which belongs to summarize"),
        ("seeds", "did you mean `seed`"),
        ("colour", "expected one of .*text"),
    ],
)
def test_unknown_options_in_python(name: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make(**{name: 1})


@pytest.mark.parametrize(
    ("flag", "said"),
    [("--lr", "--learning-rate"), ("--batch-size", "--tokens-per-batch"), ("--seeds", "--seed")],
)
def test_unknown_options_on_the_command_line(flag: str, said: str) -> None:
    found = CliRunner().invoke(app, ["finetune", "classify", "x.csv", flag, "1"])
    assert found.exit_code == 2
    assert said in found.output


def test_steps_and_epochs_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`steps` and `epochs`"):
        make(steps=3, epochs=2)
    file = tmp_path / "run.toml"
    file.write_text(make(steps=3).toml())
    assert make(config=file).steps == 3
    assert make(config=file, epochs=2.0).steps is None
    file.write_text(make(epochs=7.0).toml())
    assert make(config=file, steps=3).steps == 3


def test_a_file_of_the_last_version(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(OLD)
    read = ClassifySettings(**read_settings(file, ClassifySettings))
    assert read == make(class_weights="balanced")
    assert make(config=file, seed=3).seed == 3
    again = tmp_path / "again.toml"
    again.write_text(read.toml())
    assert "beams" not in again.read_text()
    assert ClassifySettings(**read_settings(again, ClassifySettings)) == read
    file.write_text(f"{OLD}\nlr = 3\n")
    with pytest.raises(ValueError, match=r"run.toml: unknown option `lr`: use `learning_rate`"):
        read_settings(file, ClassifySettings)


def test_the_page_of_options_has_every_option() -> None:
    docs = Path(__file__).parents[3] / "docs"
    spec = importlib.util.spec_from_file_location("site_parts_of_options", docs / "site_parts.py")
    assert spec is not None
    assert spec.loader is not None
    site_parts: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site_parts)
    named = re.findall(r"```\{options\} (\w+)", (docs / "options.md").read_text())
    shared = {row[0] for row in site_parts.option_rows("FileSettings")}
    for kind in {*SETTINGS.values()} - {CausalSettings}:  # pretrain has a table of both objectives
        assert kind.__name__ in named
        own = {row[0] for row in site_parts.option_rows(kind.__name__)}
        assert own | shared == options_of(kind).keys(), kind.__name__


@pytest.mark.slow  # trains
def test_a_finished_run_can_be_extended(tiny: Path, table: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "model": str(tiny), "warmup": 0.0, "schedule": "constant", "say": silent, **SHORT
    }  # fmt: skip
    whole, out = tmp_path / "whole", tmp_path / "run"
    finetune("classify", table, whole, steps=6, **options)
    finetune("classify", table, out, steps=3, **options)
    with pytest.raises(FileExistsError, match=r"`steps` was 3 and is 6. Set `extend=True`"):
        finetune("classify", table, out, steps=6, **options)
    with pytest.raises(FileExistsError, match="Give the same options"):
        finetune("classify", table, out, steps=6, extend=True, **{**options, "seed": 1})
    with pytest.raises(ValueError, match="can only be extended"):
        finetune("classify", table, out, steps=2, extend=True, **options)
    assert finetune("classify", table, out, steps=6, extend=True, **options).finished
    assert read_json(RunFolder(out).result)["steps"] == 6
    last = [
        safetensors.torch.load_file(RunFolder(each).checkpoint(6) / "model.safetensors")
        for each in (whole, out)
    ]
    assert all((last[0][name] == last[1][name]).all() for name in last[0])
    lines: list[str] = []
    again = finetune(
        "classify", table, out, steps=6, extend=True, **{**options, "say": lines.append}
    )
    assert again.finished
    assert "extend" in lines[0]
