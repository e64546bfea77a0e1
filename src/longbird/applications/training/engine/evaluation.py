"""How good a model is on files: metrics with intervals, and the examples it is worst at."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset

from longbird.applications.training.data.files import fingerprint
from longbird.applications.training.data.token_store import stored
from longbird.applications.training.engine.comparison import compare
from longbird.applications.training.engine.prediction import predict
from longbird.applications.training.engine.run_folder import RunFolder, read_json, write_text
from longbird.applications.training.engine.trained_model import Trained, load_trained
from longbird.applications.training.settings.definition import options_of
from longbird.applications.training.tasks.task import Task
from longbird.errors import InvalidValueError

SAMPLES = 1000
MOST_WORST = 50
MOST_SHOWN = 100
"""Entries of a list, such as entities, in the list of the worst examples."""


@dataclass(frozen=True)
class Evaluation:
    """What a model reaches on documents.

    Attributes:
        metrics: By name, of all documents; `intervals` has the 95% confidence intervals.
        worst: The documents that it is most wrong about, the worst first.
        examples: The documents.
        said: What it says of each.
    """

    metrics: dict[str, Any]
    worst: list[dict[str, Any]]
    examples: list[Any] = field(default_factory=list[Any], repr=False)
    said: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]], repr=False)

    def write_worst(self, file: Path) -> None:
        """A JSON object in each line."""
        write_text(
            file, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in self.worst)
        )


def evaluate_rows(
    model: Any,
    task: Task,
    rows: Dataset,
    tokenizer: Any,
    tokens_per_batch: int = 16384,
    advance: Callable[[int], None] = lambda _: None,
    calibrate: bool = False,
) -> Evaluation:
    """Runs a model over documents, as `stored` of `training.documents` makes them.

    With `calibrate`, the task then chooses its thresholds by them, for other documents.
    """
    said = predict(model.eval(), task, rows, tokenizer, tokens_per_batch, advance)
    examples, said = task.whole_documents(list(rows.remove_columns([*task.on_disk])), said)
    metrics = task.measure(examples, said)
    metrics["intervals"] = intervals(task, examples, said)
    wrongness = [task.wrongness(*pair) for pair in zip(examples, said, strict=True)]
    if calibrate:
        task.calibrate(examples, said, model.config)
    worst = sorted(range(len(said)), key=lambda row: -wrongness[row])[:MOST_WORST]
    shown = [_shown(task, examples[row], said[row]) for row in worst]
    return Evaluation(metrics, shown, examples, said)


def _shown(
    task: Task, example: Mapping[str, Any], prediction: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an example with its prediction for the list of the worst."""
    answer = _shortened(task.answer(prediction))
    return {
        "place": example["place"],
        "expected": task.expected(example),
        "given": answer,
        "given_as_text": task.as_text(answer),
        "text": example["text"][:500],
    }


def _shortened(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with the first entries of each list."""
    return {
        name: value[:MOST_SHOWN] if isinstance(value, list) else value
        for name, value in answer.items()
    }


def intervals(
    task: Task, examples: Sequence[Any], said: Sequence[Any]
) -> dict[str, tuple[float, float]]:
    """95% confidence intervals by the bootstrap: documents drawn again, with replacement."""
    share = np.full(len(said), 1 / len(said))
    drawn, at_once = np.random.default_rng(0), max(1, 2**24 // len(said))  # 128 MiB of counts
    found: dict[str, list[np.ndarray]] = {}
    for begun in range(0, SAMPLES, at_once):
        counts = drawn.multinomial(len(said), share, min(at_once, SAMPLES - begun))
        for name, values in task.resampled(examples, said, counts).items():
            found.setdefault(name, []).append(values)
    return {
        name: tuple(np.nanquantile(np.concatenate(values), [0.025, 0.975]).tolist())
        for name, values in found.items()
    }


def evaluate(
    model: str | Path,
    files: str | Path | Iterable[str | Path],
    *,
    against: str | Path | None = None,
    say: Callable[[str], None] = print,
    **options: Any,
) -> Evaluation:
    """How good a model is on files, and whether it is better than another.

    Args:
        model: The folder of a run, or of a model.
        files: As for `finetune`.
        against: Another model for the same task: `metrics["against"]` then has the differences, as
            `longbird.applications.training.engine.comparison.compare` finds them.
        say: Called with what is going on, a line at a time.
        **options: Fields of `Settings` that say how to read the files;
            those of the run by default.

    Returns:
        Metrics with 95% confidence intervals, and the examples that the model is worst at.

    Examples:
        >>> import longbird as lb
        >>> found = lb.evaluate("letters-run", "more-letters.csv")  # doctest: +SKIP
        >>> found.metrics["accuracy"], found.metrics["intervals"]["accuracy"]  # doctest: +SKIP
        (0.91, (0.88, 0.94))
    """
    files = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    trained = load_trained(model)
    for name in sorted(_learned_from(model, files)):
        say(f"warning: the model learned from {name}: what it reaches there is no measure of it")
    if against is None:
        return _evaluated(trained, files, say, options)
    theirs, task = load_trained(against), trained.task
    if task.name != theirs.task.name or task.head_settings() != theirs.task.head_settings():
        raise InvalidValueError(
            f"{model} and {against} cannot be compared: "
            + (
                f"one is for {task.name}, the other for {theirs.task.name}"
                if task.name != theirs.task.name
                else "they know other labels"
            )
        )
    found = _evaluated(trained, files, say, options)
    # Both read the same files, so in the same columns.
    columns = {
        name: getattr(trained.settings, name)
        for name, option in options_of(type(trained.settings)).items()
        if option.reading
    }
    given = {name: value for name, value in options.items() if value is not None}
    other = _evaluated(theirs, files, say, {**columns, **given})
    if [each["place"] for each in found.examples] != [each["place"] for each in other.examples]:
        raise InvalidValueError(
            f"{model} and {against} read other documents from the same files: name the columns"
        )
    differences = compare(task, (found.examples, other.examples), (found.said, other.said))
    metrics = {**found.metrics, "against": {"model": str(against), "metrics": differences}}
    return replace(found, metrics=metrics)


def _learned_from(model: str | Path, files: Iterable[str | Path]) -> set[str]:
    """The files that the run of a model learned from, whatever they were called then."""
    folder = RunFolder(model)
    if not folder.data.is_file():
        return set()
    known = set(read_json(folder.data)["files"]["train"].values())
    regular = [path for path in files if Path(path).is_file()]
    return {name for name, sha256 in fingerprint(regular).items() if sha256 in known}


def _evaluated(
    trained: Trained, files: Any, say: Callable[[str], None], options: dict[str, Any]
) -> Evaluation:
    rows = read_for(trained, files, say, **options)
    for line in trained.task.about(rows, trained.length):
        say(line.strip())
    tokens = trained.settings.overridden(options).tokens_per_batch
    return evaluate_rows(trained.model, trained.task, rows, trained.tokenizer, tokens)


def read_for(
    trained: Trained,
    files: str | Path | Iterable[str | Path],
    say: Callable[[str], None],
    **options: Any,
) -> Dataset:
    """Files as the features of a model."""
    several = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    settings = trained.settings.overridden(options)
    examples = trained.task.examples(trained.task.rows(several, settings), settings, say)
    with tempfile.TemporaryDirectory() as scratch:
        rows = stored(
            trained.task, examples, trained.tokenizer, trained.length, Path(scratch, "rows.arrow")
        )
        if len(rows) == 0:
            raise InvalidValueError(f"{', '.join(map(str, several))} has no rows")
        # On Linux a file that is mapped stays readable after its folder has gone.
        return rows
