"""Masks hide what they should, as often as they should, and follow from their key alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longbird.applications.training.tasks.language_modelling.masking import masked

SPECIAL, ORDINARY, MASK = np.array([0, 1, 2, 3, 4]), np.arange(5, 200), 4


@given(
    st.lists(st.integers(0, 199), min_size=1, max_size=50),
    st.lists(st.booleans(), min_size=50, max_size=50),
    st.floats(0.01, 0.9),
    st.integers(0, 99),
)
def test_what_is_hidden(ids: list[int], begins: list[bool], rate: float, seed: int) -> None:
    before, words = np.array(ids), np.array(begins[: len(ids)])
    draws = [np.random.default_rng(seed) for _ in range(2)]
    seen, labels = masked(before, words, SPECIAL, ORDINARY, MASK, rate, draws[0])
    again = masked(before, words, SPECIAL, ORDINARY, MASK, rate, draws[1])
    assert np.array_equal(seen, again[0])
    assert np.array_equal(labels, again[1])
    drawn = labels != -100
    free = ~np.isin(before, SPECIAL)
    assert not (drawn & ~free).any()
    assert drawn.any() == free.any()
    assert np.array_equal(labels[drawn], before[drawn])
    assert np.array_equal(seen[~drawn], before[~drawn])
    # All of a word, or nothing.
    word = np.cumsum(words)
    for number in np.unique(word):
        assert len({*drawn[(word == number) & free].tolist()}) <= 1
    assert np.array_equal(before, ids)  # the caller's are left alone


def test_how_often() -> None:
    ids = np.random.default_rng(1).integers(5, 200, 200_000)
    every = np.ones(len(ids), dtype=bool)
    seen, labels = masked(ids, every, SPECIAL, ORDINARY, MASK, 0.15, np.random.default_rng(0))
    drawn = labels != -100
    assert abs(drawn.mean() - 0.15) < 0.003
    assert abs((seen[drawn] == MASK).mean() - 0.8) < 0.01
    same = (seen[drawn] == ids[drawn]).mean()
    assert abs(same - 0.1 - 0.1 / len(ORDINARY)) < 0.01
    others = seen[drawn & (seen != MASK) & (seen != ids)]
    assert set(others.tolist()) == set(ORDINARY.tolist())
