"""The confidence of an answer: the probability that it is right, fitted to held-out questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longbird.applications.reading.model_outputs import (
    NONE,
    TYPES,
    best_answer,
    log_softmax,
    margin,
)
from longbird.errors import InvalidValueError

FEATURES = 10
"""Length of `features`."""
FAR = 25.0
"""Maximum absolute value of a feature."""


@dataclass(frozen=True)
class Confidence:
    """A logistic regression over the outputs of a model, and a threshold for answering.

    A softmax over the tokens of a document is confident whether or not the model knows the
    answer. A regression fitted to held-out questions tells how often such answers are right.

    Attributes:
        weights: Weight of each of `features`.
        bias: Bias of the regression.
        least: Lowest probability with which an answer is given.
    """

    weights: tuple[float, ...]
    bias: float
    least: float

    def of(self, found: Mapping[str, Any]) -> float:
        """Return the probability that the best answer is right."""
        logit = float(np.dot(self.weights, features(found))) + self.bias
        return float(1 / (1 + np.exp(-logit)))

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", tuple(self.weights))  # a list in configuration files
        if len(self.weights) != FEATURES:
            raise InvalidValueError(
                f"the configuration has {len(self.weights)} weights for the confidence of "
                f"answers, expected {FEATURES}, as `longbird finetune ask` writes them"
            )

    def as_json(self) -> dict[str, Any]:
        """Return the values for a configuration file."""
        return {**asdict(self), "weights": list(self.weights)}


def features(found: Mapping[str, Any]) -> list[float]:
    """Return the inputs of the regression for an answer from `model_outputs.join`.

    If a document is read twice, the best predictors are whether both passes found the same
    answer, and how likely the first pass made it: with them the area under the ROC curve is 0.78
    on validation questions (in ten folds), without them 0.65.
    """
    kind, types, span = best_answer(found), found["types"], found["span"]
    likely = log_softmax(types[:NONE])[TYPES.index(kind)] if types is not None else 0.0
    none = margin(types) if types is not None else 0.0
    if kind == "span" and span is not None:
        first = found.get("first", found)["span"] or span
        agrees = max(span["start"], first["start"]) < min(span["end"], first["end"])
        chance = np.log(max(span["chance"], 1e-12))
        there = margin(found["there"]) if found["there"] is not None else 0.0
        beside = found["beside"]
        of_span = (1.0, chance, span["logit"], first["logit"], agrees, found["ahead"], there)
    else:
        beside = max(found["sentences"], default=None)
        of_span = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, none)
    values = (likely, none, 0.0 if beside is None else beside, *of_span)
    return [float(np.clip(each, -FAR, FAR)) for each in values]
