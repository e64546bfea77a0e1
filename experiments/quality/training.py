"""Training within an attempt, which resumes if it was interrupted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from experiments.framework.experiment import Attempt
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.run_folder import RunFolder, read_json


def trained(
    attempt: Attempt, task: str, train: str | Path | Iterable[str | Path], **options: Any
) -> tuple[Path, dict[str, float]]:
    """Train a model, and return the folder of the run and its cost.

    Args:
        attempt: The attempt, with seed and folder.
        task: Name of the task, as in `finetune`.
        train: Training files.
        **options: Options of the task. By default nothing is held out, so that the model is that
            of the last step.

    Raises:
        KeyboardInterrupt: The run was stopped; repeating the attempt resumes it.
    """
    folder = attempt.folder / "run"
    options = {"hold_out": 0.0, "seed": attempt.seed, **options}
    run = finetune(task, train, folder, say=attempt.say, **options)
    if not run.finished:
        raise KeyboardInterrupt
    result = read_json(RunFolder(folder).result)
    return folder, {name: result[name] for name in ("steps", "tokens")}


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder that `make(folder)` fills completely, making it if it is not there."""
    if not folder.exists():
        new = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        make(new)
        os.replace(new, folder)
    return folder
