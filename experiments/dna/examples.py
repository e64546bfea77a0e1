"""Windows with labels: what classifiers learn from, and what they are held against."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from experiments.dna.splits import TEST, TRAIN, VALIDATION
from experiments.dna.twins import likeness


@dataclass(frozen=True)
class Examples:
    """A set.

    Attributes:
        windows: [examples, bases]
        positive: Is each what is looked for?
        side: Who learns from it.
        group: What is of one origin, and stays together when examples are drawn.
    """

    windows: np.ndarray
    positive: np.ndarray
    side: np.ndarray
    group: np.ndarray

    def where(self, chosen: np.ndarray) -> Examples:
        """Some of them."""
        columns = (self.windows, self.positive, self.side, self.group)
        return Examples(*(column[chosen] for column in columns))

    @property
    def learned(self) -> Examples:
        """Those to learn from, and to choose by."""
        return self.where((self.side == TRAIN) | (self.side == VALIDATION))

    @property
    def held_out(self) -> Examples:
        """Those to be measured on."""
        return self.where(self.side == TEST)

    @cached_property
    def likeness(self) -> np.ndarray:
        """How much of each held-out window is in one that is learned from, [held-out examples]."""
        every = max(1, self.windows.shape[1] // 200)  # of long windows a sample of words
        return likeness(self.held_out.windows, self.learned.windows, every)
