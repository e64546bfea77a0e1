"""Accuracy, F1, AUC and average precision, by scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sklearn.metrics


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
    if several:
        chosen = scores >= 0.5
        right = (chosen == truth).all(1)
    else:
        best = scores.argmax(1)
        chosen = np.eye(len(labels), dtype=bool)[best]
        right = truth[np.arange(len(best)), best]
    options: dict[str, Any] = {"zero_division": 0.0}
    by_label = sklearn.metrics.f1_score(truth, chosen, average=None, **options)
    mixed = [label for label in range(len(labels)) if 0 < truth[:, label].sum() < len(truth)]
    auc = [sklearn.metrics.roc_auc_score(truth[:, each], scores[:, each]) for each in mixed]
    precision = [
        sklearn.metrics.average_precision_score(truth[:, each], scores[:, each]) for each in mixed
    ]
    return {
        "documents": len(truth),
        "accuracy": float(right.mean()),
        "macro_f1": float(by_label[truth.any(0) | chosen.any(0)].mean()),
        "micro_f1": float(sklearn.metrics.f1_score(truth, chosen, average="micro", **options)),
        "auc": float(np.mean(auc)) if auc else None,
        "average_precision": float(np.mean(precision)) if precision else None,
        "f1_by_label": {name: float(x) for name, x in zip(labels, by_label, strict=True)},
    }
