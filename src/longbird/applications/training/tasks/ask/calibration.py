"""What is chosen by the answers to held-out questions: a second look, and a confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from longbird.applications.reading.confidence import Confidence, features
from longbird.applications.reading.model_outputs import best_answer
from longbird.applications.training.metrics import squad
from longbird.applications.training.tasks.task import Prediction

RIGHT = 0.5
"""The F1 from which on an answer counts as right."""


def best_text(prediction: Prediction) -> str:
    """Return the best answer, whether or not there is one."""
    kind, span = best_answer(prediction), prediction["span"]
    if kind != "span":
        return kind
    return "" if span is None else span["text"]


def is_better_twice(golds: Sequence[Mapping[str, Any]], predictions: Sequence[Prediction]) -> bool:
    """Return whether a second look improves the answers about long documents that have one."""
    once, twice = (
        [
            squad.score(best_text(seen(each)), gold["answers"], False)[1]
            for gold, each in zip(golds, predictions, strict=True)
            if gold["answers"] and "first" in each
        ]
        for seen in (lambda each: each["first"], lambda each: each)
    )
    return sum(twice) > sum(once)


def fitted_confidence(
    golds: Sequence[Mapping[str, Any]], predictions: Sequence[Prediction]
) -> Confidence | None:
    """Return how often answers like these are right; None if all are right, or none.

    The threshold is what gives the highest F1 over all questions, where silence is right if there
    is no answer; it is higher where otherwise most of the answers that are given would be wrong.
    """
    scores = np.array(
        [
            squad.score(best_text(prediction), gold["answers"], False)[1]
            for gold, prediction in zip(golds, predictions, strict=True)
        ]
    )
    silent = np.array([float(not gold["answers"]) for gold in golds])
    right = scores >= RIGHT
    if right.all() or not right.any():
        return None
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression(max_iter=1000).fit([features(each) for each in predictions], right)
    weights, bias = tuple(fit.coef_[0].tolist()), float(fit.intercept_[0])
    free = Confidence(weights, bias, 0.0)
    sure = np.array([free.of(each) for each in predictions])
    least = -squad.best_threshold(-sure, scores, silent) if silent.any() else 0.0
    order = np.argsort(-sure, kind="stable")
    share = np.cumsum(right[order]) / np.arange(1, len(right) + 1)  # of the surest, right
    if (enough := np.flatnonzero(share >= 0.5)).size:
        least = max(least, sure[order][enough[-1]])
    return Confidence(weights, bias, float(np.clip(least, 0.0, 1.0)))
