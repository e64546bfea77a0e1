"""What a task is: how rows become batches, what is learned, and how well it was learned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset
from torch import Tensor

from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.data.files import Row, rows
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.settings.groups import Settings
from longbird.errors import InvalidValueError

Example = Mapping[str, Any]
"""What a row holds, its `place` and `group`; later also its features and its `tokens`."""
Prediction = Mapping[str, Any]
"""What a model says of an example."""


class Task:
    """What is particular to a task; everything else about a run is the same for all."""

    name: ClassVar[str]
    """What `longbird finetune` calls it."""
    settings_class: ClassVar[type[Settings]]
    """The options that it has."""
    head: ClassVar[str]
    """Its name in `longbird.models.integration.tasks`."""
    best: str
    """The metric that decides which model is the best."""
    more_is_better: ClassVar[bool] = True
    """Of that metric."""
    rows_are: ClassVar[str] = "documents"
    """What a row is, for the user."""
    on_disk: ClassVar[tuple[str, ...]] = ("input_ids",)
    """Columns that metrics do not need, and that stay on the disk."""
    joins: ClassVar[tuple[str, ...]] = ()
    """Of these, the columns that `joined` needs."""
    new_batches: ClassVar[bool] = False
    """Must documents meet others in every epoch? Batches are then drawn anew, and may have a
    document more than they should."""
    inputs: ClassVar[tuple[str, ...]]
    """What is read of the features to make inputs of the model; `input_ids` is one."""

    divided: Mapping[str, str] = {}
    """Where the examples say which `part` they are of (train, validation, test) rather than being
    held out by group: what is in each part, in words."""

    def begin(self, settings: Any, folder: RunFolder) -> None:
        """Makes what a run needs before its model and tokenizer are there."""

    def prepare(self, settings: Any, tokenizer: Any) -> None:
        """Is told of the run before it is given anything to read."""

    # ---- rows to examples

    def rows(self, paths: Iterable[str | Path], settings: Any) -> Iterator[Row]:
        """The rows of files."""
        return rows(paths, settings.encoding)

    def examples(
        self, rows: Iterable[Row], settings: Any, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """What the rows hold, with the `place` of each, and the `group` that stays together."""
        raise NotImplementedError

    def text_columns(self, names: list[str]) -> list[str]:
        """The columns that can be the text of a document without an answer."""
        return names

    def unanswered(self, value: Any, row: Row, column: str) -> dict[str, Any]:
        """What a document holds that the model is to say something of."""
        raise NotImplementedError

    def learn(self, examples: Iterable[Example]) -> None:
        """Looks at the training examples for what the head must know, such as its labels."""
        for _ in examples:
            pass

    def head_settings(self) -> dict[str, Any]:
        """What the configuration of the model says of the head."""
        return {}

    def start_from(self, config: Any) -> None:
        """Looks at the configuration of the model that is to learn, and may add to it."""

    @classmethod
    def of_model(cls, config: Any) -> Task:
        """The task that a model was trained for."""
        return cls()

    # ---- examples to features

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int
    ) -> Iterator[dict[str, Any]]:
        """Examples with their inputs, and how many `tokens` they have before they are cut."""
        raise NotImplementedError

    def training_features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int
    ) -> Iterator[dict[str, Any]]:
        """The same for examples to learn from."""
        return self.features(examples, tokenizer, length)

    def about(self, rows: Dataset, length: int) -> Iterator[str]:
        """Lines on what becomes of documents that are not as the model takes them."""
        longer = int((numbers_of(rows, "tokens") > length).sum())
        if longer:
            yield (
                f"  {longer:,} are longer than the {length:,} tokens that the model reads: their "
                "ends are cut off"
            )

    def check(self, parts: Mapping[str, Dataset], settings: Any) -> None:
        """Looks at all documents before the first step; raises where nothing can be learned."""

    # ---- parts: what the model reads of a row at once, which may be windows of it

    def lengths(self, features: Example) -> list[int]:
        """Tokens of each part of a row: one part, unless a task says otherwise."""
        return [len(features["input_ids"])]

    def reader(self, rows: Dataset) -> Callable[[int, int | None], Example]:
        """What gives the `inputs` of a row in an epoch, as those of `inputs_of`."""
        return lambda row, _epoch: rows[row]

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """The inputs of a part of a row as they are in an epoch.

        What is random in them is a function of the seed, the number and the epoch alone.

        Args:
            row: Its `inputs`.
            part: Which of its parts.
            number: Of this part among those of all rows.
            epoch: None where a model is measured, always in the same way.
        """
        return {name: row[name] for name in self.inputs}

    def joined(self, row: Example, parts: Sequence[Prediction]) -> dict[str, Any]:
        """What was said of the parts of a row as what is said of it."""
        return dict(parts[0])

    def second_look(self, rows: Dataset, predictions: Sequence[Prediction]) -> Dataset | None:
        """The rows in other parts, to be read again; those without parts are not."""
        return None

    def looked_twice(self, first: Prediction, second: Prediction) -> dict[str, Any]:
        """Two predictions of a row as one."""
        raise NotImplementedError

    # ---- features to batches

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """A batch as the model takes it, of inputs that `pad` makes equally long."""
        return self.collate(pad(examples))

    def collate(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """A padded batch as the model takes it."""
        return batch

    def uncounted(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """A batch of a process that has no document of a step; its `items` are 0 in any case."""
        return batch

    # ---- learning

    def class_weights(self, examples: Iterable[Example]) -> Tensor:
        """Weights that make every class count as much as every other."""
        raise InvalidValueError(f"{self.name} has no classes: leave class_weights out")

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Any:
        """The outputs of the model for a batch."""
        return model(**batch)

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """A mean over the `items` of a batch."""
        return outputs.loss

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """How many things the loss is a mean over: documents, unless a task says otherwise."""
        return len(batch["input_ids"])

    def tokens_kept(self, tokens: int) -> int:
        """Of the tokens of a batch, those whose activations are in memory at one time."""
        return tokens

    # ---- outputs to results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """What the model says of each example of a batch."""
        raise NotImplementedError

    def watched(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """What a model is measured by while it learns, where predictions take too long."""
        return self.predictions(model, batch)

    def some(self, rows: Dataset) -> Dataset:
        """The validation documents that are measured at the end, where all take too long."""
        return rows

    def calibrate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], config: Any
    ) -> None:
        """Chooses thresholds by the validation documents, after these were measured."""

    def notes(self) -> list[str]:
        """What must be known to read the metrics, in sentences that stand beside each table."""
        return []

    def write_beside(self, model: Path) -> None:
        """Writes what belongs into the folder of the best model besides it and its tokenizer."""

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """A prediction as the user sees it."""
        raise NotImplementedError

    def given(self, prediction: Prediction) -> dict[str, Any]:
        """The same for the list of the worst examples."""
        return self.answer(prediction)

    def whole_documents(self, examples: Any, predictions: list[Any]) -> tuple[Any, list[Any]]:
        """Whole documents, of rows that may be pieces of one."""
        return examples, predictions

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """The metrics: numbers as float, counts as int."""
        raise NotImplementedError

    def resampled(
        self,
        examples: Sequence[Example],
        predictions: Sequence[Prediction],
        counts: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Metrics of many samples, each [samples], for intervals.

        Args:
            examples: What is true.
            predictions: What was said.
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

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """How wrong a prediction is: the worst examples have the largest."""
        raise NotImplementedError

    def expected(self, example: Example) -> Any:
        """What would have been right, as the user sees it."""
        raise NotImplementedError
