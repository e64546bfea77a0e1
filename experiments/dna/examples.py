"""Labelled windows for training and for the test of classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from experiments.dna.splits import TEST, TRAIN, VALIDATION
from experiments.dna.twins import likeness


@dataclass(frozen=True)
class Examples:
    """A data set.

    Attributes:
        windows: [examples, bases]
        positive: Whether each is positive.
        side: Training, validation or test.
        group: Examples of one origin, which the bootstrap draws together.
    """

    windows: np.ndarray
    positive: np.ndarray
    side: np.ndarray
    group: np.ndarray

    def where(self, chosen: np.ndarray) -> Examples:
        """Return some of the examples."""
        columns = (self.windows, self.positive, self.side, self.group)
        return Examples(*(column[chosen] for column in columns))

    @property
    def learned(self) -> Examples:
        """Return the training and validation examples."""
        return self.where((self.side == TRAIN) | (self.side == VALIDATION))

    @property
    def held_out(self) -> Examples:
        """Return the test examples."""
        return self.where(self.side == TEST)

    @cached_property
    def likeness(self) -> np.ndarray:
        """Return how much of each held-out window is in a training window."""
        every = max(1, self.windows.shape[1] // 200)  # of long windows a sample of words
        return likeness(self.held_out.windows, self.learned.windows, every)
