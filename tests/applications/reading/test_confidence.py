"""What the confidence in an answer is computed from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from longbird.applications.reading.confidence import FAR, Confidence, features
from longbird.applications.reading.model_outputs import join
from longbird.applications.reading.second_pass import combined_passes

WORDS = "the mill by the river closed in 1911".split()


def said(low: int, high: int, logit: float, types: list[float] | None) -> dict[str, Any]:
    """What a model says of a window that has all words."""
    return {
        "tokens": (low, high),
        "logit": logit,
        "chance": 0.5,
        "types": types,
        "sentences": [0.5, -1.5],
    }


def found(*parts: dict[str, Any], worth: list[float] | None = None) -> dict[str, Any]:
    """The answer of windows; sentences begin at the first word and at the fourth."""
    text = " ".join(WORDS)
    starts = [text.index(" " + word) + 1 if number else 0 for number, word in enumerate(WORDS)]
    row = {
        "text": text,
        "skipped": 0,
        "first": 0,
        "starts": starts,
        "ends": [start + len(word) for start, word in zip(starts, WORDS, strict=True)],
        "windows": [(0, len(WORDS))] * len(parts),
        "sentence_tokens": [0, 4],
        "worth": worth,
    }
    return join(row, parts, parts[0]["types"] is not None, True)


def test_the_best_window_is_ahead_of_the_next() -> None:
    types = [2.0, -1.0, -1.0, 0.0]
    spans = [said(1, 1, 3.0, types), said(7, 7, 8.0, types), said(5, 5, 6.5, types)]
    assert found(*spans)["ahead"] == pytest.approx(1.5)
    assert found(*spans, worth=[6.0, 0.0, 1.0])["ahead"] == pytest.approx(1.0)
    assert found(spans[0])["ahead"] == 0.0
    nowhere = said(0, 0, -np.inf, types)
    assert found(nowhere, nowhere)["ahead"] == 0.0
    assert features(found(spans[0], nowhere))[-2] == FAR


def test_both_looks_may_agree() -> None:
    types = [2.0, -1.0, -1.0, 0.5]
    first = found(said(6, 7, 4.0, types))
    same = combined_passes(first, found(said(7, 7, 9.0, types), said(0, 1, 2.0, types)))
    other = combined_passes(first, found(said(0, 1, 9.0, types), said(7, 7, 2.0, types)))
    differs = np.array(features(same)) - features(other)
    agrees, beside = differs[[7, 2]]
    assert agrees == 1.0
    assert beside == -2.0
    assert np.count_nonzero(differs) == 2
    assert features(same)[5:7] == [9.0, 4.0]  # the logits of both looks
    assert features(first)[7] == 1.0  # one look agrees with itself


def test_an_answer_is_surer_the_more_speaks_for_it() -> None:
    sure = Confidence(tuple([0.1] * 10), 0.0, 0.0)
    logits = np.linspace(-30, 30, 9)
    every = [sure.of(found(said(7, 7, logit, [1.0, 0.0, 0.0, -1.0]))) for logit in logits]
    assert every == sorted(every)
    assert 0 < every[0] < every[-1] < 1


def test_a_confidence_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has 3 weights .* expected 10"):
        Confidence((0.1,) * 3, 0.0, 0.0)


@pytest.mark.parametrize("types", [None, [0.0, 4.0, 0.0, 1.0], [0.0, 0.0, 4.0, 9.0]])
def test_every_kind_of_answer_has_as_many_features(types: list[float] | None) -> None:
    assert len(features(found(said(7, 7, 1.0, types)))) == 10
    assert len(features(found(said(0, 0, -np.inf, types)))) == 10
    assert np.isfinite(features(found(said(0, 0, -np.inf, types)))).all()
