"""The processes of a run: one, or those that torchrun or accelerate launched."""

from __future__ import annotations

import os

import torch
from accelerate.state import PartialState


def backend() -> str | None:
    """How processes talk to each other; None if there is one alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return None
    return "nccl" if torch.cuda.is_available() else "gloo"


def processes() -> PartialState:
    """Which process this is, and how many there are."""
    chosen = backend()
    options = {} if chosen is None else {"backend": chosen}
    return PartialState(cpu=not torch.cuda.is_available(), **options)
