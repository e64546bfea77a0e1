"""Metrics are those of scikit-learn, of all examples and of samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

from longbird.dna.scores import LEVELS, Ranked


@pytest.mark.parametrize("rounded", [False, True])
def test_metrics_are_those_of_scikit_learn(rounded: bool) -> None:
    drawn = np.random.default_rng(0)
    truth = drawn.random(400) < 0.3
    scores = np.round(np.clip(drawn.normal(0.4 + 0.2 * truth, 0.2), 0, 1), 2)  # many are equal
    rows = drawn.integers(0, 50, 400)
    counts = np.vstack([np.ones(50, int), drawn.multinomial(50, np.full(50, 0.02), 3)])
    found = Ranked(rows, scores, truth, 50, rounded).metrics(counts)
    for sample, times in enumerate(counts):
        weight = times[rows]
        said = scores >= 0.5
        expected = {
            "auroc": metrics.roc_auc_score(truth, scores, sample_weight=weight),
            "average_precision": metrics.average_precision_score(
                truth, scores, sample_weight=weight
            ),
            "f1": metrics.f1_score(truth, said, sample_weight=weight),
            "mcc": metrics.matthews_corrcoef(truth, said, sample_weight=weight),
            "precision": metrics.precision_score(truth, said, sample_weight=weight),
            "recall": metrics.recall_score(truth, said, sample_weight=weight),
        }
        for name, value in expected.items():
            assert found[name][sample] == pytest.approx(value), name


def test_many_scores_are_rounded_a_little() -> None:
    drawn = np.random.default_rng(1)
    truth = drawn.random(20_000) < 0.1
    scores = np.clip(drawn.normal(0.4 + 0.2 * truth, 0.2), 0, 1)
    rows = np.zeros(20_000, int)
    exact, near = (Ranked(rows, scores, truth, 1, each).whole() for each in (False, True))
    assert near["auroc"] == pytest.approx(exact["auroc"], abs=2 / LEVELS)
    assert near["average_precision"] == pytest.approx(exact["average_precision"], abs=0.01)


def test_one_class_alone_has_no_score() -> None:
    found = Ranked(np.arange(3), np.array([0.1, 0.6, 0.9]), np.ones(3, bool), 3).whole()
    assert np.isnan(found["auroc"]) and np.isnan(found["mcc"])
