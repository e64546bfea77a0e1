"""Reading files that may be broken or hostile: safetensors and JSON alone, never pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor


def folder_of(path: str | Path) -> Path:
    """The folder itself, or a snapshot of the model of this name on the hub."""
    if Path(path).exists():
        return Path(path)
    if str(path).count("/") != 1 or str(path).startswith((".", "/", "~")):
        raise FileNotFoundError(f"there is no folder {path}, and it is not the name of a model")
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(str(path), allow_patterns=["*.json", "*.safetensors", "*.txt"]))


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object."""
    try:
        value = json.loads(file.read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{file} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{file} must hold a JSON object, received {type(value).__name__}")
    return value


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder: model.safetensors, or the files that its index names."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return _safetensors(folder / "model.safetensors")
    if index.is_file():
        files = read_json(index).get("weight_map")
        if not isinstance(files, dict) or not files:
            raise ValueError(f"{index} has no weight_map")
        tensors: dict[str, Tensor] = {}
        for name in sorted({str(value) for value in files.values()}):
            # A name with a folder in it could lead anywhere.
            if Path(name).name != name or not name.endswith(".safetensors"):
                raise ValueError(
                    f"{index} names the file {name!r}; expected a .safetensors file beside it"
                )
            tensors.update(_safetensors(folder / name))
        if missing := sorted(set(files) - set(tensors)):
            raise ValueError(f"{index} names tensors that its files lack: {', '.join(missing)}")
        return tensors
    pickled = sorted(
        file.name for ext in ("bin", "pt", "pth", "ckpt") for file in folder.glob(f"*.{ext}")
    )
    if pickled:
        raise ValueError(
            f"{folder} has {', '.join(pickled)}, a pickle, which can run any code when it is "
            "read; save the model as safetensors (save_pretrained of transformers does)"
        )
    raise FileNotFoundError(f"{folder} has no model.safetensors")


def read_arrays(file: Path) -> dict[str, Tensor]:
    """The arrays of an .npz file."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(np.ascontiguousarray(arrays[name])) for name in arrays}
    except Exception as error:  # zipfile, zlib and NumPy raise what they like
        raise ValueError(f"{file} cannot be read as an .npz of plain arrays: {error}") from error


def _safetensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{file} cannot be read as safetensors: {error}") from error
