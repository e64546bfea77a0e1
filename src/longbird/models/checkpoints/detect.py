"""Whose checkpoint is it: a folder that Longbird saved, or one of another library."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longbird import models
from longbird.errors import InvalidValueError
from longbird.files.paths import check_path, model_folder
from longbird.models import LongbirdConfig, LongbirdSeq2SeqConfig
from longbird.models.checkpoints.bert import BERT, MPNET, ROBERTA
from longbird.models.checkpoints.bigbird import BIG_BIRD, BIGBIRD_PEGASUS
from longbird.models.checkpoints.files import read_json
from longbird.models.checkpoints.longformer import LED, LONGFORMER
from longbird.models.checkpoints.names import Family, ModelClass
from longbird.models.pretrained import LongbirdPreTrainedModel

FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (BERT, ROBERTA, MPNET, BIG_BIRD, LONGFORMER, BIGBIRD_PEGASUS, LED)
}
KINDS = {
    LongbirdConfig.model_type: "an encoder",
    LongbirdSeq2SeqConfig.model_type: "an encoder-decoder",
}
OWN = tuple(KINDS)

HUB = ("cache_dir", "revision", "token", "local_files_only", "force_download")
"""Options of `from_pretrained` about a download."""
PLACE = ("subfolder", *HUB)
"""All that `find_folder` takes care of."""


def is_arrays(path: str | os.PathLike[str]) -> bool:
    """Is this a file with the variables of Google's BigBird?"""
    return str(path).endswith(".npz") and not Path(path).is_dir()


def own_folder(path: str | os.PathLike[str], options: Mapping[str, Any]) -> Path | None:
    """The folder, if Longbird saved it; `options` are `from_pretrained`'s."""
    if is_arrays(path):
        return None
    folder = find_folder(path, options)
    return folder if model_type_of(folder) in OWN else None


def find_folder(path: str | os.PathLike[str], options: Mapping[str, Any]) -> Path:
    """The folder with config.json, downloaded if need be; `options` are `from_pretrained`'s."""
    check_path(path)
    hub = {name: options[name] for name in HUB if options.get(name) is not None}
    return model_folder(path, options.get("subfolder") or "", **hub)


def model_type_of(folder: Path) -> str:
    """The type of the model in a folder.

    Raises:
        ValueError: It is none that Longbird reads.
    """
    model_type = read_json(folder / "config.json").get("model_type")
    if not isinstance(model_type, str) or model_type not in (*OWN, *FAMILIES):
        raise InvalidValueError(
            f"{folder / 'config.json'} must have one of the model types "
            f"{', '.join((*OWN, *FAMILIES))}; received {model_type!r:.80}"
        )
    return model_type


def check_kind(folder: Path, kind: str, model_class: ModelClass) -> None:
    """Raises if an encoder is loaded as an encoder-decoder, or the other way round.

    Args:
        folder: For the message.
        kind: The model type of the configuration of ours that the folder has, or becomes.
        model_class: The class to load into.
    """
    wanted = model_class.config_class.model_type
    if kind != wanted:
        fitting = [
            name
            for name, each in sorted(vars(models).items())
            if isinstance(each, type)
            and issubclass(each, LongbirdPreTrainedModel)
            and each.config_class.model_type == kind
        ]
        raise InvalidValueError(
            f"{folder} has {KINDS[kind]}, not {KINDS[wanted]}, which {model_class.__name__} "
            f"loads; load it with one of {', '.join(fitting)}"
        )
