"""A small convolutional network over windows, which any longer model should beat.

It has three layers of 100 filters of 15, 9 and 5 bases, the maximum over all positions, and a
weight for each filter: 147,001 parameters. Nothing is padded, so that one pass over a genome
computes the scores of all windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from experiments.dna.linear import one_hot

SIZES = (15, 9, 5)
"""Bases that a filter of each layer sees, or places of the layer before it."""


class Filters(nn.Module):
    """The network. Windows need at least 27 bases, times the pooling."""

    def __init__(self, filters: int = 100, pool: int = 1, dropout: float = 0.2) -> None:
        super().__init__()
        widths = (4, *(filters for _ in SIZES))
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv1d(a, b, size), nn.BatchNorm1d(b), nn.ReLU())
            for a, b, size in zip(widths[:-1], widths[1:], SIZES, strict=True)
        )
        self.pool, self.dropout = pool, nn.Dropout(dropout)
        self.head = nn.Linear(filters, 1)

    def features(self, bases: torch.Tensor) -> torch.Tensor:
        """[batch, 4, bases] -> [batch, filters, positions]."""
        for number, layer in enumerate(self.layers):
            bases = layer(bases)
            if number == 0 and self.pool > 1:
                bases = F.max_pool1d(bases, self.pool)
        return bases

    def forward(self, bases: torch.Tensor) -> torch.Tensor:
        """[batch, 4, bases] -> [batch], log-odds."""
        return self.head(self.dropout(self.features(bases).amax(2))).squeeze(1)


class Cnn:
    """The network as a scorer; validation groups choose the best epoch.

    Args:
        seed: Seed of weights, order and dropout.
        filters: Number of filters per layer.
        pool: Positions after the first layer of which only the maximum is kept: 1 keeps all; 4
            makes long windows affordable, and a scan expensive.
        epochs: Maximum number of epochs.
        patience: Number of epochs without improvement after which training stops.
        batch: Windows per step.
        learning_rate: Learning rate of AdamW.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        filters: int = 100,
        pool: int = 1,
        epochs: int = 30,
        patience: int = 5,
        batch: int = 64,
        learning_rate: float = 1e-3,
    ) -> None:
        self.seed, self.epochs, self.patience = seed, epochs, patience
        self.batch, self.learning_rate = batch, learning_rate
        self.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.model = Filters(filters, pool)
        self.history: list[float] = []

    def fit(self, windows: np.ndarray, positive: np.ndarray, groups: np.ndarray) -> Cnn:
        """Train; one group in ten, drawn by seed, compares the epochs."""
        from sklearn.metrics import average_precision_score

        every = np.unique(groups)
        back = np.random.default_rng(self.seed).permutation(every)[: max(1, len(every) // 10)]
        held = np.isin(groups, back)
        learned = np.flatnonzero(~held)
        target = torch.from_numpy(positive.astype(np.float32))
        batch = min(self.batch, len(learned))
        optimizer = torch.optim.AdamW(
            self.model.parameters(), self.learning_rate, weight_decay=0.01
        )
        best: dict[str, Any] = {}
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)  # dropout
            for _ in range(self.epochs):
                self.model.train()
                order = torch.randperm(len(learned), generator=self.generator).numpy()
                for at in range(0, len(order) - batch + 1, batch):  # a rest waits for its turn
                    rows = learned[order[at : at + batch]]
                    said = self.model(as_tensor(windows[rows]))
                    loss = F.binary_cross_entropy_with_logits(said, target[rows])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                score = average_precision_score(positive[held], self.scores(windows[held]))
                self.history.append(float(score))
                if score >= max(self.history):
                    best = {name: x.clone() for name, x in self.model.state_dict().items()}
                if len(self.history) - int(np.argmax(self.history)) > self.patience:
                    break
        self.model.load_state_dict(best)
        return self

    @torch.no_grad()
    def scores(self, windows: np.ndarray) -> np.ndarray:
        """Return log-odds."""
        self.model.eval()
        parts = [
            self.model(as_tensor(windows[at : at + 512])) for at in range(0, len(windows), 512)
        ]
        return torch.cat(parts).double().numpy()

    @torch.no_grad()
    def scan(self, sequence: np.ndarray, width: int, stretch: int = 65536) -> np.ndarray:
        """Return the scores of all windows of a sequence, computing each position once."""
        if self.model.pool > 1:
            raise ValueError("a network that pools reads each window anew: scan with pool=1")
        self.model.eval()
        seen = sum(SIZES) - len(SIZES)  # bases around a place that its features depend on
        parts: list[torch.Tensor] = []
        for at in range(0, len(sequence) - width + 1, stretch):
            bases = as_tensor(sequence[None, at : at + stretch + width - 1])
            highest = F.max_pool1d(self.model.features(bases), width - seen, stride=1)
            parts.append(self.model.head(highest[0].T).squeeze(1))
        return torch.cat(parts).double().numpy()


def as_tensor(windows: np.ndarray) -> torch.Tensor:
    """[windows, bases] -> [windows, 4, bases]."""
    return torch.from_numpy(one_hot(windows).reshape(*windows.shape, 4)).transpose(1, 2)
