"""Weights that processes share out among each other (FSDP), and the same as whole tensors.

Checkpoints have whole tensors only, so that a run can go on with any number of processes.
"""

from __future__ import annotations

from typing import Any

from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.tensor import DTensor, distribute_tensor


def whole(state: Any) -> Any:
    """A state, nested as it may be, with every shared tensor whole; all processes must call it."""
    if isinstance(state, DTensor):
        return state.full_tensor().cpu()
    if isinstance(state, dict):
        return {name: whole(value) for name, value in state.items()}
    return [whole(each) for each in state] if isinstance(state, list) else state


def load_weights(model: Any, state: dict[str, Any]) -> None:
    """Gives each process its part of whole weights."""
    set_model_state_dict(model, state, options=StateDictOptions(full_state_dict=True))


def load_optimizer(optimizer: Any, state: dict[str, Any]) -> None:
    """Gives each process its part of the state of an optimizer."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    for number, values in state["state"].items():
        of = parameters[number]
        for name, value in values.items():
            if isinstance(of, DTensor) and value.shape == of.shape:
                place = value.to(of.device)
                values[name] = distribute_tensor(place, of.device_mesh, of.placements)
    optimizer.load_state_dict(state)
