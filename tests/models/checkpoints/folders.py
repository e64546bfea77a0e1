"""Folders with small models, theirs and ours, and how tests break them."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import longbird

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "vocab_size": 120,
    "max_position_embeddings": 80,
}


def states_differ(first: Any, second: Any) -> set[str]:
    """Names of tensors that are not bitwise the same."""
    one, other = first.state_dict(), second.state_dict()
    return {
        name
        for name in {*one, *other}
        if name not in one or name not in other or not torch.equal(one[name], other[name])
    }


def fields_of(config: Any) -> dict[str, Any]:
    """What a configuration says, without what transformers notes about its file."""
    left_out = ["_name_or_path", "transformers_version", "dtype", "architectures"]
    if getattr(config, "attention_type", None) == "original_full":  # which has no blocks
        left_out += ["block_size", "num_random_blocks"]
    return {name: value for name, value in config.to_dict().items() if name not in left_out}


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    """Changes the tensors of a saved model."""
    tensors = change(load_file(folder / WEIGHTS))
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / WEIGHTS, {"format": "pt"})


def say(folder: Path, **fields: Any) -> None:
    """Changes fields of config.json."""
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


class Evil:
    """Touches a file when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.trace),))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fails, rather than to go on and on."""

    def fail(*_: Any) -> None:
        pytest.fail(f"took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def is_refused(folder: Path, *words: str, **options: Any) -> None:
    """Loading fails soon, with a clear error that names the folder."""
    with at_most(5), pytest.raises((ValueError, FileNotFoundError)) as caught:
        longbird.LongbirdModel.from_pretrained(folder, **options)
    message = str(caught.value)
    assert folder.name in message, message
    for word in words:
        assert word in message, message
