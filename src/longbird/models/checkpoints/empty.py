"""Models without memory: what tensors a model has is known before any of them is allocated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch

from longbird.errors import InvalidValueError
from longbird.models import LongbirdModel
from longbird.models.checkpoints.names import ModelClass


def empty_model(path: Any, model_class: ModelClass, config: Any, *args: Any, **parts: Any) -> Any:
    """The model without memory, so that sizes which the file does not have are not allocated.

    Raises:
        ValueError: The model, or torch for sizes beyond its range, refuses the configuration.
    """
    try:
        with torch.device("meta"):
            return model_class(config, *args, **parts)
    except (RuntimeError, ValueError) as error:
        raise InvalidValueError(
            f"no model can be built from the configuration of {path}: {error}"
        ) from error


def without_pooler(
    model_class: ModelClass, names: Collection[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The option that leaves out a pooler which the file does not have.

    It would be random, and look like a trained one.
    """
    asked = "add_pooling_layer" in given or not issubclass(model_class, LongbirdModel)
    there = any("pooler" in name.split(".") for name in names)
    return {} if asked or there or not names else {"add_pooling_layer": False}
