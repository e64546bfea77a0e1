"""The parts of rows by number: windows of a row, and what is drawn for an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from longbird.applications.training.data.arrow_columns import lists_of, numbers_of
from longbird.applications.training.data.batches import Batch
from longbird.applications.training.data.token_store import DocumentDataset, features_of
from longbird.applications.training.tasks.task import Task

LENGTHS = [[5, 6], [7], [8, 9, 10], [1]]


class Windows(Task):
    """Says what it was asked for."""

    inputs = ("input_ids",)

    def features(self, examples: Any, tokenizer: Any, length: int, training: bool = False) -> Any:
        yield from examples

    def lengths(self, features: Any) -> Any:
        return np.array(LENGTHS[features["input_ids"][0]])

    def inputs_of(self, row: Any, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        return {"asked": (row["input_ids"][0], part, number, epoch)}


def rows() -> Dataset:
    examples = [{"input_ids": [number], "tokens": 10 * number} for number in range(4)]
    return Dataset.from_list(list(features_of(Windows(), examples, None, 8)))


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3], [3, 0, 2], [2], [1, 1]])
def test_parts_are_those_of_brute_force(chosen: list[int]) -> None:
    """Also of some of the rows, in another order."""
    documents = DocumentDataset(Windows(), rows().select(chosen))
    every = [
        (at, row, part, length)
        for at, row in enumerate(chosen)
        for part, length in enumerate(LENGTHS[row])
    ]
    assert len(documents) == len(every)
    for number, (at, row, part, length) in enumerate(every):
        assert documents.lengths[number] == length
        assert documents.row_of[number] == at
        assert documents.part_of[number] == part
        assert documents[number] == {"asked": (row, part, number, None), "number": number}
        # One that does not count has the same inputs.
        (drawn,) = documents.__getitems__(Batch([~number], epoch=3))
        assert drawn == {"asked": (row, part, number, 3), "number": ~number}


def test_columns_of_numbers() -> None:
    some = rows().select([3, 0])
    assert numbers_of(some, "tokens").tolist() == [30, 0]
    flat, sizes = lists_of(some, "lengths")
    assert flat.tolist() == [1, 5, 6]
    assert sizes.tolist() == [1, 2]
