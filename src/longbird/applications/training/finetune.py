"""A run from its settings to its result; the same again goes on where it stopped."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers.utils.logging import disable_progress_bar

from longbird.applications.training.adapt import adapted, merged
from longbird.applications.training.evaluate import Evaluation, evaluate_rows
from longbird.applications.training.every import BY_NAME
from longbird.applications.training.folder import RunFolder, read_json, write_text
from longbird.applications.training.forecast import forecast
from longbird.applications.training.parts import check_unchanged, read_parts
from longbird.applications.training.processes import processes
from longbird.applications.training.progress import Progress
from longbird.applications.training.report import write_report
from longbird.applications.training.settings import Settings, differences, read_settings
from longbird.applications.training.starting import starting_model, starting_tokenizer
from longbird.applications.training.task import Task
from longbird.applications.training.trainer import LongbirdTrainer, Metrics
from longbird.errors import ExistingFileError, InvalidTypeError, InvalidValueError


@dataclass(frozen=True)
class Run:
    """A run that is done, or was stopped.

    Attributes:
        path: Its folder.
        finished: Is it done? If not, the same call goes on.
        metrics: What its best model reaches on the validation and on the test documents.
    """

    path: Path
    finished: bool
    metrics: dict[str, Any]

    @property
    def model(self) -> Path:
        """The folder of the best model."""
        return RunFolder(self.path).model


def finetune(
    task: str,
    train: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    say: Callable[[str], None] = print,
    **options: Any,
) -> Run:
    """Trains a model on files; the same call again continues where it stopped.

    Args:
        task: What to learn: "ask", "choose", "classify", "embed", "summarize" or "tag".
        train: Files or folders: csv, tsv, json, jsonl, parquet, txt, html, pdf, docx, epub, and
            gzip of these; a folder with a subfolder for each class.
        out: The folder of the run.
        say: Called with what is going on, a line at a time.
        **options: Fields of `Settings`, such as `model="minilm"`,
            `length=4096`, `epochs=3`, `validation="more.csv"`.

    Raises:
        FileExistsError: `out` holds something else, or a run with other settings.
        ValueError: The files are not what they should be, or an option is out of range.

    Examples:
        >>> import longbird as lb
        >>> run = lb.finetune(  # doctest: +SKIP
        ...     "classify", "letters.csv", "letters-run", text="letter", label="sender"
        ... )
        >>> run.metrics["validation"]["accuracy"]  # doctest: +SKIP
        0.93
        >>> model = lb.LongbirdForSequenceClassification.from_pretrained(
        ...     run.model
        ... )  # doctest: +SKIP
    """
    if task not in BY_NAME:
        raise InvalidValueError(f"task must be one of {', '.join(BY_NAME)}, received {task}")
    ours = BY_NAME[task]
    return run(ours(), settings_of(ours, train, options), out, say)


def run(
    task: Task, settings: Settings, out: str | Path, say: Callable[[str], None] = print
) -> Run:
    """Trains a model for any task; the same call again goes on where it stopped.

    Raises:
        FileExistsError: `out` holds something else, or a run with other settings.
        ValueError: The files are not what they should be.
    """
    disable_progress_bar()  # of loading and saving, which takes a moment
    folder = RunFolder(out)
    state = processes()
    if not state.is_main_process:
        say = _silence
        logging.getLogger("longbird").setLevel(logging.ERROR)  # what all say, one says
    with contextlib.ExitStack() as stack:
        if state.is_main_process:
            _check_place(folder, settings)
            stack.enter_context(folder.in_use())
            _begin(folder, settings)
        state.wait_for_everyone()
        return _run(task, settings, folder, state, say)


def _run(
    ours: Task, settings: Settings, folder: RunFolder, state: Any, say: Callable[[str], None]
) -> Run:
    """A run from where it is to its end."""
    if folder.result.exists():
        with contextlib.suppress(FileNotFoundError):  # what was learned from may have gone
            check_unchanged(settings, folder)
        say(f"{folder.path} is finished; delete it to begin again")
        return Run(folder.path, True, read_json(folder.result)["metrics"])

    with state.main_process_first():
        ours.begin(settings, folder)
    tokenizer = starting_tokenizer(settings, folder)
    ours.prepare(settings, tokenizer)

    def anew() -> Any:
        head = ours.head_settings()
        model = starting_model(settings, ours.head, head, folder, tokenizer)
        ours.start_from(model.config)
        return adapted(model, settings)

    with state.main_process_first():
        parts, data = read_parts(ours, settings, tokenizer, folder, say)
        model = anew()
    ours.check(parts, settings)
    weights = None
    if settings.class_weights == "balanced":
        rows: Any = parts["train"]
        weights = ours.class_weights(rows)
    for line in forecast(model, ours, tokenizer, parts, settings):
        say(line)

    progress = Progress(say if state.is_main_process else _silence)
    trainer = LongbirdTrainer(
        model, ours, tokenizer, parts["train"], parts.get("validation"), settings, folder, weights,
        [progress, Metrics(folder, progress.measured)],
    )  # fmt: skip
    checkpoint, broken = folder.last_whole_checkpoint()
    for wrong in broken:
        say(f"warning: {wrong}; that checkpoint is not used")
    if checkpoint is not None:
        say(f"going on from {checkpoint}")
    started = time.time() - folder.seconds()
    if checkpoint is None or not trainer.has_ended(checkpoint):
        with trainer.interruptions.listening(), progress:
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    if trainer.state.global_step not in folder.steps():
        trainer._save_checkpoint(trainer.model, None)
    if trainer.agree(trainer.interruptions.asked):
        say(
            f"stopped after step {trainer.state.global_step}; the same command goes on from "
            f"{folder.checkpoint(trainer.state.global_step)}"
        )
        return Run(folder.path, False, {})
    best = trainer.state.best_global_step or trainer.state.global_step
    if wrong := folder.what_is_wrong(best):
        best = trainer.state.global_step
        say(f"warning: {wrong}; the model after step {best} is kept instead of the best one")
    model = merged(trainer, folder.checkpoint(best), anew)
    result = _finish(
        trainer, model, best, ours, tokenizer, parts, data, settings, folder, started, say
    )
    return Run(folder.path, True, result)


def settings_of(
    task: type[Task], train: Any, options: dict[str, Any], kind: type[Settings] = Settings
) -> Settings:
    """The settings of a call: defaults, then a file of settings, then what was given."""
    given = {name: value for name, value in options.items() if value is not None}
    file = given.pop("config", None)
    values: dict[str, Any] = {**task.defaults}
    values |= {} if file is None else read_settings(file, kind)
    for name in ("train", "validation", "test"):
        paths = train if name == "train" else given.get(name)
        if paths is not None and paths != () and paths != []:
            several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
            given[name] = tuple(str(path) for path in several)
    values = {**values, **given, "task": task.name}
    if not values.get("train"):
        raise InvalidValueError("give at least one file to learn from")
    known = kind.__dataclass_fields__
    if unknown := [name for name in values if name not in known]:
        raise InvalidTypeError(
            f"{unknown[0]} is no option of a run; the options are {', '.join(known)}"
        )
    for name, value in values.items():
        values[name] = str(value) if isinstance(value, os.PathLike) else value
    return kind(**values)


def _check_place(folder: RunFolder, settings: Settings) -> None:
    """Raises if something else is in the folder, or if its files would be read as documents."""
    if folder.path.exists() and not folder.settings.exists() and not folder.is_new():
        raise ExistingFileError(
            f"{folder.path} exists and is not the folder of a run: name another --out"
        )
    for path in (*settings.train, *settings.validation, *settings.test):
        if Path(path).is_dir() and folder.path.resolve().is_relative_to(Path(path).resolve()):
            raise InvalidValueError(
                f"--out {folder.path} is inside of {path}, from which all files are read: name "
                "another --out"
            )


def _begin(folder: RunFolder, settings: Settings) -> None:
    """Writes the settings of a new run, or compares them with those of one that goes on."""
    if folder.settings.exists():
        changed = differences(read_settings(folder.settings, type(settings)), settings)
        if not changed:
            return
        if folder.steps():
            raise ExistingFileError(
                f"{folder.settings} is that of a run with other settings: {'; '.join(changed)}. "
                "Give the same settings to go on with it, or another --out for a new run"
            )
        folder.clear()  # nothing has been learned: an option was wrong, and is mended now
    write_text(folder.settings, settings.toml())


def _finish(
    trainer: LongbirdTrainer,
    model: Any,
    best: int,
    task: Task,
    tokenizer: Any,
    parts: dict[str, Dataset],
    data: dict[str, Any],
    settings: Settings,
    folder: RunFolder,
    started: float,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """The best model, what it reaches, and the report."""
    chosen = {
        part: task.some(rows) if part == "validation" else rows for part, rows in parts.items()
    }
    if "validation" in parts and len(chosen["validation"]) < len(parts["validation"]):
        say(f"measuring {len(chosen['validation']):,} of the validation documents")
    measured: dict[str, Evaluation] = {
        part: evaluate_rows(
            model,
            task,
            chosen[part],
            tokenizer,
            settings.tokens_per_batch,
            calibrate=part == "validation",
        )
        for part in ("validation", "test")
        if part in parts
    }
    if "validation" not in parts:
        task.calibrate([], [], model.config)
    metrics = {part: found.metrics for part, found in measured.items()}
    if processes().is_main_process:
        with folder.making(folder.model) as new:
            model.save_pretrained(new)
            tokenizer.save_pretrained(new)
            task.write_beside(new)
        for found in measured.values():
            found.write_worst(folder.worst)
        result = {
            "metrics": metrics,
            "best step": best,
            "steps": trainer.state.global_step,
            "tokens": trainer.state.num_input_tokens_seen,
            "seconds": time.time() - started,
        }
        write_report(folder, settings, data, result, parts)
        write_text(folder.result, json.dumps(result, indent=1))
        for part, found in metrics.items():
            numbers = [f"{name} {x:.4f}" for name, x in found.items() if isinstance(x, float)]
            say(f"{part}: {', '.join(numbers)}")
        say(f"the best model, that of step {best}, is in {folder.model}")
        say(f"the report is in {folder.report}")
    return metrics


def _silence(_: Any) -> None:
    """Says nothing."""
