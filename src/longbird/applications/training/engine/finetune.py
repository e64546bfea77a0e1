"""A run from its settings to its result; repeating the call resumes it."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers.utils.logging import disable_progress_bar

from longbird.applications.training.data.parts import check_unchanged, read_parts
from longbird.applications.training.engine.evaluation import Evaluation, evaluate_rows
from longbird.applications.training.engine.forecast import forecast
from longbird.applications.training.engine.processes import processes
from longbird.applications.training.engine.progress import Progress
from longbird.applications.training.engine.report import write_report
from longbird.applications.training.engine.run_folder import RunFolder, read_json, write_text
from longbird.applications.training.engine.trainer import LongbirdTrainer, MetricLog
from longbird.applications.training.initialisation.adapters import adapted, merged
from longbird.applications.training.initialisation.starting_model import (
    starting_model,
    starting_tokenizer,
)
from longbird.applications.training.settings.definition import (
    differences,
    make_settings,
    read_settings,
)
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.tasks.registry import task_named
from longbird.applications.training.tasks.task import Task
from longbird.errors import ExistingFileError, InvalidValueError

EXTENDABLE = ("epochs", "steps", "patience")
"""Options that may change when a run is extended."""


@dataclass(frozen=True)
class Run:
    """A run that has finished, or was stopped.

    Attributes:
        path: Folder of the run.
        finished: Whether it has finished; if not, repeating the call resumes it.
        metrics: Metrics of the best model on the validation and test documents.
    """

    path: Path
    finished: bool
    metrics: dict[str, Any]

    @property
    def model(self) -> Path:
        """Folder of the best model."""
        return RunFolder(self.path).model


def finetune(
    task: str,
    train: str | Path | Iterable[str | Path],
    out: str | Path,
    *,
    extend: bool = False,
    say: Callable[[str], None] = print,
    **options: Any,
) -> Run:
    """Train a model on files; repeating the call resumes the run.

    Args:
        task: Name of the task: "ask", "choose", "classify", "embed", "summarize", "tag", "mlm",
            "causal", or one that was registered with `register_task`.
        train: Files or folders to learn from: csv, tsv, json, jsonl, parquet, txt, html, pdf,
            docx, epub, and gzip of these; a folder with a subfolder for each class.
        out: Folder of the run.
        extend: Whether to continue a run with more `epochs` or `steps` than it was started with.
        say: Function that is called with each line of progress.
        **options: Options of the task, such as `model="minilm"`, `length=4096`, `epochs=3` and
            `validation="more.csv"`, or `config`, a file of options. The page "Options of
            training" lists them; so does `longbird finetune TASK --help`.

    Raises:
        FileExistsError: `out` has other content, or a run with other options.
        ValueError: A file has unexpected content, or an option is out of range.

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
    kind = task_named(task)
    settings = make_settings(kind.settings_class, task, train, options)
    return run(kind(), settings, out, say, extend=extend)


def run(
    task: Task,
    settings: Settings,
    out: str | Path,
    say: Callable[[str], None] = print,
    *,
    extend: bool = False,
) -> Run:
    """Train a model for any task; repeating the call resumes the run.

    Raises:
        FileExistsError: `out` has other content, or a run with other options.
        ValueError: A file has unexpected content.
    """
    disable_progress_bar()  # of loading and saving, which takes a moment
    folder = RunFolder(out)
    state = processes()
    if not state.is_main_process:
        say = _silence
        logging.getLogger("longbird").setLevel(logging.ERROR)  # the main process says it
    with contextlib.ExitStack() as stack:
        if state.is_main_process:
            _check_place(folder, settings)
            stack.enter_context(folder.in_use())
            _begin(folder, settings, extend)
        state.wait_for_everyone()
        return _Course(task, settings, folder, say).run()


class _Course:
    """The course of a run, from its current state to its end."""

    def __init__(
        self, task: Task, settings: Settings, folder: RunFolder, say: Callable[[str], None]
    ) -> None:
        self.task, self.settings, self.folder, self.say = task, settings, folder, say
        self.state = processes()

    def run(self) -> Run:
        """Train to the end, unless the run has finished before or is interrupted."""
        folder, task, settings, say = self.folder, self.task, self.settings, self.say
        if folder.result.exists():
            with contextlib.suppress(FileNotFoundError):  # training files may be gone
                check_unchanged(settings, folder)
            say(
                f"{folder.path} is finished: to train longer, give more epochs or steps and "
                "the option extend; to train anew, name another folder"
            )
            return Run(folder.path, True, read_json(folder.result)["metrics"])

        with self.state.main_process_first():
            task.begin(settings, folder)
        self.tokenizer = starting_tokenizer(settings, folder)
        task.prepare(settings, self.tokenizer)
        with self.state.main_process_first():
            self.parts, self.data = read_parts(task, settings, self.tokenizer, folder, say)
            model = self._starting_model()
        task.check(self.parts, settings)
        for line in forecast(model, task, self.tokenizer, self.parts, settings):
            say(line)
        trainer = self._trainer(model)
        checkpoint, broken = folder.last_whole_checkpoint()
        for wrong in broken:
            say(f"warning: {wrong}; that checkpoint is not used")
        if checkpoint is not None:
            say(f"resuming from {checkpoint}")
        self.started = time.time() - folder.seconds()
        self._train(trainer, checkpoint)
        if trainer.agree(trainer.interruptions.asked):
            say(
                f"stopped after step {trainer.state.global_step}; the same command resumes from "
                f"{folder.checkpoint(trainer.state.global_step)}"
            )
            return Run(folder.path, False, {})
        return Run(folder.path, True, self._finish(trainer))

    def _starting_model(self) -> Any:
        """Return a new model, as it is before the first step."""
        head = self.task.head_settings()
        model = starting_model(
            self.settings, self.task.head, head, self.folder, self.tokenizer, self.say
        )
        self.task.start_from(model.config)
        return adapted(model, self.settings)

    def _trainer(self, model: Any) -> LongbirdTrainer:
        weights = None
        if getattr(self.settings, "class_weights", "none") == "balanced":
            rows: Any = self.parts["train"]
            weights = self.task.class_weights(rows)
        self.progress = Progress(self.say)
        return LongbirdTrainer(
            model, self.task, self.tokenizer, self.parts["train"], self.parts.get("validation"),
            self.settings, self.folder, weights,
            [self.progress, MetricLog(self.folder, self.progress.measured)],
        )  # fmt: skip

    def _train(self, trainer: LongbirdTrainer, checkpoint: Path | None) -> None:
        """Take the steps that are left, and save the last one."""
        if checkpoint is None or not trainer.has_ended(checkpoint):
            resumed = None if checkpoint is None else str(checkpoint)
            with trainer.interruptions.listening(), self.progress:
                trainer.train(resume_from_checkpoint=resumed)
        if trainer.state.global_step not in self.folder.steps():
            trainer._save_checkpoint(trainer.model, None)

    def _finish(self, trainer: LongbirdTrainer) -> dict[str, Any]:
        """Save the best model, measure it, and write the report."""
        folder, last = self.folder, trainer.state.global_step
        best = trainer.state.best_global_step or last
        if wrong := folder.what_is_wrong(best):
            best = last
            self.say(f"warning: {wrong}; the model after step {best} is kept instead of the best")
        model = merged(trainer, folder.checkpoint(best), self._starting_model)
        measured = self._measured(model)
        metrics = {part: found.metrics for part, found in measured.items()}
        if not self.state.is_main_process:
            return metrics
        with folder.making(folder.model) as new:
            model.save_pretrained(new)
            self.tokenizer.save_pretrained(new)
            self.task.write_beside(new)
        for found in measured.values():
            found.write_worst(folder.worst)
        result = {
            "metrics": metrics,
            "best step": best,
            "steps": last,
            "tokens": trainer.state.num_input_tokens_seen,
            "seconds": time.time() - self.started,
        }
        write_report(folder, self.settings, self.data, result, self.parts)
        write_text(folder.result, json.dumps(result, indent=1))
        for part, found in metrics.items():
            numbers = [f"{name} {x:.4f}" for name, x in found.items() if isinstance(x, float)]
            self.say(f"{part}: {', '.join(numbers)}")
        self.say(f"the best model, that of step {best}, is in {folder.model}")
        self.say(f"the report is in {folder.report}")
        return metrics

    def _measured(self, model: Any) -> dict[str, Evaluation]:
        """Measure the best model on the validation and test documents."""
        parts = {part: rows for part, rows in self.parts.items() if part != "train"}
        if "validation" in parts:
            rows = parts["validation"]
            parts["validation"] = some = self.task.some(rows)
            if len(some) < len(rows):
                self.say(f"measuring {len(some):,} of the validation documents")
        else:
            self.task.calibrate([], [], model.config)
        return {
            part: evaluate_rows(
                model, self.task, parts[part], self.tokenizer, self.settings.tokens_per_batch,
                calibrate=part == "validation",
            )
            for part in ("validation", "test")
            if part in parts
        }  # fmt: skip


def _check_place(folder: RunFolder, settings: Settings) -> None:
    """Raise an error if the folder has other content, or is inside a folder that is read."""
    if folder.path.exists() and not folder.settings.exists() and not folder.is_new():
        raise ExistingFileError(
            f"{folder.path} exists and is not the folder of a run: name another folder with `out`"
        )
    for path in itertools.chain(*settings.files().values()):
        if Path(path).is_dir() and folder.path.resolve().is_relative_to(Path(path).resolve()):
            raise InvalidValueError(
                f"`out` is {folder.path}, which is inside of {path}, from which all files are "
                "read: name another folder"
            )


def _begin(folder: RunFolder, settings: Settings, extend: bool) -> None:
    """Write the settings of a new run, or compare them with those of the run in the folder."""
    if folder.settings.exists():
        old = read_settings(folder.settings, type(settings))
        changed = differences(old, settings)
        if not changed:
            return
        if folder.steps():
            _check_changes(folder, old, settings, changed, extend)
            folder.result.unlink(missing_ok=True)
        else:
            folder.clear()  # nothing has been learned: an option was wrong, and is now corrected
    write_text(folder.settings, settings.toml())


def _check_changes(
    folder: RunFolder,
    old: Mapping[str, Any],
    settings: Settings,
    changed: Mapping[str, str],
    extend: bool,
) -> None:
    """Raise an error unless the run is to be extended, and nothing else has changed."""
    words = "; ".join(changed.values())
    if not changed.keys() <= {*EXTENDABLE}:
        raise ExistingFileError(
            f"{folder.settings} has other options: {words}. Give the same options to resume that "
            "run, or name another folder with `out` for a new one"
        )
    if not extend:
        raise ExistingFileError(
            f"{folder.path} is a run with other options: {words}. Set `extend=True` to continue "
            "it with these, or name another folder with `out` for a new run"
        )
    for name in ("epochs", "steps"):
        before, now = old.get(name), getattr(settings, name)
        if before is not None and now is not None and now < before:
            raise InvalidValueError(
                f"{words}: a run can only be extended", remedy=f"set `{name}` to more than before"
            )


def _silence(_: Any) -> None:
    """Do nothing."""
