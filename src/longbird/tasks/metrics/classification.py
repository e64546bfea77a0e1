"""Accuracy, F1, AUC and average precision, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn.metrics

F1: Any = sklearn.metrics.f1_score
AUC: Any = sklearn.metrics.roc_auc_score
PRECISION: Any = sklearn.metrics.average_precision_score


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
        documents have and others have not (None if there is no such label).
    """
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
    }


def chosen_of(scores: np.ndarray, several: bool) -> np.ndarray:
    """The labels that are given, bool [documents, labels]."""
    if several:
        return scores >= 0.5
    return np.eye(scores.shape[1], dtype=bool)[scores.argmax(1)]


def resampled(
    truth: np.ndarray, scores: np.ndarray, several: bool, counts: np.ndarray
) -> dict[str, np.ndarray]:
    """Accuracy and F1 of many samples at once, each [samples].

    Args:
        truth: bool [documents, labels].
        scores: [documents, labels].
        several: May a document have several?
        counts: How often each sample has each document, [samples, documents].
    """
    chosen = chosen_of(scores, several)
    both, either = counts @ (truth & chosen), counts @ truth.astype(float) + counts @ chosen
    by_label = 2 * both / np.maximum(either, 1)  # [samples, labels]
    used = np.maximum((either > 0).sum(1), 1)
    right = (chosen == truth).all(1)
    return {
        "accuracy": counts @ right / counts.sum(1),
        "macro_f1": by_label.sum(1) / used,
        "micro_f1": 2 * both.sum(1) / np.maximum(either.sum(1), 1),
    }
