"""The reader that comes with Longbird: a difference to MiniLM's weights, which are downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longbird.applications.reading.loading import quiet
from longbird.errors import InvalidValueError
from longbird.files.digest import sha256_of
from longbird.files.paths import folder_of_model
from longbird.files.sources import is_named, minilm
from longbird.files.sources.packages import MODEL_FILES, cached

SHIPPED = Path(__file__).parent / "shipped"
"""Folder with config.json, difference.safetensors and the model card."""
DIFFERENCE = "difference.safetensors"
NUMBERS, SCALES = ".difference", ".scale"
"""Suffixes of the names of tensors that are stored as a difference."""
TOKENIZER = tuple(file for file in MODEL_FILES if file not in ("config.json", "model.safetensors"))


def folder_of_reader(source: str | Path) -> Path:
    """Return the folder of a reader: "default", or the folder of a run or of a model."""
    if str(source) == "default":  # a folder of that name is ./default
        return default_reader()
    if is_named(str(source)):
        raise InvalidValueError(
            f"{source} was not trained to answer questions: `longbird finetune ask --model "
            f"{source}` trains it, and default is the reader that comes with Longbird"
        )
    return folder_of_model(source)


def default_reader() -> Path:
    """Return the folder of the default reader, which is built at its first use."""
    files = ("config.json", "model.safetensors", *TOKENIZER)
    return cached(shipped_name(), files, _fill, megabytes=91, doing="building")


def shipped_name() -> str:
    """Return a name that depends on the weights and the configuration."""
    parts = (sha256_of(SHIPPED / file)[:8] for file in (DIFFERENCE, "config.json"))
    return f"reader-{'-'.join(parts)}"


def _fill(folder: Path, _: Path) -> None:
    from safetensors.torch import save_file

    source = minilm.path()
    weights = apply_difference(starting_weights(source), SHIPPED / DIFFERENCE)
    contiguous = {name: value.contiguous() for name, value in weights.items()}
    save_file(contiguous, folder / "model.safetensors", metadata={"format": "pt"})
    shutil.copyfile(SHIPPED / "config.json", folder / "config.json")
    for file in TOKENIZER:
        shutil.copyfile(source / file, folder / file)


def starting_weights(source: str | Path, rows: int = 4096) -> dict[str, Any]:
    """Return MiniLM's weights by Longbird's names, with its positions repeated up to `rows`."""
    import torch

    from longbird.models import LongbirdModel

    with quiet():
        model = LongbirdModel.from_pretrained(source, add_pooling_layer=False)
    weights = {f"longbird.{name}": value for name, value in model.state_dict().items()}
    table = weights["longbird.embeddings.positions.weight"]
    weights["longbird.embeddings.positions.weight"] = table[torch.arange(rows) % len(table)]
    return weights


def apply_difference(start: Mapping[str, Any], file: str | Path) -> dict[str, Any]:
    """Return the trained weights, from the weights that training started from and their changes.

    Training changes weights little, so a byte for the difference is more precise than a byte for
    the weight itself. Each row has its own scale, and the error is below 1/250 of the row's
    largest change. Weights that did not change, such as frozen embeddings, take no space.

    Raises:
        ValueError: The file has a difference to a tensor that does not exist, or has another
            shape.
    """
    from safetensors.torch import load_file

    kept = load_file(file)
    found = dict(start)
    for name, value in kept.items():
        if name.endswith(SCALES):
            continue
        if not name.endswith(NUMBERS):
            found[name] = value
            continue
        base = name.removesuffix(NUMBERS)
        if base not in start or start[base].shape != value.shape:
            shape = list(start[base].shape) if base in start else "missing"
            raise InvalidValueError(
                f"{file} has a difference of shape {list(value.shape)} to {base}, which is "
                f"{shape} in the starting weights"
            )
        found[base] = start[base].float() + value.float() * kept[base + SCALES][:, None]
    return found
