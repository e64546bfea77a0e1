"""Loading checkpoints of other libraries: what a file has is compared with the model first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.utils import logging

from longbird.core.graph import Graph, LegacyBigBird
from longbird.errors import InvalidTypeError, InvalidValueError, MissingFileError
from longbird.files.paths import check_path
from longbird.models.checkpoints.bigbird import check_plan
from longbird.models.checkpoints.configs import foreign_config, generation_settings
from longbird.models.checkpoints.detect import (
    FAMILIES,
    PLACE,
    check_kind,
    find_folder,
    is_arrays,
    model_type_of,
)
from longbird.models.checkpoints.empty import empty_model, without_pooler
from longbird.models.checkpoints.files import Stored, read_json
from longbird.models.checkpoints.int8 import as_float32
from longbird.models.checkpoints.names import ModelClass, for_class, with_originals
from longbird.models.checkpoints.report import (
    HEAD_SIZES,
    Wishes,
    check_head_size,
    compare,
    notes_on,
)
from longbird.models.checkpoints.sources import Source, array_source, check_layers, foreign_source
from longbird.models.config import LABEL_FIELDS
from longbird.models.fields import RULES, shown
from longbird.models.pretrained import LongbirdPreTrainedModel

DEVICES = ("device_map", "max_memory", "offload_folder", "offload_buffers")
"""Options of `from_pretrained` about where tensors go, which transformers takes care of."""

WITHOUT_EFFECT = ("use_safetensors", "low_cpu_mem_usage", "trust_remote_code")
"""Options of `from_pretrained` that change nothing here: no code and no pickle is ever read."""

logger = logging.get_logger(__name__)


def load_checkpoint(
    path: str | os.PathLike[str],
    model_class: Any,
    *,
    strict: bool = True,
    random_blocks: str = "seeded",
    graph: Graph | list[Graph] | None = None,
    config: Any = None,
    dtype: torch.dtype | str | None = None,
    **changes: Any,
) -> Any:
    """Loads a checkpoint of BigBird, BigBird-Pegasus, Longformer, LED, BERT, RoBERTa or MPNet.

    The model may have a different head from the checkpoint: a line names the tensors that are new,
    and those that were left out.

    Args:
        path: A folder with config.json and safetensors, as `save_pretrained` of transformers
            writes it; the name of a model on the hub; or an .npz file with the variables of
            Google's BigBird, which needs `config`.
        model_class: The Longbird class to load into.
        strict: Raise where tensors of the encoder are missing, left over or of other shapes; if
            False, name them and go on with new ones.
        random_blocks: What the random blocks of BigBird are: "seeded" as the checkpoint was
            trained, or "hf_eval" as transformers evaluates it (all are block 0).
        graph: A graph to use instead of that of the checkpoint.
        config: A configuration to use instead of that of the checkpoint; an .npz file has none.
        dtype: Of the model; float32 by default, that of the file if "auto".
        **changes: Fields of the configuration to change, such as num_labels; options of
            transformers about devices and downloads; and for `LongbirdModel`, add_pooling_layer.

    Returns:
        The model, in evaluation mode.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Names or shapes do not fit, or a file is broken or is not safe to read; the
            message says which.

    Examples:
        >>> import longbird as lb, tempfile, transformers
        >>> sizes = dict(hidden_size=32, num_attention_heads=2, intermediate_size=64)
        >>> theirs = transformers.BertModel(transformers.BertConfig(num_hidden_layers=1, **sizes))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     theirs.save_pretrained(folder)
        ...     model = lb.load_checkpoint(folder, lb.LongbirdModel)
        >>> model.config.graph
        Full()
    """
    _check_class(model_class)
    check_path(path)
    check_plan(random_blocks)
    if config is not None and not isinstance(config, model_class.config_class):
        raise InvalidTypeError(
            f"config must be a {model_class.config_class.__name__}, received {shown(config)}"
        )
    kind = _dtype(changes.pop("torch_dtype", dtype))
    rounding = changes.pop("quantize", None if config is None else config.quantize)
    RULES["quantize"].check("quantize", rounding)
    if rounding:
        as_float32({"dtype": kind})
    wishes = Wishes.taken_from(changes, strict=strict)
    if wishes.info:
        raise InvalidTypeError(
            "output_loading_info is for folders that Longbird saved: leave it out"
        )
    parts = _taken(changes, ("add_pooling_layer",))
    devices = _taken(changes, DEVICES)
    if devices.get("device_map") in ("cpu", torch.device("cpu")):
        del devices["device_map"]  # where it is loaded anyway
    _taken(changes, WITHOUT_EFFECT)
    head_asked_for = config is not None or not changes.keys().isdisjoint(
        {*HEAD_SIZES, *LABEL_FIELDS}
    )

    if is_arrays(path):
        found = _open_arrays(Path(path), model_class, config, graph)
    else:
        found = _open_folder(path, model_class, config, random_blocks, changes)
    if graph is not None:
        found = found.with_fields(graph=graph)
    if found.config.quantize:
        found = found.with_fields(quantize=None)
    found.source.check(path)
    check_layers(path, found.source.tensors, found.config)

    pooler = without_pooler(model_class, found.source.tensors, parts)
    empty = empty_model(path, model_class, found.config, **parts, **pooler)
    if untied := _untied(empty, found.source.tensors):
        logger.warning(
            f"{path} has several tensors where its configuration ties them into one; each is kept"
        )
        found = found.with_tensors(untied).with_fields(tie_word_embeddings=False)
        empty = empty_model(path, model_class, found.config, **parts, **pooler)

    source = found.source
    notes = notes_on(empty, found.config, pooler)
    fit = compare(empty, source.shapes, source.left_out, source.left_over, notes)
    fit.check(path, wishes, changes)
    if not head_asked_for:
        same_sizes = found.same_class and wishes.same_shapes
        check_head_size(path, empty, fit, source.shapes, same_sizes=same_sizes)

    if found.generation is not None:
        devices["generation_config"] = found.generation
    tensors = _read(empty, source.tensors)
    model, _ = model_class.filled(
        None, config=found.config, state_dict=tensors, dtype=kind, **parts, **pooler, **devices
    )
    fit.report(path)
    return model.to_int8() if rounding else model


@dataclass(frozen=True)
class Found:
    """What a checkpoint has for a model, before any tensor is read."""

    source: Source
    config: Any
    """Ours."""
    same_class: bool = False
    """Was it saved by the counterpart of the class that it is loaded into?"""
    generation: Any = None
    """The settings of `generate`, if there are any."""

    def with_fields(self, **changes: Any) -> Found:
        """The same with other fields of the configuration."""
        config = self.config
        return replace(self, config=type(config)(**{**config.to_dict(), **changes}))

    def with_tensors(self, more: Mapping[str, Stored]) -> Found:
        """The same with more tensors."""
        tensors = {**self.source.tensors, **more}
        return replace(self, source=replace(self.source, tensors=tensors))


def _open_arrays(file: Path, model_class: ModelClass, config: Any, graph: Any) -> Found:
    """The variables of Google's BigBird in a file."""
    if not file.is_file():
        raise MissingFileError(f"there is no file {file}")
    if config is None:
        raise InvalidValueError(f"{file} has no configuration: give config=LongbirdConfig(...)")
    source = array_source(file, model_class)
    if graph is None and not isinstance(config.graph, LegacyBigBird):
        logger.warning_once(
            "Google's checkpoints were trained with LegacyBigBird('google'), and the "
            f"configuration has the graph {config.graph}"
        )
    return Found(source, config)


def _open_folder(
    path: Any, model_class: ModelClass, config: Any, random_blocks: str, changes: dict[str, Any]
) -> Found:
    """A folder that another library saved."""
    folder = find_folder(path, changes)
    _taken(changes, PLACE)
    model_type = model_type_of(folder)
    if model_type not in FAMILIES:
        raise InvalidValueError(
            f"{folder} was saved by Longbird: load it with {model_class.__name__}.from_pretrained"
        )
    family = FAMILIES[model_type]
    check_kind(folder, family.base.config_class.model_type, model_class)
    source = foreign_source(folder, family, model_class)
    if config is None:
        config = foreign_config(folder, family, model_class, random_blocks, changes)
    architectures = read_json(folder / "config.json").get("architectures") or []
    same_class = for_class(family.architectures, model_class) in architectures
    generation = generation_settings(folder) if model_class.can_generate() else None
    return Found(source, config, same_class, generation)


def _taken(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Takes the options of these names out of others."""
    return {name: options.pop(name) for name in names if name in options}


def _check_class(model_class: Any) -> None:
    if not (isinstance(model_class, type) and issubclass(model_class, LongbirdPreTrainedModel)):
        raise InvalidTypeError(
            "model_class must be a class of Longbird, such as LongbirdModel; received "
            f"{model_class!r:.80}"
        )


def _dtype(given: torch.dtype | str | None) -> torch.dtype | str:
    if given is None:
        return torch.float32
    found = getattr(torch, given.removeprefix("torch."), None) if isinstance(given, str) else given
    if given != "auto" and not isinstance(found, torch.dtype):
        raise InvalidValueError(
            f"dtype must be a floating type of torch, or its name, received {given}"
        )
    return "auto" if given == "auto" else found  # type: ignore[return-value]


def _untied(model: Any, tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """Tensors that the file has under names which the model ties, if they differ.

    Then each name gets a tensor of its own: that of the file, or what it was to be tied to.
    """
    ties = model.all_tied_weights_keys
    both = [(a, b) for a, b in ties.items() if a in tensors and b in tensors]
    differ = any(
        tensors[a].shape == tensors[b].shape
        and not torch.equal(tensors[a].read(), tensors[b].read())
        for a, b in both
    )
    return {a: tensors.get(a, tensors[b]) for a, b in ties.items()} if differ else {}


def _read(model: Any, tensors: Mapping[str, Stored]) -> dict[str, Tensor]:
    """The tensors that have their place in the model; the others are not read."""
    wanted, ties = model.state_dict(), model.all_tied_weights_keys
    return {
        name: stored.read()
        for name, stored in with_originals(model, tensors).items()
        if name in wanted and name not in ties and stored.shape == tuple(wanted[name].shape)
    }
