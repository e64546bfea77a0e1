"""Runs in two processes, which learn what one learns where nothing is left to chance."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longbird.applications.training.engine.run_folder import RunFolder

FSDP = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
use_cpu: true
num_processes: 2
num_machines: 1
mixed_precision: 'no'
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_cpu_ram_efficient_loading: {efficient}
  fsdp_state_dict_type: SHARDED_STATE_DICT
"""


def without_dropout(model: Path, folder: Path) -> Path:
    """A copy of a model in a new folder; each process draws dropout for itself."""
    shutil.copytree(model, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def two(launcher: str, folder: Path, *words: Any) -> subprocess.CompletedProcess[str]:
    """Runs `-m longbird` or a script in two processes."""
    torchrun = ["torch.distributed.run", "--nproc-per-node=2", "--rdzv-backend=c10d",
                "--rdzv-endpoint=localhost:0"]  # fmt: skip
    config = folder / "fsdp.yaml"
    config.write_text(FSDP.format(efficient=str(launcher == "efficient FSDP").lower()))
    accelerate = ["accelerate.commands.launch", "--main_process_port=0", f"--config_file={config}"]
    command = torchrun if launcher == "torchrun" else accelerate
    return subprocess.run(
        [sys.executable, "-m", *command, *map(str, words)],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def finetune_in_two(folder: Path, runs: list[tuple[str, Path, Path, dict[str, Any]]]) -> None:
    """Trains one run after another, in the same two processes: starting them takes longest.

    Each is a task, a file, the folder of the run, and options.
    """
    script = folder / "runs.py"
    calls = [
        f"finetune({task!r}, {str(file)!r}, {str(out)!r}, **{options!r})"
        for task, file, out, options in runs
    ]
    script.write_text(
        "\n".join(["from longbird.applications.training.engine.finetune import finetune", *calls])
    )
    done = two("torchrun", folder, script)
    assert done.returncode == 0, done.stderr


def assert_the_same_losses(one: Path, other: Path) -> None:
    mine, theirs = RunFolder(one).logged(), RunFolder(other).logged()
    assert len(mine) == len(theirs) > 4
    for ours, others in zip(mine, theirs, strict=True):
        for name in ("loss", "eval_loss"):
            assert ours.get(name) == pytest.approx(others.get(name), abs=1e-5)
