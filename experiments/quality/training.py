"""Training within an attempt: a run in its folder, which goes on where a kill stopped it."""

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
    """The folder of a run that is done, and what it cost.

    Args:
        attempt: Whose seed and folder it has.
        task: As `finetune` takes it.
        train: Files to learn from.
        **options: Fields of `Settings`. Nothing is held out of the
            training files unless they say so: the model is that of the last step.

    Raises:
        KeyboardInterrupt: It was stopped; the same attempt goes on.
    """
    folder = attempt.folder / "run"
    options = {"hold_out": 0.0, "seed": attempt.seed, **options}
    run = finetune(task, train, folder, say=attempt.say, **options)
    if not run.finished:
        raise KeyboardInterrupt
    result = read_json(RunFolder(folder).result)
    return folder, {name: result[name] for name in ("steps", "tokens")}


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """A folder that `make(folder)` fills, whole or not there: after a kill, it is made again."""
    if not folder.exists():
        new = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        make(new)
        os.replace(new, folder)
    return folder
