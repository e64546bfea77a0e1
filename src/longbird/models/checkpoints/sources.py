"""The tensors of a checkpoint under our names, and models without memory to compare them with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from longbird.errors import InvalidValueError
from longbird.models.checkpoints.files import Stored, stored_tensors
from longbird.models.checkpoints.fit import Shape
from longbird.models.checkpoints.names import Family, ModelClass, NameMap
from longbird.models.checkpoints.tensorflow import from_tensorflow, is_head
from longbird.models.config import LongbirdConfig


@dataclass(frozen=True)
class Source:
    """The tensors of a checkpoint under our names."""

    tensors: Mapping[str, Stored]
    left_out: Sequence[str]
    """Tensors without a name of ours that belong to a head."""
    left_over: Sequence[str]
    """Tensors without a name of ours that belong to the body."""

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shapes of the tensors, by our names."""
        return {name: stored.shape for name, stored in self.tensors.items()}

    def check(self, path: Any, int8: Collection[str] = ()) -> None:
        """Raise if a tensor is not in floating point, or one of those named here is not int8."""
        for name, stored in self.tensors.items():
            if name in int8 and not stored.is_int8:
                raise InvalidValueError(
                    f"{name} of {path} is not int8, as its configuration says (quantize='int8')"
                )
            if name not in int8 and not stored.is_real:
                raise InvalidValueError(
                    f"{name} of {path} is not in floating point, as weights must be"
                )


def own_names(names: Collection[str], model: Any) -> NameMap:
    """Match names of our tensors to a model with or without a head; other heads are unknown."""
    prefix = f"{model.base_model_prefix}."
    prefixed = any(name.startswith(prefix) for name in names)
    with_head = any(name.startswith(prefix) for name in model.state_dict())
    if prefixed and not with_head:
        body = {x.removeprefix(prefix): x for x in names if x.startswith(prefix)}
        return NameMap(body, [name for name in names if not name.startswith(prefix)])
    added = prefix if with_head and not prefixed else ""
    return NameMap({added + name: name for name in names}, [])


def own_source(stored: Mapping[str, Stored], model: Any) -> Source:
    """Name the tensors of a folder that Longbird saved."""
    return _source(own_names(stored, model), stored, lambda _: True)


def foreign_source(folder: Path, family: Family, model_class: ModelClass) -> Source:
    """Name the tensors of a folder that another library saved."""
    stored = stored_tensors(folder)
    prefixed = any(name.startswith(family.prefix) for name in stored)
    names = family.ours(stored, model_class)
    source = _source(names, stored, lambda name: family.is_head(name, prefixed))
    base = "" if issubclass(model_class, family.base) else f"{family.base.base_model_prefix}."
    rows = {f"{base}{name}.weight": count for name, count in family.rows.items()}
    return replace(
        source,
        tensors={k: replace(x, rows=rows.get(k)) for k, x in source.tensors.items()},
    )


def array_source(arrays: Mapping[str, Stored], model_class: ModelClass) -> Source:
    """Name the variables of Google's BigBird."""
    return _source(*from_tensorflow(arrays, model_class), is_head)


def _source(
    names: NameMap, stored: Mapping[str, Stored], of_head: Callable[[str], bool]
) -> Source:
    return Source(
        {ours: stored[name] for ours, name in names.origins.items()},
        [name for name in names.unknown if of_head(name)],
        [name for name in names.unknown if not of_head(name)],
    )


def check_layers(path: Any, tensors: Collection[str], config: LongbirdConfig) -> None:
    """Raise if there are many more layers than tensors: building them could take for ever."""
    for field in ("num_hidden_layers", "decoder_layers"):
        layers = getattr(config, field, None) or 0
        if layers > max(len(tensors), 256):
            raise InvalidValueError(
                f"{path} has {len(tensors)} tensors, and its configuration asks for {layers} "
                "layers: the two do not belong together"
            )


def empty_model(
    path: Any, model_class: ModelClass, config: LongbirdConfig, *args: Any, **parts: Any
) -> Any:
    """Build a model without memory, so that sizes which a file does not have are not allocated.

    Raises:
        ValueError: The model, or torch for sizes beyond its range, refuses the configuration.
    """
    build: Any = model_class
    try:
        with torch.device("meta"):
            return build(config, *args, **parts)
    except (RuntimeError, ValueError) as error:
        raise InvalidValueError(
            f"no model can be built from the configuration of {path}: {error}"
        ) from error


def int8_names(model: Any) -> set[str]:
    """Return the names of the tensors of a model that are int8."""
    return {name for name, x in model.state_dict().items() if x.dtype == torch.int8}
