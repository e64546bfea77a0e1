"""What a task is: how rows become batches, what is learned, and how well it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

from longbird.tasks.files import Row
from longbird.tasks.settings import Settings


class Task(Protocol):
    """What is particular to a task; everything else about a run is the same for all."""

    head: str
    """Its name in `longbird.hf.tasks`."""
    best: str
    """The metric that decides which model is the best."""
    inputs: tuple[str, ...]
    """What the model takes of the features."""

    def examples(
        self, rows: Iterable[Row], settings: Settings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """What the rows hold, with the `place` of each, and the `group` that stays together."""
        ...

    def learn_from(self, examples: Iterable[Mapping[str, Any]]) -> None:
        """Looks at the training examples for what the head must know, such as its labels."""
        ...

    def head_settings(self) -> dict[str, Any]:
        """What the configuration of the model says of the head."""
        ...

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int
    ) -> Iterator[dict[str, Any]]:
        """Examples with their inputs, and how many `tokens` they have before they are cut."""
        ...

    def collate(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """A padded batch as the model takes it."""
        ...

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """A mean over the `items` of a batch."""
        ...

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """How many things the loss is a mean over."""
        ...

    def predictions(self, outputs: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """What the model says of each example of a batch."""
        ...

    def answer(self, prediction: Mapping[str, Any]) -> dict[str, Any]:
        """A prediction as the user sees it."""
        ...

    def measure(
        self, examples: Sequence[Mapping[str, Any]], predictions: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """The metrics."""
        ...

    def wrongness(self, example: Mapping[str, Any], prediction: Mapping[str, Any]) -> float:
        """How wrong a prediction is: the worst examples have the largest."""
        ...
