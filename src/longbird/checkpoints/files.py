"""Reading files that may be broken or hostile: safetensors and JSON alone, never pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor


def is_path(path: str | os.PathLike[str]) -> bool:
    """Can this only be a path, and not the name of a model on the hub?"""
    return str(path).count("/") > 1 or str(path).startswith((".", "/", "~"))


def folder_of(path: str | Path, **hub: Any) -> Path:
    """The folder itself, or a snapshot of the model of this name on the hub."""
    if Path(path).is_file():
        raise ValueError(f"{path} is a file; expected the folder that it is in")
    if Path(path).exists():
        return Path(path)
    if is_path(path):
        raise FileNotFoundError(f"there is no folder {path}, and it is not the name of a model")
    from huggingface_hub import snapshot_download

    patterns = ["*.json", "*.safetensors", "*.txt"]
    try:
        return Path(snapshot_download(str(path), allow_patterns=patterns, **hub))
    except (OSError, ValueError) as error:  # no such name, no network, no right to read it
        raise FileNotFoundError(
            f"there is no folder {path}, and no model of this name came from the hub: {error}"
        ) from error


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{file} must hold a JSON object, received {type(value).__name__}")
    return value


def files_of(folder: Path) -> list[Path]:
    """The safetensors files of a folder: model.safetensors, or those that its index names."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return [folder / "model.safetensors"]
    if index.is_file():
        files = read_json(index).get("weight_map")
        if not isinstance(files, dict) or not files:
            raise ValueError(f"{index} must have a weight_map, from tensors to files")
        for name in files.values():
            # A name with a folder in it could lead anywhere.
            plain = isinstance(name, str) and Path(name).name == name
            if not plain or not name.endswith(".safetensors"):
                raise ValueError(
                    f"{index} names the file {name!r}; expected a .safetensors file beside it"
                )
        return [folder / name for name in sorted(set(files.values()))]
    pickled = [
        file.name for ext in ("bin", "pt", "pth", "ckpt") for file in folder.glob(f"*.{ext}")
    ]
    if pickled:
        raise ValueError(
            f"{folder} has {', '.join(sorted(pickled))}, a pickle, which can run any code when it "
            "is read; save the model as safetensors (save_pretrained of transformers does)"
        )
    raise FileNotFoundError(f"{folder} has no model.safetensors")


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder."""
    tensors: dict[str, Tensor] = {}
    for file in files_of(folder):
        with _reading(file):
            found = load_file(file)
        check_once(file, found, tensors)
        tensors.update(found)
    return tensors


@contextmanager
def _reading(file: Path) -> Generator[None, None, None]:
    """Whatever safetensors fails with names the file."""
    try:
        yield
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise ValueError(f"{file} cannot be read as safetensors: {error}") from error


def check_folder(folder: Path) -> set[str]:
    """The names of its tensors; raises if a file is broken or leads elsewhere. Reads headers."""
    seen: dict[str, str] = {}
    for file in files_of(folder):
        with _reading(file), safe_open(file, "pt") as tensors:
            kinds = {name: tensors.get_slice(name).get_dtype() for name in tensors.keys()}
        for name, kind in kinds.items():
            if name.endswith(("weight", "bias")):  # as all of ours do; what is left over is listed
                check_real(file, name, kind.startswith(("F", "BF")))
        check_once(file, kinds, seen)
        seen.update(kinds)
    if (folder / "config.json").is_file():
        check_layers(folder, read_json(folder / "config.json"), len(seen))
    return set(seen)


def check_once(file: Path, found: Mapping[str, Any], seen: Mapping[str, Any]) -> None:
    """Raises if two files have a tensor of one name: which of them counts would be a guess."""
    if twice := sorted(set(found) & set(seen)):
        raise ValueError(f"{file} has tensors that another file has, too: {', '.join(twice)}")


def check_layers(folder: Path | str, config: Any, tensors: int) -> None:
    """Raises if there are many more layers than tensors: building them could take for ever."""
    fields = config if isinstance(config, dict) else vars(config)
    for name in ("num_hidden_layers", "decoder_layers"):
        layers = fields.get(name)
        if isinstance(layers, int) and layers > max(tensors, 256):
            raise ValueError(
                f"{folder} has {tensors} tensors, and its configuration {layers} layers"
            )


def check_real(file: Path | str, name: str, real: bool) -> None:
    """Raises if a tensor is not of real numbers."""
    if not real:
        raise ValueError(f"{name} of {file} must be floating point, and is not")


def read_arrays(file: Path) -> dict[str, Tensor]:
    """The arrays of an .npz file."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            found = {name: np.ascontiguousarray(arrays[name]) for name in arrays}
    except Exception as error:  # zipfile, zlib and NumPy raise what they like
        raise ValueError(f"{file} cannot be read as an .npz of plain arrays: {error}") from error
    for name, array in found.items():
        # The step that TensorFlow counts is an integer, and is not read.
        check_real(file, name, array.dtype.kind == "f" or name == "global_step")
    return {name: torch.from_numpy(array) for name, array in found.items()}
