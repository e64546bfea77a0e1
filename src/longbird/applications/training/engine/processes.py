"""The processes of a run: one, or those that torchrun or accelerate launched."""

from __future__ import annotations

import os

import torch
from accelerate.state import PartialState
from accelerate.utils import DistributedType

from longbird.errors import InvalidValueError


def backend() -> str | None:
    """How processes talk to each other; None if there is one alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return None
    return "nccl" if torch.cuda.is_available() else "gloo"


def shares_weights() -> bool:
    """Do the processes share out the weights among each other (FSDP), too?

    Raises:
        ValueError: In the old way of torch, whose parts cannot be put together again here.
    """
    if os.environ.get("ACCELERATE_USE_FSDP", "false").lower() != "true":
        return False
    version = os.environ.get("FSDP_VERSION", "1")
    if version != "2":
        raise InvalidValueError(
            f"FSDP is asked for in version {version}: write fsdp_version: 2 into the "
            "configuration of accelerate, or give --fsdp_version 2 to accelerate launch"
        )
    return backend() is not None


def processes() -> PartialState:
    """Which process this is, and how many there are."""
    chosen = backend()
    options = {} if chosen is None else {"backend": chosen}
    state = PartialState(cpu=not torch.cuda.is_available(), **options)
    if shares_weights() and state.distributed_type == DistributedType.MULTI_CPU:
        # accelerate would not shard on CPUs, without a word; torch can.
        state.distributed_type = DistributedType.MULTI_GPU
    return state
