"""Weighted metrics compared with scikit-learn on repeated examples, and calls with loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, matthews_corrcoef, roc_auc_score

from experiments.dna.metrics import (
    auroc_of,
    average_precision_of,
    mcc_of,
    precision_at_recall_of,
)
from experiments.dna.peaks import match, peaks, shift_of_odds

SAMPLES, DOCUMENTS = 5, 60


@pytest.fixture(params=[3, 1000], ids=["ties", "few ties"])
def drawn(request: pytest.FixtureRequest) -> tuple[dict[str, np.ndarray], np.ndarray]:
    random = np.random.default_rng(0)
    columns = {
        "score": random.integers(0, request.param, DOCUMENTS).astype(float),
        "true": random.random(DOCUMENTS) < 0.3,
        "here": random.random(DOCUMENTS) < 0.6,
    }
    return columns, random.integers(0, 4, (SAMPLES, DOCUMENTS)).astype(float)


@pytest.mark.parametrize("where", [None, "here"])
def test_ranked_metrics(
    drawn: tuple[dict[str, np.ndarray], np.ndarray], where: str | None
) -> None:
    columns, counts = drawn
    auroc = auroc_of("score", "true", where)(columns, counts)
    precision = average_precision_of("score", "true", where)(columns, counts)
    for sample in range(SAMPLES):
        weights = counts[sample] * (1 if where is None else columns[where])
        again = np.repeat(np.arange(DOCUMENTS), weights.astype(int))  # each as often as drawn
        true, score = columns["true"][again], columns["score"][again]
        assert auroc[sample] == pytest.approx(roc_auc_score(true, score))
        assert precision[sample] == pytest.approx(average_precision_score(true, score))


@pytest.mark.parametrize("recall", [0.2, 0.5, 1.0])
def test_precision_at_recall(
    drawn: tuple[dict[str, np.ndarray], np.ndarray], recall: float
) -> None:
    columns, counts = drawn
    found = precision_at_recall_of("score", "true", recall)(columns, counts)
    for sample in range(SAMPLES):
        again = np.repeat(np.arange(DOCUMENTS), counts[sample].astype(int))
        true, score = columns["true"][again], columns["score"][again]
        for threshold in sorted(set(score.tolist()), reverse=True):
            called = score >= threshold
            if true[called].sum() >= recall * true.sum():
                assert found[sample] == pytest.approx(true[called].mean())
                break


def test_what_was_never_found() -> None:
    columns = {
        "score": np.array([3.0, 2.0, 1.0, 0.0, 0.0]),
        "hit": np.array([1, 0, 1, 1, 1]),
        "found": np.array([1, 1, 1, 0, 0]),
    }
    every = np.ones((1, 5))
    precision = average_precision_of("score", "hit", found="found")(columns, every)
    assert precision[0] == pytest.approx((1 / 1 + 2 / 3) / 4)
    for recall, expected in ((0.25, 1.0), (0.5, 2 / 3), (0.75, 0.0)):
        at = precision_at_recall_of("score", "hit", recall, found="found")(columns, every)
        assert at[0] == pytest.approx(expected)


def test_samples_without_one_kind_say_nothing() -> None:
    columns = {"score": np.array([1.0, 2.0]), "true": np.array([0, 1])}
    counts = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert np.isnan(auroc_of("score", "true")(columns, counts)).all()
    assert np.isnan(average_precision_of("score", "true")(columns, counts)).tolist() == [
        True,
        False,
    ]
    at = precision_at_recall_of("score", "true", 0.5)(columns, counts)
    assert np.isnan(at).tolist() == [True, False]


def test_matthews() -> None:
    random = np.random.default_rng(0)
    said, true = random.random((4, 500)) < 0.6, random.random((4, 500)) < 0.4
    said |= true & (random.random((4, 500)) < 0.5)
    columns = {
        "a": (said & true).sum(1),
        "b": (said & ~true).sum(1),
        "c": (~said & true).sum(1),
        "d": (~said & ~true).sum(1),
    }
    counts = np.array([[1.0, 1, 1, 1], [2, 0, 0, 1]])
    found = mcc_of("a", "b", "c", "d")(columns, counts)
    assert found[0] == pytest.approx(matthews_corrcoef(true.ravel(), said.ravel()))
    rows = [0, 0, 3]
    assert found[1] == pytest.approx(matthews_corrcoef(true[rows].ravel(), said[rows].ravel()))
    assert mcc_of("a", "a", "c", "c")({"a": np.ones(1), "c": np.zeros(1)}, np.ones((1, 1))) == [0]


# ---- calls ----


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(1, 4))
def test_peaks(scores: list[int], apart: int) -> None:
    found = peaks(np.array(scores, float), apart).tolist()
    assert np.all(np.diff(found) > apart)
    assert scores.index(max(scores)) in found
    for at in found:
        assert scores[at] == max(scores[max(0, at - apart) : at + apart + 1])
    for at in range(len(scores)):
        if scores[at] > max(
            [*scores[max(0, at - apart) : at], *scores[at + 1 : at + 1 + apart], -1]
        ):
            assert at in found


@given(
    st.lists(st.integers(0, 200), max_size=15, unique=True),
    st.lists(st.integers(0, 200), max_size=8, unique=True),
)
def test_each_start_is_found_once(at: list[int], starts: list[int]) -> None:
    score = np.random.default_rng(0).permutation(len(at)).astype(float)
    calls = match(np.array(at, int), score, np.array(starts, int), tolerance=10)
    left = set(range(len(starts)))
    for peak in sorted(range(len(at)), key=lambda i: -score[i]):
        near = [i for i in left if abs(starts[i] - at[peak]) <= 10]
        said = int(calls.start[calls.at.tolist().index(at[peak])])
        if not near:
            assert said == -1
        else:
            best = min(abs(starts[i] - at[peak]) for i in near)
            assert said in near
            assert abs(starts[said] - at[peak]) == best
            left.remove(said)
    assert np.all(np.diff(calls.score) <= 0)
    assert calls.starts == len(starts)


def test_a_shift_makes_rare_what_was_frequent() -> None:
    """Of examples with known odds, resampled so that positives are half of them."""
    random = np.random.default_rng(0)
    true = random.random(400_000) < 0.02
    value = random.normal(true * 1.5)
    odds = 1.5 * value - 1.5**2 / 2  # exact where both kinds are equally frequent
    shifted = 1 / (1 + np.exp(-(odds + shift_of_odds(0.5, 0.02))))
    for low, high in ((0.0, 0.02), (0.02, 0.1), (0.1, 0.5)):
        here = (low <= shifted) & (shifted < high)
        assert shifted[here].mean() == pytest.approx(true[here].mean(), rel=0.1)
    with pytest.raises(ValueError, match=r"above 0 and below 1, received 1\.0"):
        shift_of_odds(0.5, 1.0)
