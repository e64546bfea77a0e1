"""How sure an answer is: the probability that it is right, fitted to held-out questions."""

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
"""The length of `features`."""
FAR = 25.0
"""Logits beyond this say no more than this."""


@dataclass(frozen=True)
class Confidence:
    """A logistic regression over what a model says, and the probability from which on it answers.

    A softmax over the tokens of a document is sure of itself whether or not it knows; fitted to
    questions that nothing was learned from, its logits tell how often such answers are right.

    Attributes:
        weights: One for each of `features`.
        bias: Of the logistic regression.
        least: An answer less probable than this is not given.
    """

    weights: tuple[float, ...]
    bias: float
    least: float

    def of(self, found: Mapping[str, Any]) -> float:
        """The probability that the best answer is right."""
        logit = float(np.dot(self.weights, features(found))) + self.bias
        return float(1 / (1 + np.exp(-logit)))

    def __post_init__(self) -> None:
        """A configuration file has a list."""
        object.__setattr__(self, "weights", tuple(self.weights))
        if len(self.weights) != FEATURES:
            raise InvalidValueError(
                f"the configuration has {len(self.weights)} weights for how sure an answer is, "
                f"expected {FEATURES}, as `longbird finetune ask` writes them"
            )

    def as_json(self) -> dict[str, Any]:
        """For a configuration."""
        return {**asdict(self), "weights": list(self.weights)}


def features(found: Mapping[str, Any]) -> list[float]:
    """What the confidence in an answer is computed from, of what `answering.join` gives.

    Of a document that is read twice, whether both looks found one answer, and how surely the first
    did, tell most: with them the area under the ROC curve is 0.78 on validation questions (in ten
    folds), without them 0.65.
    """
    kind, types, span = best_answer(found), found["types"], found["span"]
    likely = log_softmax(types[:NONE])[TYPES.index(kind)] if types is not None else 0.0
    none = margin(types) if types is not None else 0.0
    if kind == "span" and span is not None:
        first = found.get("first", found)["span"] or span
        agrees = _overlap(span, first)
        chance = np.log(max(span["chance"], 1e-12))
        there = margin(found["there"]) if found["there"] is not None else 0.0
        beside = found["beside"]
        of_span = (1.0, chance, span["logit"], first["logit"], agrees, found["ahead"], there)
    else:
        beside = max(found["sentences"], default=None)
        of_span = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, none)
    every = (likely, none, 0.0 if beside is None else beside, *of_span)
    return [float(np.clip(each, -FAR, FAR)) for each in every]


def _overlap(span: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return max(span["start"], other["start"]) < min(span["end"], other["end"])
