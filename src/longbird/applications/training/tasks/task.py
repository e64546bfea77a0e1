"""What a task is: five parts, each with its own concern, which a task class inherits.

`docs/adding-a-task.md` shows a complete task. Everything else about a run is the same for all
tasks, and no other module asks which task it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset
from torch import Tensor

from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.data.columns import find_column, value_of
from longbird.applications.training.data.file_source import ExampleSource, FileSource
from longbird.applications.training.data.files import Row, rows
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.settings.groups import Settings
from longbird.errors import InvalidValueError

Example = Mapping[str, Any]
"""What a row holds, its `place` and `group`; later also its features and its `tokens`."""
Prediction = Mapping[str, Any]
"""What a model says of an example."""


class Reading:
    """From files to examples."""

    rows_are: ClassVar[str] = "documents"
    """What messages call the examples."""

    def begin(self, settings: Any, folder: RunFolder) -> None:
        """Create what a run needs before its model and tokenizer exist."""

    def source(self, settings: Any, say: Callable[[str], None]) -> ExampleSource:
        """Return where the examples of each part (train, validation, test) come from."""
        return FileSource(self, settings, say)

    def rows(self, paths: Iterable[str | Path], settings: Any) -> Iterator[Row]:
        """Yield the rows of files."""
        return rows(paths, settings.encoding)

    def examples(
        self, rows: Iterable[Row], settings: Any, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """Yield an example per row, with its `place` and the `group` that stays together."""
        raise NotImplementedError

    def unanswered(self, value: Any, row: Row, column: str) -> dict[str, Any]:
        """Return the example of a document that the model is applied to."""
        raise NotImplementedError

    def text_columns(self, names: list[str]) -> list[str]:
        """Return the columns that can be the text of a document without an answer."""
        return names

    def documents(
        self, rows: Iterable[Row], settings: Any, say: Callable[[str], None], text: str | None
    ) -> Iterator[dict[str, Any]]:
        """Yield an example per document that the model is applied to.

        Args:
            rows: The rows of the files.
            settings: The settings of the run.
            say: Function that is called with each message.
            text: Column of the text, where a file does not have that of `settings`.
        """
        columns: dict[Path, str] = {}
        for row in rows:
            if row.file not in columns:
                names = list(row.values)
                named = settings.text if settings.text in names else text
                able = names if named in names else self.text_columns(names)
                columns[row.file] = find_column("text", named, able, say)
            column = columns[row.file]
            content = value_of(row, column)
            if isinstance(content, str) and not content.strip():
                say(f"{row.place} has no text")
            where = {"place": row.place, "file": str(row.file), "line": row.line}
            yield {**where, **self.unanswered(content, row, column)}

    def learn(self, examples: Iterable[Example]) -> None:
        """Look at the training examples for what the head must know, such as its labels."""
        for _ in examples:
            pass

    def check(self, parts: Mapping[str, Dataset], settings: Any) -> None:
        """Raise an error, before the first step, if nothing can be learned or measured."""


class Features:
    """From examples to batches."""

    inputs: ClassVar[tuple[str, ...]]
    """Features that are read to make inputs of the model; `input_ids` is one."""
    on_disk: ClassVar[tuple[str, ...]] = ("input_ids",)
    """Features that metrics do not need, and that stay on the disk."""
    joins: ClassVar[tuple[str, ...]] = ()
    """Of these, the features that `joined` needs."""
    cuts_long_documents: ClassVar[bool] = True
    """Whether the end of a document that is too long is not read."""
    new_batches: ClassVar[bool] = False
    """Whether batches are drawn again in each epoch; they may then have a document too many."""

    def prepare(self, settings: Any, tokenizer: Any) -> None:
        """Receive the settings and the tokenizer, before anything is read."""

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield examples with their inputs and the number of `tokens` before they are cut."""
        raise NotImplementedError

    def about(self, rows: Dataset, length: int) -> Iterator[str]:
        """Yield lines about documents that the model does not read as they are."""
        longer = int((numbers_of(rows, "tokens") > length).sum())
        if longer:
            yield (
                f"  {longer:,} are longer than the {length:,} tokens that the model reads: their "
                "ends are cut off"
            )

    def lengths(self, features: Example) -> list[int]:
        """Return the tokens of each part of an example: one part, or one per window."""
        return [len(features["input_ids"])]

    def reader(self, rows: Dataset) -> Callable[[int, int | None], Example]:
        """Return a function from a row and an epoch to the `inputs` of that row."""
        return lambda row, _epoch: rows[row]

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """Return the inputs of one part of a row in an epoch.

        Anything random in them is a function of the seed, the number and the epoch alone.

        Args:
            row: Its `inputs`.
            part: Number of the part within the row.
            number: Number of the part within all rows.
            epoch: Number of the epoch; None for evaluation, which is always the same.
        """
        return {name: row[name] for name in self.inputs}

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Return a batch as the model takes it; `pad` makes inputs equally long."""
        return pad(examples)

    def uncounted(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the batch of a process without a document in a step; its `items` are 0."""
        return batch


class Objective:
    """The head of the model, and the loss."""

    head: ClassVar[str]
    """Name of the head in `longbird.models.integration.tasks`."""

    def head_settings(self) -> dict[str, Any]:
        """Return the fields of the configuration that describe the head."""
        return {}

    def start_from(self, config: Any) -> None:
        """Look at the configuration of the model that is to learn; it may be changed."""

    @classmethod
    def of_model(cls, config: Any) -> Any:
        """Return the task that a model was trained for."""
        return cls()

    def class_weights(self, examples: Iterable[Example]) -> Tensor:
        """Return weights that make every class count as much as every other."""
        raise InvalidValueError("this task has no classes: leave `class_weights` out")

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Any:
        """Return the outputs of the model for a batch."""
        return model(**batch)

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """Return the mean loss over the `items` of a batch."""
        return outputs.loss

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """Return what the loss is a mean over: the number of documents, unless overridden."""
        return len(batch["input_ids"])

    def tokens_kept(self, tokens: int) -> int:
        """Return how many of the tokens of a batch have activations in memory at a time."""
        return tokens


class Metrics:
    """From outputs to predictions, and from predictions to metrics."""

    best: str
    """Metric that decides which model is the best."""
    more_is_better: ClassVar[bool] = True
    """Whether a larger value of that metric is better."""

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Return what the model says of each part in a batch."""
        raise NotImplementedError

    def watched(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Return the predictions that are measured during training, where others take long."""
        return self.predictions(model, batch)

    def joined(self, row: Example, parts: Sequence[Prediction]) -> dict[str, Any]:
        """Return the prediction of a row from those of its parts."""
        return dict(parts[0])

    def second_look(
        self,
        rows: Dataset,
        predictions: list[dict[str, Any]],
        read: Callable[[Dataset], list[dict[str, Any]]],
    ) -> list[dict[str, Any]]:
        """Return the final predictions; a task may `read` rows again, in other parts."""
        return predictions

    def some(self, rows: Dataset) -> Dataset:
        """Return the validation documents measured at the end, where all take too long."""
        return rows

    def whole_documents(self, examples: Any, predictions: list[Any]) -> tuple[Any, list[Any]]:
        """Return examples and predictions of whole documents, of rows that may be pieces."""
        return examples, predictions

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Return the metrics by name: metrics as float, counts as int."""
        raise NotImplementedError

    def resampled(
        self,
        examples: Sequence[Example],
        predictions: Sequence[Prediction],
        counts: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Return the metrics of many samples, each [samples], for confidence intervals.

        Args:
            examples: The examples.
            predictions: The predictions of these.
            counts: How often each sample has each example, [samples, examples].
        """
        found: dict[str, list[float]] = {}
        for row in counts:
            drawn = np.repeat(np.arange(len(examples)), row).tolist()
            measured = self.measure(
                [examples[each] for each in drawn], [predictions[each] for each in drawn]
            )
            for name, value in measured.items():
                if isinstance(value, float):
                    found.setdefault(name, []).append(value)
        return {name: np.array(values) for name, values in found.items()}

    def calibrate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], config: Any
    ) -> None:
        """Choose thresholds by the validation documents, after these were measured."""


class Presentation:
    """What the user sees of predictions."""

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """Return a prediction as the user sees it."""
        raise NotImplementedError

    def expected(self, example: Example) -> Any:
        """Return the right answer as the user sees it."""
        raise NotImplementedError

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """Return how wrong a prediction is: the worst examples have the largest value."""
        raise NotImplementedError

    def as_text(self, answer: Mapping[str, Any]) -> str:
        """Return an answer in words, for tables and the terminal."""
        return "; ".join(f"{name} {in_words(value)}" for name, value in answer.items())

    def notes(self) -> list[str]:
        """Return sentences that one must know to read the metrics."""
        return []

    def write_beside(self, model: Path) -> None:
        """Write further files into the folder of the best model."""


class Task(Reading, Features, Objective, Metrics, Presentation):
    """A task: its name, its options, and the five parts."""

    name: ClassVar[str]
    """What `finetune` calls it."""
    settings_class: ClassVar[type[Settings]]
    """The options that it has."""


def in_words(value: Any) -> str:
    """Return a value of an answer as text."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({in_words(each)})" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(in_words, value)) or "none"
    return "none" if value is None else str(value)
