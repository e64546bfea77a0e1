"""The configurations in a folder: that of a model of another library as ours, and generation's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transformers import CONFIG_MAPPING, AutoConfig, GenerationConfig

from longbird.errors import InvalidValueError
from longbird.models.checkpoints.detect import FAMILIES, OWN, find_folder, model_type_of
from longbird.models.checkpoints.files import read_json
from longbird.models.checkpoints.names import Family
from longbird.models.config import LABEL_FIELDS


def read_config(path: str | os.PathLike[str]) -> Any:
    """The configuration of a model of Longbird, or of one that it reads; no weights are read."""
    folder = find_folder(path, {})
    model_type = model_type_of(folder)
    if model_type in OWN:
        return AutoConfig.from_pretrained(folder)
    family = FAMILIES[model_type]
    return foreign_config(folder, family, family.base, "seeded", {})


def foreign_config(
    folder: Path, family: Family, model_class: Any, random_blocks: str, changes: Mapping[str, Any]
) -> Any:
    """Our configuration of a folder of another library, with some fields changed."""
    file = folder / "config.json"
    ours = model_class.config_class
    if unknown := ours.unknown_names(changes):
        raise no_option(ours, unknown)
    try:
        theirs = CONFIG_MAPPING[family.model_type](**read_json(file))
    except Exception as error:  # each configuration checks itself in its own way
        raise InvalidValueError(
            f"{file} is not a configuration of {family.model_type}: {error}"
        ) from error
    fields = family.read(theirs, random_blocks)
    fields.pop("label2id", None)  # it follows from id2label, and old files contradict themselves
    if LABEL_FIELDS & changes.keys():  # the names in the file are those of other labels
        fields.pop("id2label", None)
    try:
        found = ours(**fields)
    except (TypeError, ValueError) as error:
        raise InvalidValueError(f"{file}: {error}") from error
    return ours(**{**fields, **changes}) if changes else found


def no_option(config_class: Any, names: Iterable[str]) -> TypeError:
    """The error for options that are neither of loading nor fields of a configuration."""
    return TypeError(
        f"{config_class.has_no(names)} Nor is that an option of from_pretrained or load_checkpoint"
    )


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
        raise InvalidValueError(
            f"{file} cannot be read as settings of generate: {error}"
        ) from error
