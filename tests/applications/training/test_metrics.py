"""Metrics against scikit-learn on resampled rows, and against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics

from longbird.applications.training.metrics.classification import measure, resampled


def drawn(several: bool, labels: int = 4, documents: int = 60) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    scores = random.random((documents, labels))
    if several:
        return random.random((documents, labels)) < 0.3, scores
    return np.eye(labels, dtype=bool)[random.integers(0, labels - 1, documents)], scores


@pytest.mark.parametrize("several", [False, True])
def test_against_scikit_learn(several: bool) -> None:
    truth, scores = drawn(several)
    found = measure(truth, scores, list("abcd"), several)
    chosen = scores >= 0.5 if several else scores == scores.max(1, keepdims=True)
    assert found["accuracy"] == sklearn.metrics.accuracy_score(truth, chosen)
    by_hand = []
    for label in range(4):
        right = (truth[:, label] & chosen[:, label]).sum()
        by_hand.append(2 * right / (truth[:, label].sum() + chosen[:, label].sum()))
    assert found["macro_f1"] == pytest.approx(np.mean(by_hand))
    mixed = [0, 1, 2, 3] if several else [0, 1, 2]  # no document has the last label
    areas = [sklearn.metrics.roc_auc_score(truth[:, x], scores[:, x]) for x in mixed]
    assert found["auc"] == pytest.approx(np.mean(areas))


@pytest.mark.parametrize("several", [False, True])
def test_samples_at_once_are_samples_one_by_one(several: bool) -> None:
    truth, scores = drawn(several)
    scores = scores.round(1) + np.arange(4) * 1e-3  # with equal ones in a column, not in a row
    counts = np.random.default_rng(1).multinomial(60, [1 / 60] * 60, 20)
    found = resampled(truth, scores, several, counts)
    assert {"accuracy", "macro_f1", "micro_f1", "auc", "average_precision"} == found.keys()
    for sample, row in enumerate(counts):
        rows = np.repeat(np.arange(60), row)
        alone = measure(truth[rows], scores[rows], list("abcd"), several)
        for name, values in found.items():
            assert values[sample] == pytest.approx(alone[name]), name


def test_one_label_alone_has_no_area() -> None:
    truth = np.array([[True, False]] * 3)
    found = measure(truth, np.array([[0.9, 0.1]] * 3), ["a", "b"], False)
    assert found["auc"] is None
    assert found["accuracy"] == 1.0
    assert found["macro_f1"] == 1.0


def test_a_sample_without_an_area_has_none() -> None:
    truth, scores = (
        np.eye(2, dtype=bool)[[0, 0, 1]],
        np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]),
    )
    found = resampled(truth, scores, False, np.array([[2, 1, 0], [1, 1, 1]]))
    assert np.isnan(found["auc"][0])
    assert found["auc"][1] == 0.5
    assert np.isnan(found["average_precision"][0])
    alike = resampled(truth[:2], scores[:2], False, np.array([[1, 1]]))
    assert "auc" not in alike
