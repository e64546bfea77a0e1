"""Numbers of stored documents, column by column; the other columns stay on the disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute
from datasets import Dataset

compute: Any = pyarrow.compute


def numbers_of(rows: Dataset, column: str) -> np.ndarray:
    """A column of numbers."""
    return _column(rows, column).to_numpy()


def lists_of(rows: Dataset, column: str) -> tuple[np.ndarray, np.ndarray]:
    """A column of lists of numbers: all of them, one list after the other, and their sizes."""
    lists = _column(rows, column)
    return compute.list_flatten(lists).to_numpy(), compute.list_value_length(lists).to_numpy()


def _column(rows: Dataset, column: str) -> Any:
    only = rows.select_columns([column])
    plain: Any = only if only._indices is None else only.flatten_indices()
    return plain.data.column(column)
