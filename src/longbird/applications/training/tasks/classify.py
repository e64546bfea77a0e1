"""Classification of documents: one label, or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.applications.training.data.columns import (
    as_label,
    as_text,
    find_column,
    group_of,
    value_of,
)
from longbird.applications.training.data.files import Row
from longbird.applications.training.data.truncation import cut_to
from longbird.applications.training.metrics import classification
from longbird.applications.training.settings.tasks import ClassifySettings
from longbird.applications.training.tasks.task import Example, Prediction, Task
from longbird.errors import InvalidValueError

RUNNERS_UP = 2
"""Labels that are shown after those of a document."""


class Classify(Task):
    """One label for each document, or several."""

    name = "classify"
    settings_class = ClassifySettings
    head = "sequence-classification"
    best = "macro_f1"
    inputs = ("input_ids", "labels")

    def __init__(self, labels: Sequence[str] = (), several: bool = False) -> None:
        self.labels, self.several = list(labels), several
        self.settled = bool(labels)  # whether there are several is for the training files to say

    # ---- rows to examples

    def examples(
        self, rows: Iterable[Row], settings: ClassifySettings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """The text, the labels and the group of each row."""
        columns: tuple[str, str] | None = None
        for row in rows:
            if columns is None:
                names = list(row.values)
                text_column = find_column("text", settings.text, names, say)
                if settings.label == text_column:
                    raise InvalidValueError(
                        f"`text` and `label` are one column, {text_column}: name two"
                    )
                others = [name for name in names if name != text_column]
                alone = text_column == "text"
                label = find_column("label", settings.label, others, say, alone=alone)
                columns = text_column, label
            text, value = (value_of(row, column) for column in columns)
            yield {
                "place": row.place,
                "text": as_text(text, row, columns[0]),
                "label": self._labels_of(value, row, columns[1], settings.separator),
                "group": group_of(row, text, settings.group),
            }

    def unanswered(self, value: Any, row: Row, column: str) -> dict[str, Any]:
        """The text, of which there is no label."""
        return {"text": as_text(value, row, column), "label": []}

    def _labels_of(self, value: Any, row: Row, column: str, separator: str | None) -> list[str]:
        if not isinstance(value, list) and separator is None:
            return [as_label(value, row, column)]
        if isinstance(value, list):
            labels = [as_label(each, row, column) for each in value]
        else:
            parts = as_label(value, row, column).split(separator)
            labels = [part.strip() for part in parts if part.strip()]
        self.several |= not self.settled
        if not self.several and len(labels) != 1:
            raise InvalidValueError(
                f"{row.place} has {len(labels)} labels in {column}, and the model was trained "
                "with one for each document"
            )
        return labels

    def learn(self, examples: Iterable[Example]) -> None:
        """Takes the labels that there are."""
        counts = Counter(label for example in examples for label in example["label"])
        self.labels, self.settled = sorted(counts), True
        if len(counts) < (1 if self.several else 2):
            raise InvalidValueError(
                f"the training files have {len(counts)} label ({', '.join(counts)}), expected two "
                "or more: there is nothing to tell apart"
            )
        if len(counts) > 10_000:
            raise InvalidValueError(
                f"the training files have {len(counts):,} different labels, such as "
                f"{', '.join(list(counts)[:3])}: is `label` the column that was meant?"
            )

    def head_settings(self) -> dict[str, Any]:
        """What the configuration says of the head."""
        kind = "multi" if self.several else "single"
        return {
            "num_labels": len(self.labels),
            "id2label": dict(enumerate(self.labels)),
            "label2id": {label: number for number, label in enumerate(self.labels)},
            "problem_type": f"{kind}_label_classification",
        }

    @classmethod
    def of_model(cls, config: Any) -> Classify:
        """The task that a model was trained for."""
        labels = [config.id2label[number] for number in range(config.num_labels)]
        return cls(labels, config.problem_type == "multi_label_classification")

    # ---- examples to features

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Examples with their tokens and the numbers of their labels."""
        for example, (ids, tokens) in zip(
            examples,
            cut_to(length, [example["text"] for example in examples], tokenizer),
            strict=True,
        ):
            yield {**example, "tokens": tokens, "input_ids": ids, **self._target(example)}

    def _target(self, example: Example) -> dict[str, Any]:
        if not example["label"] and not self.several:  # it is to be found
            return {"labels": [-100.0]}
        unknown = [label for label in example["label"] if label not in self.labels]
        if unknown:
            raise InvalidValueError(
                f"{example['place']} has the label {unknown[0]!r}, which the model does not know; "
                f"it knows {', '.join(self.labels[:20])}"
            )
        numbers = [self.labels.index(label) for label in example["label"]]
        if not self.several:
            return {"labels": [float(numbers[0])]}
        return {"labels": [float(number in numbers) for number in range(len(self.labels))]}

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Return a batch with labels as the head takes them."""
        batch = pad(examples)
        labels = batch["labels"]
        return {**batch, "labels": labels if self.several else labels[:, 0].long()}

    # ---- learning

    def class_weights(self, examples: Iterable[Example]) -> Tensor:
        """Weights that make every class count as much as every other, [labels]."""
        counts = Counter(label for example in examples for label in example["label"])
        total = sum(counts.values())
        return torch.tensor(
            [total / (len(self.labels) * max(1, counts[name])) for name in self.labels]
        )

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """The mean over the documents."""
        if weights is None:
            return outputs.loss
        logits, labels = outputs.logits.float(), batch["labels"]
        weights = weights.to(logits.device)
        if self.several:
            each = F.binary_cross_entropy_with_logits(logits, labels.float(), reduction="none")
            return (each * torch.where(labels > 0, weights, 1.0)).mean()
        each = F.cross_entropy(logits, labels, reduction="none")
        return (each * weights[labels]).mean()

    # ---- outputs to results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The scores of each document."""
        logits = model(**batch).logits.float()
        scores = logits.sigmoid() if self.several else logits.softmax(-1)
        return [{"scores": row} for row in scores.cpu().tolist()]

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """A prediction as the user sees it."""
        scores = dict(zip(self.labels, prediction["scores"], strict=True))
        if self.several:
            return {
                "label": [name for name, score in scores.items() if score >= 0.5],
                "scores": scores,
            }
        return {"label": max(scores, key=scores.__getitem__), "scores": scores}

    def as_text(self, answer: Mapping[str, Any]) -> str:
        """Return the labels with their scores, and the runners-up."""
        labels = answer["label"] if isinstance(answer["label"], list) else [answer["label"]]
        scores: Mapping[str, float] = answer["scores"]
        others = sorted(scores.keys() - {*labels}, key=lambda name: (-scores[name], name))
        chosen, then = (
            ", ".join(f"{name} ({scores[name]:.2f})" for name in names)
            for names in (labels, others[:RUNNERS_UP])
        )
        return f"{chosen or 'no label'}" + (f"; then {then}" if then else "")

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """The metrics of the field."""
        truth, scores = self._table(examples, predictions)
        return classification.measure(truth, scores, self.labels, self.several)

    def resampled(
        self,
        examples: Sequence[Example],
        predictions: Sequence[Prediction],
        counts: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """The metrics of all samples at once."""
        truth, scores = self._table(examples, predictions)
        return classification.resampled(truth, scores, self.several, counts)

    def _table(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is true, bool [documents, labels], and the scores."""
        truth = np.zeros((len(examples), len(self.labels)), dtype=bool)
        for row, example in enumerate(examples):
            truth[row, [self.labels.index(label) for label in example["label"]]] = True
        return truth, np.array([each["scores"] for each in predictions])

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """How wrong a prediction is: the score that was not given to what is true."""
        right = [prediction["scores"][self.labels.index(label)] for label in example["label"]]
        return 1 - min(right) if right else max(prediction["scores"])

    def expected(self, example: Example) -> Any:
        """Its label, or its labels."""
        return list(example["label"]) if self.several else example["label"][0]
