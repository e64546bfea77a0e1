"""Whose checkpoint is it: a folder that Longbird saved, or one of another library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from longbird.checkpoints.bert import BERT, MPNET, ROBERTA
from longbird.checkpoints.bigbird import BIG_BIRD, BIGBIRD_PEGASUS
from longbird.checkpoints.files import folder_of, read_json
from longbird.checkpoints.longformer import LED, LONGFORMER
from longbird.checkpoints.names import Family
from longbird.models import LongbirdConfig, LongbirdSeq2SeqConfig

FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (BERT, ROBERTA, MPNET, BIG_BIRD, LONGFORMER, BIGBIRD_PEGASUS, LED)
}
OWN = (LongbirdConfig.model_type, LongbirdSeq2SeqConfig.model_type)

HUB = ("cache_dir", "revision", "token", "local_files_only", "force_download")
"""Options of `from_pretrained` about a download."""


def is_arrays(path: str | os.PathLike[str]) -> bool:
    """Is this a file with the variables of Google's BigBird?"""
    return str(path).endswith(".npz")


def find_folder(path: str | os.PathLike[str], options: dict[str, Any]) -> Path:
    """The folder with config.json, downloaded if need be; `options` are `from_pretrained`'s."""
    hub = {name: options[name] for name in HUB if options.get(name) is not None}
    folder = folder_of(path, **hub) / (options.get("subfolder") or "")
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{folder} has no config.json")
    return folder


def model_type_of(folder: Path) -> str:
    """The type of the model in a folder.

    Raises:
        ValueError: It is none that Longbird reads.
    """
    model_type = read_json(folder / "config.json").get("model_type")
    if not isinstance(model_type, str) or model_type not in (*OWN, *FAMILIES):
        raise ValueError(
            f"{folder} must be the folder of a model of type {', '.join((*OWN, *FAMILIES))}, "
            f"received {model_type!r}"
        )
    return model_type


def family_of(model_type: str) -> Family:
    """The family of a model type."""
    if model_type not in FAMILIES:
        raise ValueError(
            f"the model type must be one of {', '.join(sorted(FAMILIES))}, received {model_type!r}"
        )
    return FAMILIES[model_type]
