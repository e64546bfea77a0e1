"""Load a checkpoint into a model, whichever library wrote it.

The steps are the same for all checkpoints: recognise it and read its configuration, give its
tensors our names, compare them with the model built without memory, fill the model, and report in
one line what is new and what was not used. Only headers are read before the comparison.
"""

from __future__ import annotations

import copy
import inspect
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from transformers.utils import logging

from longbird.core.graph import Graph, LegacyBigBird
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.files.paths import check_path
from longbird.models import LongbirdModel, LongbirdSeq2SeqConfig
from longbird.models.checkpoints.bigbird import check_plan
from longbird.models.checkpoints.files import Stored, stored_arrays, stored_tensors
from longbird.models.checkpoints.fit import (
    HEAD_SIZES,
    FitOptions,
    check_head_size,
    compare,
    notes_on,
)
from longbird.models.checkpoints.folders import PLACE, Checkpoint, no_option, open_checkpoint
from longbird.models.checkpoints.names import ModelClass, for_class, with_originals
from longbird.models.checkpoints.sources import (
    Source,
    array_source,
    check_layers,
    empty_model,
    foreign_source,
    int8_names,
    own_names,
    own_source,
)
from longbird.models.config import LABEL_FIELDS, LongbirdConfig
from longbird.models.field_rules import RULES, shown
from longbird.models.pretrained import LongbirdPreTrainedModel
from longbird.models.quantize import as_float32, check_int8

DEVICES = ("device_map", "max_memory", "offload_folder", "offload_buffers")
"""Options of `from_pretrained` about where tensors go, which transformers takes care of."""

WITHOUT_EFFECT = ("use_safetensors", "low_cpu_mem_usage", "trust_remote_code")
"""Options of `from_pretrained` that change nothing here: no code and no pickle is ever read."""

NOTED = ("architectures", "transformers_version", "dtype", "id2label", "label2id")
"""Fields that say nothing about what a model computes, or follow from `num_labels`."""

logger = logging.get_logger(__name__)


def load_model(
    path: str | os.PathLike[str] | None,
    model_class: ModelClass,
    args: Sequence[Any],
    given: Mapping[str, Any],
) -> Any:
    """Load a model for `from_pretrained`, whose arguments these are."""
    options = dict(given)
    if options.pop("use_safetensors", True) is False:
        raise InvalidValueError(
            "use_safetensors=False would read a pickle, which can run any code"
        )
    if path is None and "state_dict" in options:
        return _load_state(model_class, args, options)
    check_path(path)
    assert path is not None
    checkpoint = open_checkpoint(path, options)
    if checkpoint.is_own:
        return _load_own(checkpoint, path, model_class, args, options)
    if args:
        raise InvalidTypeError(
            "for a checkpoint of another library, from_pretrained takes its options as "
            f"name=value; received {len(args)} without a name"
        )
    return _load_foreign(checkpoint, model_class, **options)


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
    """Load a checkpoint of BigBird, BigBird-Pegasus, Longformer, LED, BERT, RoBERTa or MPNet.

    The model may have a different head from the checkpoint: one logged line names the tensors that
    are new, and those that are not used.

    Args:
        path: A folder with config.json and safetensors, as `save_pretrained` of transformers
            writes it; the name of a model on the hub; or an .npz file with the variables of
            Google's BigBird, which needs `config`.
        model_class: The Longbird class to load into.
        strict: Whether to raise if tensors of the encoder are missing, left over or of other
            shapes. If False, the line names them, and the model gets new ones.
        random_blocks: The meaning of BigBird's random blocks: "seeded" as the checkpoint was
            trained, or "hf_eval" as transformers evaluates it (all are block 0).
        graph: A graph to use instead of that of the checkpoint.
        config: A configuration to use instead of that of the checkpoint; an .npz file has none.
        dtype: Type of the weights: float32 by default, that of the file if "auto".
        **changes: Fields of the configuration to change, such as num_labels; options of
            transformers about devices and downloads; and for `LongbirdModel`, add_pooling_layer.

    Returns:
        The model, in evaluation mode.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Names or shapes do not fit, or a file is damaged or unsafe to read; the message
            says which.

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
    if not (isinstance(model_class, type) and issubclass(model_class, LongbirdPreTrainedModel)):
        raise InvalidTypeError(
            "model_class must be a class of Longbird, such as LongbirdModel; received "
            f"{model_class!r:.80}"
        )
    check_path(path)
    check_plan(random_blocks)
    checkpoint = open_checkpoint(path, changes)
    if checkpoint.is_own:
        raise InvalidValueError(
            f"{checkpoint.folder} was saved by Longbird: load it with "
            f"{model_class.__name__}.from_pretrained"
        )
    return _load_foreign(
        checkpoint, model_class, strict=strict, random_blocks=random_blocks, graph=graph,
        config=config, dtype=dtype, **changes,
    )  # fmt: skip


# ---- what all checkpoints share


@dataclass(frozen=True)
class _Found:
    """A checkpoint for a model of a class, before any tensor is read."""

    checkpoint: Checkpoint
    model_class: ModelClass
    config: LongbirdConfig
    """The configuration to build the model with."""
    fit: FitOptions
    changed: Mapping[str, Any]
    """Fields of the configuration that are not as the checkpoint states them."""
    chosen_head: bool
    """Whether the caller asked for a head of this size."""
    same_class: bool
    """Whether the class, or its counterpart in another library, was saved."""
    args: Sequence[Any] = ()
    """Positional arguments of the class."""
    parts: Mapping[str, Any] | None = None
    """Keyword arguments of the class, such as add_pooling_layer."""

    def empty_model(self, names: Collection[str]) -> tuple[Any, dict[str, Any]]:
        """Build the model without memory, and return it with the arguments that it was built with.

        A pooler that the file does not have is left out: it would be random, and look trained.
        """
        parts = dict(self.parts or {})
        asked = bool(self.args) or "add_pooling_layer" in parts
        there = any("pooler" in name.split(".") for name in names)
        if issubclass(self.model_class, LongbirdModel) and names and not asked and not there:
            parts["add_pooling_layer"] = False
        path = self.checkpoint.name
        return empty_model(path, self.model_class, self.config, *self.args, **parts), parts

    def compared(self, empty: Any, source: Source, parts: Mapping[str, Any]) -> Any:
        """Compare the tensors with the model; raise if they do not fit, and return how they do."""
        path = self.checkpoint.name
        left_out = parts != (self.parts or {})
        notes = notes_on(empty, self.config, without_pooler=left_out)
        fit = compare(empty, source.shapes, source.left_out, source.left_over, notes)
        fit.check(path, self.fit, self.changed)
        if not self.chosen_head:
            same_sizes = self.same_class and self.fit.same_shapes
            check_head_size(path, empty, fit, source.shapes, same_sizes=same_sizes)
        return fit


# ---- folders that Longbird saved


def _load_own(
    checkpoint: Checkpoint,
    path: Any,
    model_class: ModelClass,
    args: Sequence[Any],
    given: dict[str, Any],
) -> Any:
    """Load a folder that Longbird saved; transformers reads the tensors."""
    options = {name: x for name, x in given.items() if name not in PLACE}
    wanted = FitOptions.taken_from(options)
    if "transformers_weights" in checkpoint.saved:
        raise checkpoint.error("it names another file of weights, which is not read")
    same_class = model_class.__name__ in checkpoint.architectures
    # The encoder of an encoder-decoder, saved alone, keeps the configuration of the whole.
    whole = checkpoint.model_type == LongbirdSeq2SeqConfig.model_type
    config_class = model_class.config_class
    if whole and issubclass(model_class, LongbirdModel) and same_class:
        config_class = LongbirdSeq2SeqConfig
    else:
        checkpoint.check_kind(model_class)
    stated = checkpoint.stated_config(config_class)
    config, options = _changed_config(checkpoint, config_class, options)
    stored_type = checkpoint.saved.get("quantize")
    if stored_type and not config.quantize:
        raise InvalidValueError(
            f"the weights of {path} are int8 (quantize={stored_type!r} in its config.json), and "
            "the file does not have the weights that they were made from: leave quantize out, or "
            "load the folder that it was made from"
        )
    if config.quantize:
        as_float32(options)
    rounding = bool(config.quantize) and not stored_type
    if rounding:
        config = copy.deepcopy(config)  # the caller's configuration does not change
        config.quantize = None
    if model_class.can_generate():
        checkpoint.generation_settings()  # raises if they cannot be read
    changed = {
        name: getattr(config, name)
        for name in RULES
        if name not in NOTED and getattr(config, name, None) != getattr(stated, name, None)
    }
    known = inspect.signature(model_class).parameters
    found = _Found(
        checkpoint, model_class, config, wanted, changed,
        chosen_head=bool(changed.keys() & HEAD_SIZES),
        same_class=same_class,
        args=args,
        parts={name: x for name, x in options.items() if name in known},
    )  # fmt: skip
    stored = stored_tensors(checkpoint.folder)
    check_layers(checkpoint.folder, stored, config)
    empty, parts = found.empty_model(stored)
    source = own_source(stored, empty)
    source.check(checkpoint.folder, int8_names(empty))
    fit = found.compared(empty, source, parts)
    try:
        model, info = model_class.fill(checkpoint.folder, *args, config=config, **options | parts)
    except TypeError as error:  # transformers passes options that it does not know to the model
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None or unknown[1] not in given:
            raise
        raise no_option(model_class.config_class, [unknown[1]]) from None
    model.config.name_or_path = path
    check_int8(path, model)
    fit.report(path)
    if rounding:
        model.to_int8()
    return (model, info) if wanted.info else model


def _changed_config(
    checkpoint: Checkpoint, config_class: type[LongbirdConfig], options: Mapping[str, Any]
) -> tuple[LongbirdConfig, dict[str, Any]]:
    """The configuration with the fields that the caller gave, and the options that are none."""
    rest = dict(options)
    config = rest.pop("config", None)
    if config is None:
        config, rest = config_class.from_dict(
            dict(checkpoint.saved), return_unused_kwargs=True, name_or_path=checkpoint.name, **rest
        )
    elif not isinstance(config, config_class):
        config = config_class.from_pretrained(config)  # a path
    about_types = {name: options[name] for name in ("dtype", "torch_dtype") if name in options}
    return config, {**rest, **about_types}


def _load_state(model_class: ModelClass, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Load tensors that the caller gives under our names."""
    wanted = FitOptions.taken_from(options)
    model, info = model_class.fill(None, *args, **options)
    state = options["state_dict"]
    names = own_names(state, model)
    int8 = int8_names(model)
    for name, origin in names.origins.items():
        if (name in int8) != (state[origin].dtype == torch.int8):
            raise InvalidValueError(
                f"{origin} of the state_dict is {state[origin].dtype}, and the configuration has "
                f"quantize={model.config.quantize!r}: int8 weights go with quantize='int8' only"
            )
    shapes = {name: tuple(state[origin].shape) for name, origin in names.origins.items()}
    fit = compare(model, shapes, left_out=names.unknown)
    fit.check("the state_dict", wanted)
    fit.report("the state_dict")
    return (model, info) if wanted.info else model


# ---- checkpoints of other libraries


def _load_foreign(
    checkpoint: Checkpoint,
    model_class: ModelClass,
    *,
    strict: bool = True,
    random_blocks: str = "seeded",
    graph: Graph | list[Graph] | None = None,
    config: Any = None,
    dtype: torch.dtype | str | None = None,
    **changes: Any,
) -> Any:
    """Load a checkpoint of another library; its tensors are read here, under our names."""
    check_plan(random_blocks)
    if config is not None and not isinstance(config, model_class.config_class):
        raise InvalidTypeError(
            f"config must be a {model_class.config_class.__name__}, received {shown(config)}"
        )
    kind: dict[str, Any] = {"dtype": _dtype(changes.pop("torch_dtype", dtype))}
    quantize = changes.pop("quantize", None if config is None else config.quantize)
    RULES["quantize"].check("quantize", quantize)
    if quantize:
        as_float32(kind)
    wanted = FitOptions.taken_from(changes, strict=strict)
    if wanted.info:
        raise InvalidTypeError(
            "output_loading_info is for folders that Longbird saved: leave it out"
        )
    parts, devices = _taken(changes, ("add_pooling_layer",)), _taken(changes, DEVICES)
    if devices.get("device_map") in ("cpu", torch.device("cpu")):
        del devices["device_map"]  # tensors are loaded there anyway
    _taken(changes, (*WITHOUT_EFFECT, *(() if checkpoint.is_arrays else PLACE)))
    chosen_head = config is not None or bool(changes.keys() & {*HEAD_SIZES, *LABEL_FIELDS})
    if checkpoint.is_arrays:
        source = _array_source(checkpoint, model_class, config, graph)
        ours, same_class = cast(LongbirdConfig, config), False
    else:
        checkpoint.check_kind(model_class)
        source = foreign_source(checkpoint.folder, checkpoint.family, model_class)
        ours = config or checkpoint.translated_config(model_class, random_blocks, changes)
        theirs = for_class(checkpoint.family.architectures, model_class)
        same_class = theirs in checkpoint.architectures
        if model_class.can_generate() and (settings := checkpoint.generation_settings()):
            devices["generation_config"] = settings
    if graph is not None:
        ours = _with_fields(ours, graph=graph)
    if ours.quantize:  # rounded after loading, if at all
        ours = _with_fields(ours, quantize=None)
    source.check(checkpoint.name)
    check_layers(checkpoint.name, source.tensors, ours)

    found = _Found(
        checkpoint, model_class, ours, wanted, changes, chosen_head, same_class, parts=parts
    )
    empty, built = found.empty_model(source.tensors)
    if untied := _untied(empty, source.tensors):
        logger.warning(
            f"{checkpoint.name} has several tensors where its configuration ties them into one; "
            "each is kept"
        )
        source = replace(source, tensors={**source.tensors, **untied})
        found = replace(found, config=_with_fields(ours, tie_word_embeddings=False))
        empty, built = found.empty_model(source.tensors)
    fit = found.compared(empty, source, built)
    wanted_tensors, ties = empty.state_dict(), empty.all_tied_weights_keys
    tensors = {
        name: stored.read()
        for name, stored in with_originals(empty, source.tensors).items()
        if name in wanted_tensors
        and name not in ties
        and stored.shape == tuple(wanted_tensors[name].shape)
    }
    model, _ = model_class.fill(
        None, config=found.config, state_dict=tensors, **kind, **built, **devices
    )
    fit.report(checkpoint.name)
    return model.to_int8() if quantize else model


def _array_source(
    checkpoint: Checkpoint, model_class: ModelClass, config: Any, graph: Any
) -> Source:
    """The variables of Google's BigBird."""
    if config is None:
        raise InvalidValueError(
            f"{checkpoint.name} has no configuration: give config=LongbirdConfig(...)"
        )
    source = array_source(stored_arrays(checkpoint.folder), model_class)
    if graph is None and not isinstance(config.graph, LegacyBigBird):
        logger.warning_once(
            "Google's checkpoints were trained with LegacyBigBird('google'), and the "
            f"configuration has the graph {config.graph}"
        )
    return source


def _taken(options: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Remove the options with these names, and return them."""
    return {name: options.pop(name) for name in names if name in options}


def _with_fields(config: LongbirdConfig, **changes: Any) -> LongbirdConfig:
    return type(config)(**{**config.to_dict(), **changes})


def _dtype(given: torch.dtype | str | None) -> torch.dtype | str:
    if given is None:
        return torch.float32
    if given == "auto":
        return "auto"
    found = getattr(torch, given.removeprefix("torch."), None) if isinstance(given, str) else given
    if not isinstance(found, torch.dtype):
        raise InvalidValueError(
            f"dtype must be a floating type of torch, or its name, received {given}"
        )
    return found


def _untied(model: Any, tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """Tensors that the file has under names which the model ties, if they differ.

    Each name then gets a tensor of its own: that of the file, or the one it would be tied to.
    """
    ties = model.all_tied_weights_keys
    both = [(a, b) for a, b in ties.items() if a in tensors and b in tensors]
    differ = any(
        tensors[a].shape == tensors[b].shape
        and not torch.equal(tensors[a].read(), tensors[b].read())
        for a, b in both
    )
    return {a: tensors.get(a, tensors[b]) for a, b in ties.items()} if differ else {}
