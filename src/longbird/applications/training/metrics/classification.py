"""Accuracy, F1, AUC and average precision, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn.metrics

from longbird.errors import InvalidValueError

F1: Any = sklearn.metrics.f1_score
AUC: Any = sklearn.metrics.roc_auc_score
PRECISION: Any = sklearn.metrics.average_precision_score
MOST_CONFUSED = 30
"""Labels in a confusion matrix."""
SCORES: Any = sklearn.metrics.precision_recall_fscore_support
AT_ONCE = 2**21
"""Counts of documents in samples that areas are computed of at once: 16 MiB, a few times."""


def measure(
    truth: np.ndarray, scores: np.ndarray, labels: Sequence[str], several: bool
) -> dict[str, Any]:
    """The metrics of classified documents.

    Args:
        truth: bool [documents, labels].
        scores: [documents, labels].
        labels: Their names.
        several: May a document have several?

    Returns:
        Accuracy (of several labels: the share of documents with all of them right), macro and
        micro F1, F1 by label, and macro AUC and average precision over the labels that some
        documents have and others have not (None if there is no such label). With one label per
        document, also the confusion matrix of the most frequent labels.
    """
    if not np.isfinite(scores).all():
        raise InvalidValueError(
            "the model gives scores that are not numbers: its weights have grown without bound. A "
            "lower `learning_rate` or a longer `warmup` may help, with another `out`"
        )
    chosen = chosen_of(scores, several)
    by_label = F1(truth, chosen, average=None, zero_division=0.0)
    used = max(1, (truth.any(0) | chosen.any(0)).sum())
    mixed = truth.any(0) & ~truth.all(0)
    return {
        "documents": len(truth),
        "accuracy": float((chosen == truth).all(1).mean()),
        "macro_f1": float(by_label.sum() / used),
        "micro_f1": float(F1(truth, chosen, average="micro", zero_division=0.0)),
        "auc": float(AUC(truth[:, mixed], scores[:, mixed])) if mixed.any() else None,
        "average_precision": float(PRECISION(truth[:, mixed], scores[:, mixed]))
        if mixed.any()
        else None,
        "f1_by_label": {name: float(x) for name, x in zip(labels, by_label, strict=True)},
        "by_label": _by_label(truth, chosen, labels),
        **({} if several else {"confusion": _confusion(truth, chosen, labels)}),
    }


def _by_label(
    truth: np.ndarray, chosen: np.ndarray, labels: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return precision, recall, F1 and the number of documents of each label."""
    found = SCORES(truth, chosen, average=None, zero_division=0.0)
    names = ("precision", "recall", "f1", "documents")
    return {
        label: dict(zip(names, map(float, values), strict=True))
        for label, values in zip(labels, np.transpose(found), strict=True)
    }


def _confusion(truth: np.ndarray, chosen: np.ndarray, labels: Sequence[str]) -> dict[str, Any]:
    """Return the documents of each true label by predicted label, for the most frequent labels."""
    frequent = np.sort(np.argsort(-truth.sum(0), kind="stable")[:MOST_CONFUSED])
    counts = truth[:, frequent].astype(int).T @ chosen[:, frequent].astype(int)
    return {"labels": [labels[each] for each in frequent], "counts": counts.tolist()}


def chosen_of(scores: np.ndarray, several: bool) -> np.ndarray:
    """The labels that are given, bool [documents, labels]."""
    if several:
        return scores >= 0.5
    return np.eye(scores.shape[1], dtype=bool)[scores.argmax(1)]


def resampled(
    truth: np.ndarray, scores: np.ndarray, several: bool, counts: np.ndarray
) -> dict[str, np.ndarray]:
    """The metrics of many samples at once, each [samples].

    Args:
        truth: bool [documents, labels].
        scores: [documents, labels].
        several: May a document have several?
        counts: How often each sample has each document, [samples, documents].

    Returns:
        Accuracy, macro and micro F1; and macro AUC and average precision, if there is a label that
        some documents have and others have not (NaN in samples without one).
    """
    chosen = chosen_of(scores, several)
    both, either = counts @ (truth & chosen), counts @ truth.astype(float) + counts @ chosen
    by_label = 2 * both / np.maximum(either, 1)  # [samples, labels]
    used = np.maximum((either > 0).sum(1), 1)
    right = (chosen == truth).all(1)
    found = {
        "accuracy": counts @ right / counts.sum(1),
        "macro_f1": by_label.sum(1) / used,
        "micro_f1": 2 * both.sum(1) / np.maximum(either.sum(1), 1),
    }
    mixed = np.flatnonzero(truth.any(0) & ~truth.all(0))
    if len(mixed) == 0:
        return found
    areas = np.zeros((2, len(counts), len(mixed)))
    at_once = max(1, AT_ONCE // len(truth))
    for begun in range(0, len(counts), at_once):
        some = slice(begun, begun + at_once)
        for number, label in enumerate(mixed):
            areas[:, some, number] = _areas(truth[:, label], scores[:, label], counts[some])
    there = ~np.isnan(areas[0])
    count = np.where(there.any(1), there.sum(1), np.nan)
    found["auc"], found["average_precision"] = np.nansum(areas, axis=2) / count
    return found


def _areas(truth: np.ndarray, scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """AUC and average precision of one label, [2, samples]; NaN without or with all documents."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    begins = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])  # equal scores are one rank
    counts = counts[:, order].astype(float)
    right = np.add.reduceat(counts * truth[order], begins, axis=1)  # [samples, ranks]
    wrong = np.add.reduceat(counts, begins, axis=1) - right
    rights, wrongs = right.cumsum(1), wrong.cumsum(1)
    every, others = rights[:, -1], wrongs[:, -1]
    below = others[:, None] - wrongs + wrong / 2
    precision = rights / np.maximum(rights + wrongs, 1)
    pairs = np.where((every > 0) & (others > 0), every * others, np.nan)
    return np.stack([(right * below).sum(1) / pairs, (right * precision).sum(1) * others / pairs])
