"""What a model takes for granted is what it would say if it could say but one number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from longbird.applications.dna.coding import Coding
from longbird.applications.dna.promoters import Promoters
from longbird.applications.dna.settings import DnaLabelSettings

LOGITS = torch.linspace(-6, 6, 12_001)


def best(task: Any, truth: torch.Tensor, weights: torch.Tensor | None) -> float:
    """The number with the lowest loss, by trying all."""
    batch = {"truth": truth}
    losses = [float(task.loss(x.expand(truth.shape), batch, weights)) for x in LOGITS[::20]]
    return float(LOGITS[::20][int(np.argmin(losses))].sigmoid())


@pytest.mark.parametrize("weights", ["none", "balanced"])
def test_promoters(weights: str) -> None:
    task = Promoters()
    task.settings = DnaLabelSettings("dna-promoter", (), class_weights=weights)
    truth = [1] * 20 + [0] * 180
    task.learn({"truth": each} for each in truth)
    given = task.class_weights(()) if weights == "balanced" else None
    assert task.prior == pytest.approx(best(task, torch.tensor(truth), given), abs=0.01)
    assert task.prevalence == 0.1


@pytest.mark.parametrize("weights", ["none", "balanced"])
def test_channels_of_different_shares(weights: str) -> None:
    """All have the same weights, so that no channel but the average one is balanced."""
    task = Coding()
    task.settings = DnaLabelSettings("dna-coding", (), class_weights=weights)
    truth = np.zeros((200, 2), np.uint8)
    truth[:20, 0] = truth[:80, 1] = 1
    task.learn([{"truth": truth.reshape(-1)}])
    given = task.class_weights(()) if weights == "balanced" else None
    assert isinstance(task.prior, list)
    for channel, share in enumerate(task.prior):
        own = torch.from_numpy(truth[None, :, channel : channel + 1].astype(np.int64))
        assert share == pytest.approx(best(task, own, given), abs=0.01)
