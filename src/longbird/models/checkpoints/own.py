"""Loading what Longbird saved: a folder, or tensors that are given rather than read."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from longbird.errors import InvalidValueError
from longbird.models import LongbirdModel, LongbirdSeq2SeqConfig
from longbird.models.checkpoints.configs import generation_settings, no_option
from longbird.models.checkpoints.detect import PLACE, check_kind
from longbird.models.checkpoints.empty import empty_model, without_pooler
from longbird.models.checkpoints.files import read_json, stored_tensors
from longbird.models.checkpoints.int8 import as_float32, check_int8, int8_names
from longbird.models.checkpoints.names import ModelClass
from longbird.models.checkpoints.report import (
    HEAD_SIZES,
    Wishes,
    check_head_size,
    compare,
    notes_on,
)
from longbird.models.checkpoints.sources import check_layers, own_names, own_source
from longbird.models.fields import RULES

NOTED = ("architectures", "transformers_version", "dtype", "id2label", "label2id")
"""Fields that say nothing about what a model computes, or follow from `num_labels`."""


def load_own(
    path: Any, folder: Path, model_class: ModelClass, args: Sequence[Any], given: Mapping[str, Any]
) -> Any:
    """Loads a folder that Longbird saved.

    Args:
        path: As the caller named it, for messages.
        folder: Where it is.
        model_class: The class to load into.
        args: Of `from_pretrained`.
        given: Its options, such as strict=False or fields of the configuration.

    Raises:
        ValueError: A file is broken or hostile, or tensors of the encoder do not fit.
    """
    options = {name: x for name, x in given.items() if name not in PLACE}
    wishes = Wishes.taken_from(options)

    saved = _saved_config(folder, model_class)
    config, options = _config(path, saved, model_class, options)
    rounding = _rounding(path, saved, config, options)
    if rounding:
        config = _with(config, quantize=None)
    if model_class.can_generate():
        generation_settings(folder)  # raises if they cannot be read
    stored = stored_tensors(folder)
    check_layers(folder, stored, config)

    known = inspect.signature(model_class).parameters
    parts = {name: x for name, x in options.items() if name in known}
    pooler = {} if args else without_pooler(model_class, stored, parts)
    empty = empty_model(path, model_class, config, *args, **parts, **pooler)
    source = own_source(stored, empty)
    source.check(folder, int8_names(empty))

    same_class = _saved_as(saved, model_class)
    notes = notes_on(empty, config, pooler)
    fit = compare(empty, source.shapes, source.left_out, source.left_over, notes)
    changed = _changed(config, _quietly(model_class, saved))
    fit.check(path, wishes, changed)
    if not changed.keys() & HEAD_SIZES:
        same_sizes = same_class and wishes.same_shapes
        check_head_size(path, empty, fit, source.shapes, same_sizes=same_sizes)

    try:
        model, info = model_class.filled(folder, *args, config=config, **options, **pooler)
    except TypeError as error:  # transformers hands on to the model what it does not know itself
        unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if unknown is None or unknown[1] not in given:
            raise
        raise no_option(model_class.config_class, [unknown[1]]) from None
    model.config.name_or_path = path
    check_int8(path, model)
    fit.report(path)
    if rounding:
        model.to_int8()
    return (model, info) if wishes.info else model


def _rounding(path: Any, saved: Mapping[str, Any], config: Any, options: dict[str, Any]) -> bool:
    """Are the weights of the file to be rounded? Their type is then float32 if none is given."""
    if saved.get("quantize") and not config.quantize:
        raise InvalidValueError(
            f"the weights of {path} are int8 (quantize={saved['quantize']!r} in its config.json), "
            "and what they were made of is not in the file: leave quantize out, or load the "
            "folder that it was made of"
        )
    if config.quantize:
        as_float32(options)
    return bool(config.quantize) and not saved.get("quantize")


def _with(config: Any, **fields: Any) -> Any:
    """The same configuration with other fields; the caller's stays as it is."""
    config = copy.deepcopy(config)
    for name, value in fields.items():
        setattr(config, name, value)
    return config


def load_state(model_class: ModelClass, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Loads tensors under our names: `args` and `given` are those of `from_pretrained`."""
    options = dict(given)
    wishes = Wishes.taken_from(options)

    model, info = model_class.filled(None, *args, **options)
    state = options["state_dict"]
    names = own_names(state, model)
    int8 = int8_names(model)
    for name, origin in names.origins.items():
        if (name in int8) != (state[origin].dtype == torch.int8):
            raise InvalidValueError(
                f"{origin} of the state_dict is {state[origin].dtype}, and the configuration has "
                f"quantize={model.config.quantize!r}: int8 weights go with quantize='int8' alone"
            )
    shapes = {name: tuple(state[origin].shape) for name, origin in names.origins.items()}
    fit = compare(model, shapes, left_out=names.unknown)
    fit.check("the state_dict", wishes)
    fit.report("the state_dict")
    return (model, info) if wishes.info else model


def _saved_config(folder: Path, model_class: ModelClass) -> dict[str, Any]:
    """What config.json says, once it is known to be a configuration of this class."""
    file = folder / "config.json"
    saved = read_json(file)
    if "transformers_weights" in saved:
        raise InvalidValueError(f"{file} names another file of weights, which is not read")
    if _config_class(saved, model_class) is model_class.config_class:
        check_kind(folder, saved["model_type"], model_class)
    try:
        _quietly(model_class, saved)
    except (TypeError, ValueError) as error:  # which say what is wrong with a field
        raise InvalidValueError(f"{file}: {error}") from error
    return saved


def _config_class(saved: Mapping[str, Any], model_class: ModelClass) -> Any:
    """The encoder of an encoder-decoder, saved alone, keeps the configuration of the whole."""
    whole = saved["model_type"] == LongbirdSeq2SeqConfig.model_type
    if whole and issubclass(model_class, LongbirdModel) and _saved_as(saved, model_class):
        return LongbirdSeq2SeqConfig
    return model_class.config_class


def _saved_as(saved: Mapping[str, Any], model_class: ModelClass) -> bool:
    """Does a configuration say that this class was saved? transformers notes it by its name."""
    return model_class.__name__ in (saved.get("architectures") or [])


def _changed(config: Any, stated: Any) -> dict[str, Any]:
    """The fields of a configuration that are not as the file states them."""
    return {
        name: getattr(config, name)
        for name in RULES
        if name not in NOTED and getattr(config, name, None) != getattr(stated, name, None)
    }


def _quietly(model_class: ModelClass, saved: Mapping[str, Any]) -> Any:
    """The configuration without names that it does not know: another reading reports those."""
    ours = _config_class(saved, model_class)
    unknown = ours.unknown_names(saved)
    return ours.from_dict({name: x for name, x in saved.items() if name not in unknown})


def _config(
    path: Any, saved: Mapping[str, Any], model_class: ModelClass, options: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The configuration to make the model with, and the options that are not fields of it."""
    ours = _config_class(saved, model_class)
    rest = dict(options)
    config = rest.pop("config", None)
    if config is None:
        config, rest = ours.from_dict(
            dict(saved), return_unused_kwargs=True, name_or_path=str(path), **rest
        )
    elif not isinstance(config, ours):
        config = ours.from_pretrained(config)  # a path
    about_types = {name: options[name] for name in ("dtype", "torch_dtype") if name in options}
    return config, {**rest, **about_types}
