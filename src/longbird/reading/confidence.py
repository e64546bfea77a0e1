"""How sure an answer is: the probability that it is right, fitted to held-out questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longbird.reading.answering import NONE, TYPES, best_answer, log_softmax, margin

FAR = 12.0
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

    def as_json(self) -> dict[str, Any]:
        """For a configuration."""
        return {**asdict(self), "weights": list(self.weights)}


def features(found: Mapping[str, Any]) -> list[float]:
    """What the confidence in an answer is computed from, of what `answering.join` gives."""
    kind, types, span = best_answer(found), found["types"], found["span"]
    is_span = kind == "span"
    chance = span["chance"] if is_span and span is not None else 1.0
    likely = log_softmax(types[:NONE])[TYPES.index(kind)] if types is not None else 0.0
    none = margin(types) if types is not None else 0.0
    beside = found["beside"] if is_span else max(found["sentences"], default=None)
    every = (
        np.log(max(chance, 1e-12)),
        float(is_span),
        float(likely),
        none,
        0.0 if beside is None else beside,
        margin(found["alone"]) if found.get("alone") is not None else none,
    )
    return [float(np.clip(each, -FAR, FAR)) for each in every]
