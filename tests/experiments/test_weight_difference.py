"""A model as a difference: close to what was trained, and small."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from longbird.applications.reading.default_reader import apply_difference
from recipes.reader.difference import write_difference


def test_it_gives_the_weights_back(tmp_path: Path) -> None:
    torch.manual_seed(0)
    start = {"a": torch.randn(50, 30), "frozen": torch.randn(9, 9), "bias": torch.randn(5)}
    trained = {
        "a": start["a"] + 0.01 * torch.randn(50, 30) * torch.rand(50, 1),
        "frozen": start["frozen"].clone(),
        "bias": start["bias"] + 1,
        "new": torch.randn(4, 4),
    }
    trained["a"][7] = start["a"][7]  # a row that did not move
    file = tmp_path / "difference.safetensors"
    write_difference(trained, start, file)
    found = apply_difference(start, file)
    assert found.keys() == trained.keys()
    for name in ("frozen", "bias", "new"):
        assert torch.equal(found[name], trained[name])
    moved = (trained["a"] - start["a"]).abs().amax(1, keepdim=True)
    assert ((found["a"] - trained["a"]).abs() <= moved / 254 + 1e-6).all()
    assert torch.equal(found["a"][7], start["a"][7])
    kept = load_file(file)
    assert not [name for name in kept if name.startswith("frozen")]
    assert kept["a.difference"].dtype == torch.int8


def test_another_start_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "difference.safetensors"
    write_difference({"a": torch.ones(3, 4)}, {"a": torch.zeros(3, 4)}, file)
    with pytest.raises(ValueError, match=r"shape \[3, 4\] to a, which is \[5, 4\]"):
        apply_difference({"a": torch.zeros(5, 4)}, file)
    with pytest.raises(ValueError, match="missing in the starting"):
        apply_difference({}, file)
