"""Batches keep to their budget, hold every document once, and are shared without loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longbird.applications.training.data.batches import TokenBatches, by_tokens
from longbird.applications.training.data.split import held_out

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 400), st.integers(0, 5))
def test_every_document_once_within_the_budget(lengths: list[int], budget: int, seed: int) -> None:
    batches = by_tokens(lengths, budget, seed)
    assert sorted(each for batch in batches for each in batch) == list(range(len(lengths)))
    for batch in batches:
        assert batch
        assert len(batch) == 1 or sum(lengths[each] for each in batch) <= budget
    assert batches == by_tokens(lengths, budget, seed)


@given(LENGTHS, st.integers(1, 400), st.integers(2, 5))
def test_processes_share_the_steps_of_one(lengths: list[int], budget: int, processes: int) -> None:
    alone = list(TokenBatches(lengths, budget, 0))
    shared = [
        list(TokenBatches(lengths, budget, 0, process=process, processes=processes))
        for process in range(processes)
    ]
    for step, batch in enumerate(alone):
        shares = [mine[step] for mine in shared]
        assert all(shares)
        counted = [document for share in shares for document in share if document >= 0]
        assert sorted(counted) == sorted(batch)
        if len(batch) >= processes:
            assert min(min(share) for share in shares) >= 0


def test_another_order_in_another_epoch() -> None:
    epoch = 0
    sampler = TokenBatches([10] * 100, 50, 0, lambda: epoch)
    first = list(sampler)
    epoch = 1
    second = list(sampler)
    assert first != second
    assert sorted(map(tuple, first)) == sorted(map(tuple, second))
    assert len(sampler) == len(first)


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=80),
    st.floats(0.05, 0.6),
    st.integers(0, 9),
)
def test_groups_stay_on_one_side(groups: list[str], fraction: float, seed: int) -> None:
    if len(set(groups)) < 2:
        with pytest.raises(ValueError, match="of one group"):
            held_out(groups, fraction, seed)
        return
    out = held_out(groups, fraction, seed)
    assert 0 < out.sum() < len(groups)
    sides = {
        group: {bool(x) for x, name in zip(out, groups, strict=True) if name == group}
        for group in groups
    }
    assert all(len(side) == 1 for side in sides.values())


def test_the_fraction_is_about_right() -> None:
    groups = [str(number) for number in range(1000)]
    assert abs(held_out(groups, 0.1, 0).sum() - 100) <= 1
    assert np.array_equal(held_out(groups, 0.1, 0), held_out(groups, 0.1, 0))
    # A row that is added later moves few others.
    assert (held_out([*groups, "new"], 0.1, 0)[:1000] != held_out(groups, 0.1, 0)).sum() <= 2
