"""Metrics are those of scikit-learn, of all examples and of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from longbird.applications.dna import scores as scoring
from longbird.applications.dna.scores import Ranked, marked

NONE: Any = {"zero_division": 0}  # where nothing is called


def by_scikit_learn(truth: np.ndarray, scores: np.ndarray, weight: Any) -> dict[str, float]:
    said = scores >= 0.5
    return {
        "auroc": metrics.roc_auc_score(truth, scores, sample_weight=weight),
        "average_precision": metrics.average_precision_score(truth, scores, sample_weight=weight),
        "f1": metrics.f1_score(truth, said, sample_weight=weight),
        "mcc": metrics.matthews_corrcoef(truth, said, sample_weight=weight),
        "precision": metrics.precision_score(truth, said, sample_weight=weight, **NONE),
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
        ranked = Ranked.marked([marked(scores[rows == i], truth[rows == i]) for i in range(50)])
    else:
        ranked = Ranked.each(scores, truth)
    assert ranked.prevalence == pytest.approx(truth.mean())
    found = ranked.metrics(counts)
    for sample, times in enumerate(counts):
        for name, value in by_scikit_learn(truth, scores, times[rows]).items():
            assert found[name][sample] == pytest.approx(value), name


@pytest.mark.parametrize("prevalence", [0.001, 0.1, 0.999])
@pytest.mark.parametrize(("spread", "most"), [(1.0, 2**24), (0.003, 2**24), (1.0, 1000)])
def test_scores_are_ranked_however_close_and_rare_what_is_true_is(
    prevalence: float, spread: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits of two normal distributions, far from 0 and close together as those of a model
    that has learned little."""
    monkeypatch.setattr(scoring, "MOST", most)
    drawn = np.random.default_rng(1)
    truth = drawn.random(200_000) < prevalence
    centre = np.log(prevalence / (1 - prevalence))
    logits = centre + spread * (drawn.normal(2 * truth, 1) - 2 * (prevalence > 0.5))
    scores = (1 / (1 + np.exp(-logits))).astype(np.float32)
    rows = np.array_split(np.arange(len(scores)), 100)
    ranked = Ranked.marked([marked(scores[own], truth[own]) for own in rows])
    times = drawn.multinomial(100, np.full(100, 0.01))
    weight = np.repeat(times, [len(own) for own in rows])
    sampled = {name: x[0] for name, x in ranked.metrics(times[None]).items()}
    exact = 1e-9 if most > len(truth) else 1e-4
    for found, own, off in ((ranked.whole(), None, exact), (sampled, weight, 1e-3)):
        wanted = by_scikit_learn(truth, scores, own)
        for name in ("auroc", "average_precision"):
            assert found[name] == pytest.approx(wanted[name], abs=off), name
        for name in ("precision", "recall", "f1", "mcc"):
            assert found[name] == pytest.approx(wanted[name], abs=1e-6), name


def test_examples_of_any_size_are_counted() -> None:
    """Also the lowest and the highest scores, and examples without any."""
    scores = [np.array([0.0, 1.0, 0.5]), np.zeros(0), np.linspace(0, 1, 5000)]
    truth = [own > 0.3 for own in scores]
    ranked = Ranked.marked([marked(a, b) for a, b in zip(scores, truth, strict=True)])
    every = np.concatenate(truth)
    assert ranked.prevalence == pytest.approx(every.mean())
    assert ranked.whole()["auroc"] == 1
    assert ranked.metrics(np.array([[0, 5, 1]]))["recall"][0] == pytest.approx(
        np.mean(scores[2][truth[2]] >= 0.5)
    )


def test_one_class_alone_has_no_score() -> None:
    found = Ranked.each(np.array([0.1, 0.6, 0.9]), np.ones(3, bool)).whole()
    assert np.isnan(found["auroc"])
    assert np.isnan(found["mcc"])
    assert found["recall"] == 2 / 3
    none = Ranked.each(np.array([0.1, 0.6, 0.9]), np.zeros(3, bool)).whole()
    assert all(np.isnan(each) for each in none.values())  # or it would count as 0 in a mean


@pytest.mark.slow  # five million bases
def test_metrics_of_five_million_bases_are_exact() -> None:
    """Products of counts of a whole genome exceed 64-bit integers."""
    drawn = np.random.default_rng(2)
    truth = drawn.random(5_000_000) < 0.4
    scores = np.round(np.clip(drawn.normal(0.4 + 0.2 * truth, 0.2), 0, 1), 2).astype(np.float32)
    rows = np.array_split(np.arange(len(scores)), 200)
    ranked = Ranked.marked([marked(scores[own], truth[own]) for own in rows])
    whole = ranked.whole()
    for name, value in by_scikit_learn(truth, scores, None).items():
        assert whole[name] == pytest.approx(value, rel=1e-9), name
        assert 0 <= whole[name] <= 1, name
    samples = ranked.metrics(drawn.multinomial(200, np.full(200, 1 / 200), 200))
    for name, values in samples.items():
        low, high = np.quantile(values, [0.025, 0.975])
        assert low <= whole[name] <= high, name


@pytest.mark.parametrize("size", [10**5, 3 * 10**9])
def test_metrics_of_counts_of_any_size_lie_within_their_range(size: int) -> None:
    """Counts of two levels, up to those of a human genome, without a table of its bases."""
    for tp, fp, fn, tn in ((4, 1, 1, 4), (1, 4, 4, 1), (1, 0, 0, 9), (3, 3, 2, 2)):
        true, false = (np.array([[a * size, b * size]]) for a, b in ((tp, fn), (fp, tn)))
        found = scoring.metrics_of_counts(np.array([0.9, 0.1]), true, false)
        small = scoring.metrics_of_counts(np.array([0.9, 0.1]), true // size, false // size)
        for name, value in found.items():
            assert value[0] == pytest.approx(small[name][0], rel=1e-12), name
            assert (-1 if name == "mcc" else 0) <= value[0] <= 1, name
