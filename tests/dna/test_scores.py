"""Metrics are those of scikit-learn, of all examples and of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from longbird.dna.scores import Ranked, tally


def by_scikit_learn(truth: np.ndarray, scores: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    said = scores >= 0.5
    return {
        "auroc": metrics.roc_auc_score(truth, scores, sample_weight=weight),
        "average_precision": metrics.average_precision_score(truth, scores, sample_weight=weight),
        "f1": metrics.f1_score(truth, said, sample_weight=weight),
        "mcc": metrics.matthews_corrcoef(truth, said, sample_weight=weight),
        "precision": metrics.precision_score(truth, said, sample_weight=weight),
        "recall": metrics.recall_score(truth, said, sample_weight=weight),
    }


@pytest.mark.parametrize("counted", [False, True])
def test_metrics_are_those_of_scikit_learn(counted: bool) -> None:
    """Of 50 examples with one score each, or with about eight."""
    drawn = np.random.default_rng(0)
    size = 400 if counted else 50
    truth = drawn.random(size) < 0.3
    scores = np.round(np.clip(drawn.normal(0.4 + 0.2 * truth, 0.2), 0, 1), 2)  # many are equal
    rows = drawn.integers(0, 50, 400) if counted else np.arange(50)
    counts = np.vstack([np.ones(50, int), drawn.multinomial(50, np.full(50, 0.02), 3)])
    if counted:
        ranked = Ranked.counted([tally(scores[rows == i], truth[rows == i]) for i in range(50)])
    else:
        ranked = Ranked.each(scores, truth)
    assert ranked.prevalence == pytest.approx(truth.mean())
    found = ranked.metrics(counts)
    for sample, times in enumerate(counts):
        for name, value in by_scikit_learn(truth, scores, times[rows]).items():
            assert found[name][sample] == pytest.approx(value), name


@pytest.mark.parametrize("prevalence", [0.001, 0.1, 0.999])
def test_rounding_changes_little_however_rare_what_is_true_is(prevalence: float) -> None:
    """Logits of two normal distributions, far apart from 0 as those of a model then are."""
    drawn = np.random.default_rng(1)
    truth = drawn.random(200_000) < prevalence
    centre = np.log(prevalence / (1 - prevalence))
    logits = drawn.normal(centre + 2 * truth - 2 * (prevalence > 0.5), 1)
    scores = (1 / (1 + np.exp(-logits))).astype(np.float32)
    found = Ranked.counted([tally(scores, truth)]).whole()
    assert found["auroc"] == pytest.approx(metrics.roc_auc_score(truth, scores), abs=1e-4)
    average = metrics.average_precision_score(truth, scores)
    assert found["average_precision"] == pytest.approx(average, abs=2e-3)
    none: Any = {"zero_division": 0}  # where nothing is called
    for name, metric in (("precision", metrics.precision_score), ("recall", metrics.recall_score)):
        expected = metric(truth, scores >= 0.5, **none)
        assert found[name] == pytest.approx(expected, abs=1e-12), name


def test_a_tally_stays_small() -> None:
    """Of a million bases as of a thousand."""
    drawn = np.random.default_rng(2)
    scores = drawn.random(1_000_000, np.float32)
    scores[:2] = 0, 1
    found = tally(scores, drawn.random(1_000_000) < 0.5)
    assert int(found.true.sum() + found.false.sum()) == 1_000_000
    assert sum(each.nbytes for each in found) < 50_000


def test_one_class_alone_has_no_score() -> None:
    found = Ranked.each(np.array([0.1, 0.6, 0.9]), np.ones(3, bool)).whole()
    assert np.isnan(found["auroc"]) and np.isnan(found["mcc"])
