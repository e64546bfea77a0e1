"""Loading: what a file has is compared with the model before anything is read or allocated."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import CONFIG_MAPPING, GenerationConfig
from transformers.utils import logging

from longbird.checkpoints.detect import HUB, family_of, find_folder, is_arrays, model_type_of
from longbird.checkpoints.files import Stored, read_json, stored_tensors
from longbird.checkpoints.names import Family, ModelClass, for_class
from longbird.checkpoints.report import Fit, check_head_size, compare
from longbird.checkpoints.sources import (
    array_source,
    check_layers,
    foreign_source,
    own_names,
    own_source,
)
from longbird.graph import Graph, LegacyBigBird
from longbird.models import LongbirdModel

HEAD_SIZES = ("num_labels", "num_answer_types")
"""Fields that the size of a head depends on."""

PASSED_ON = ("device_map", "max_memory", "offload_folder", "offload_buffers")
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

    The model may have another head than the checkpoint: a line names the tensors that are new, and
    those that were left out.

    Args:
        path: A folder with config.json and safetensors, as `save_pretrained` of transformers
            writes it; the name of a model on the hub; or an .npz file with the variables of
            Google's BigBird, which needs `config`.
        model_class: The Longbird class to load into.
        strict: Raise where tensors of the encoder are missing, left over or of other shapes; if
            False, name them and go on with new ones.
        random_blocks: What the random blocks of BigBird are: "seeded" as the checkpoint was
            trained, or "hf_eval" as transformers evaluates it (all are block 0).
        graph: Another graph than that of the checkpoint.
        config: Another configuration than that of the checkpoint; an .npz file has none.
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
    options = {name: changes.pop(name) for name in PASSED_ON if name in changes}
    if options.get("device_map") in ("cpu", torch.device("cpu")):
        del options["device_map"]  # where it is loaded anyway
    other_shapes = changes.pop("ignore_mismatched_sizes", False)
    parts = {name: changes.pop(name) for name in ("add_pooling_layer",) if name in changes}
    kind = _dtype(changes.pop("torch_dtype", dtype))
    changes = {name: x for name, x in changes.items() if name not in WITHOUT_EFFECT}
    asked = config is not None or any(name in changes for name in HEAD_SIZES)
    same_class = False
    if is_arrays(path):
        if config is None:
            raise ValueError("an .npz file has no configuration: give config=LongbirdConfig(...)")
        source = array_source(Path(path), model_class, config)
        if graph is None and not isinstance(config.graph, LegacyBigBird):
            logger.warning_once(
                "Google's checkpoints were trained with LegacyBigBird('google'), and the "
                f"configuration has the graph {config.graph}"
            )
    else:
        folder = find_folder(path, changes)
        family = family_of(model_type_of(folder))
        source = foreign_source(folder, family, model_class)
        saved = read_json(folder / "config.json").get("architectures") or []
        same_class = for_class(family.architectures, model_class) in saved
        changes = {k: x for k, x in changes.items() if k not in (*HUB, "subfolder")}
        if config is None:
            config = foreign_config(folder, family, model_class, random_blocks, changes)
        if model_class.can_generate() and (settings := generation_settings(folder)) is not None:
            options["generation_config"] = settings
    assert config is not None
    if graph is not None:
        config = type(config)(**{**config.to_dict(), "graph": graph})
    parts |= without_pooler(model_class, source.tensors, parts)
    source.check(path)
    check_layers(path, source.tensors, config)
    empty = _empty(path, model_class, config, **parts)
    if untied := _untied(empty, source.tensors):
        logger.warning(f"{path} has several tensors where its configuration ties them")
        source = replace(source, tensors={**source.tensors, **untied})
        config = type(config)(**{**config.to_dict(), "tie_word_embeddings": False})
        empty = _empty(path, model_class, config, **parts)
    fit = compare(
        empty, source.shapes, source.left_out, source.left_over, without_pooler=_is_without(parts)
    )
    fit.check(path, strict, other_shapes)
    if not asked:
        check_head_size(path, empty, fit, source.shapes, same_class=same_class)
    fit.report(path)
    tensors = _read(empty, source.tensors)
    model, _ = model_class.filled(
        None, config=config, state_dict=tensors, dtype=kind, **parts, **options
    )
    return model


def check_own(
    folder: Path, model_class: ModelClass, args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Fit, dict[str, Any]]:
    """How a folder that Longbird saved goes with a model, and options to make the model with.

    Nothing but headers and configurations is read. `args` and `options` are `from_pretrained`'s.

    Raises:
        ValueError: A file is broken or hostile, or asks for what is not in it.
    """
    raw = read_json(folder / "config.json")
    if "transformers_weights" in raw:
        raise ValueError(f"{folder / 'config.json'} names another file of weights; none is read")
    if model_class.can_generate():
        generation_settings(folder)  # raises if they cannot be read
    given = {k: x for k, x in options.items() if k not in (*HUB, "config", "subfolder")}
    stated = model_class.config_class.from_dict(dict(raw))
    config: Any = options.get("config")
    unused = given
    if config is None:
        config, unused = model_class.config_class.from_dict(
            dict(raw), return_unused_kwargs=True, **given
        )
    elif not isinstance(config, model_class.config_class):
        config = model_class.config_class.from_pretrained(config)  # a path
    known = inspect.signature(model_class).parameters
    parts = {name: x for name, x in unused.items() if name in known}
    stored = stored_tensors(folder)
    check_layers(folder, stored, config)
    more = {} if args else without_pooler(model_class, stored, parts)
    empty = _empty(folder, model_class, config, *args, **parts, **more)
    source = own_source(stored, empty)
    source.check(folder)
    fit = compare(
        empty, source.shapes, source.left_out, source.left_over, without_pooler=_is_without(more)
    )
    if all(getattr(config, name) == getattr(stated, name) for name in HEAD_SIZES):
        saved = raw.get("architectures") or []
        same_class = model_class.__name__ in saved
        check_head_size(folder, empty, fit, source.shapes, same_class=same_class)
    return fit, more


def compare_state(model: Any, state: Mapping[str, Any]) -> Fit:
    """How tensors of ours, given rather than read, go with the model that they were put into."""
    names = own_names(state, model)
    shapes = {name: tuple(state[given].shape) for name, given in names.origins.items()}
    return compare(model, shapes, left_out=names.unknown)


# ---- configurations


def foreign_config(
    folder: Path, family: Family, model_class: Any, random_blocks: str, changes: Mapping[str, Any]
) -> Any:
    """Our configuration of a folder of another library, with some fields changed."""
    file = folder / "config.json"
    known = model_class.config_class()
    if unknown := [name for name in changes if not hasattr(known, name)]:
        raise TypeError(
            f"{', '.join(unknown)}: neither an option of load_checkpoint nor a field of "
            f"{type(known).__name__}"
        )
    try:
        theirs = CONFIG_MAPPING[family.model_type](**read_json(file))
    except Exception as error:  # each configuration checks itself in its own way
        raise ValueError(f"{file} is no {family.model_type}: {error}") from error
    fields = {**family.read(theirs, random_blocks), **changes}
    if "num_labels" in changes:
        fields = {name: x for name, x in fields.items() if name not in ("id2label", "label2id")}
    try:
        return model_class.config_class(**fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error


def generation_settings(folder: Path) -> GenerationConfig | None:
    """The settings of `generate` in a folder, if it has any.

    Raises:
        ValueError: They cannot be read. transformers would go on with other settings.
    """
    file = folder / "generation_config.json"
    if not os.path.lexists(file):
        return None
    try:
        return GenerationConfig.from_dict(read_json(file))
    except Exception as error:  # what it holds is checked by transformers, in many ways
        raise ValueError(f"{file} has no settings for generate: {error}") from error


def without_pooler(
    model_class: ModelClass, names: Collection[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The option that leaves out a pooler which the file does not have.

    It would be random, and look like a trained one.
    """
    asked = "add_pooling_layer" in given or not issubclass(model_class, LongbirdModel)
    there = any("pooler" in name.split(".") for name in names)
    return {} if asked or there or not names else {"add_pooling_layer": False}


def _is_without(parts: Mapping[str, Any]) -> bool:
    return parts.get("add_pooling_layer") is False


def _dtype(given: torch.dtype | str | None) -> torch.dtype | str:
    if given is None:
        return torch.float32
    found = getattr(torch, given.removeprefix("torch."), None) if isinstance(given, str) else given
    if given != "auto" and not isinstance(found, torch.dtype):
        raise ValueError(f"dtype must be a floating type of torch, or its name, received {given}")
    return "auto" if given == "auto" else found  # type: ignore[return-value]


# ---- models


def _empty(path: Any, model_class: ModelClass, config: Any, *args: Any, **parts: Any) -> Any:
    """The model without memory, so that sizes which the file does not have are not allocated."""
    try:
        with torch.device("meta"):
            return model_class(config, *args, **parts)
    except (RuntimeError, ValueError, TypeError) as error:
        raise ValueError(
            f"no model can be built from the configuration of {path}: {error}"
        ) from error


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
    wanted = model.state_dict()
    # A file holds a tensor with several names once, under any of them.
    ties = model.all_tied_weights_keys
    named = {**{ties[k]: x for k, x in tensors.items() if k in ties}, **tensors}
    return {
        name: stored.read()
        for name, stored in named.items()
        if name in wanted and name not in ties and stored.shape == tuple(wanted[name].shape)
    }
