"""Paths and names that callers give: of models to read, and of models and pictures to write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from longbird.errors import InvalidTypeError, InvalidValueError, MissingFileError


def check_path(path: Any, expected: str = "a folder, or the name of a model on the hub") -> None:
    """Raise for values that cannot be a path; None would be looked up on the hub as "None".

    Args:
        path: The value that the caller gave.
        expected: What the path should lead to, for the message.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"expected the path of {expected}; received {path!r:.80}")
    if not str(path).strip():
        raise InvalidValueError(
            f"expected the path of {expected}; received the empty text {path!r:.80}"
        )


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise if a picture cannot be written to this path, before it is drawn."""
    check_picture_name(path)
    if not Path(path).parent.is_dir():
        raise MissingFileError(f"there is no folder {Path(path).parent} for {Path(path).name}")


def check_picture_name(path: str | os.PathLike[str]) -> None:
    """Raise unless this is the name of a picture; its folder need not exist yet."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidValueError(
            f"received {str(path)!r} to write a picture to, expected a name that ends in .png, "
            ".svg or .pdf"
        )


def is_path(path: str | os.PathLike[str]) -> bool:
    """Return whether this can only be a path, and not the name of a model on the hub."""
    return str(path).count("/") > 1 or str(path).startswith((".", "/", "~"))


def folder_of(path: str | os.PathLike[str], **hub: Any) -> Path:
    """Return the folder itself, or a snapshot of the model with this name on the hub.

    A name without an owner is only looked up among earlier downloads: most likely it is a folder
    with a typing mistake in its name, and asking the hub would take a long time.
    """
    if Path(path).is_file():
        raise InvalidValueError(f"{path} is a file; expected the folder that it is in")
    if Path(path).exists():
        return Path(path)
    if is_path(path):
        raise MissingFileError(f"there is no folder {path}")
    owned = "/" in str(path)
    if not owned:
        hub = {**hub, "local_files_only": True}
    try:
        if not owned:
            _check_downloaded(str(path), hub.get("cache_dir"))
        from huggingface_hub import snapshot_download

        patterns = ["*.json", "*.safetensors", "*.txt", "*.model"]
        return Path(snapshot_download(str(path), allow_patterns=patterns, **hub))
    except (OSError, ValueError) as error:  # no such name, no network, no right to read it
        reason = (
            f"no model of this name came from the hub: {error}"
            if owned
            else "a model on the hub is named owner/name, such as google-bert/bert-base-uncased"
        )
        raise MissingFileError(f"there is no folder {path}, and {reason}") from error


def _check_downloaded(name: str, cache: Any) -> None:
    """Raise if there is no download of that name, without importing huggingface_hub's cache."""
    from huggingface_hub.constants import HF_HUB_CACHE

    if not os.path.isdir(Path(cache or HF_HUB_CACHE, f"models--{name}")):
        raise MissingFileError(f"{name} was not downloaded")


def folder_of_model(path: str | os.PathLike[str], **hub: Any) -> Path:
    """Return the folder of a model, given that folder, a finished run, or a name on the hub.

    Raises:
        FileNotFoundError: The folder does not exist, or is a run that is not finished.
    """
    check_path(path)
    folder = folder_of(path, **hub)
    if not (folder / "run.toml").is_file():
        return folder
    if not (folder / "result.json").is_file():
        raise MissingFileError(
            f"{folder} is a run that is not finished: repeat the command that started it to "
            "resume it"
        )
    if not (folder / "model" / "config.json").is_file():
        raise MissingFileError(
            f"{folder} is a finished run whose model, {folder / 'model'}, is missing: train it "
            "again in another folder"
        )
    return folder / "model"


def model_folder(path: str | os.PathLike[str], subfolder: str = "", **hub: Any) -> Path:
    """Return `folder_of_model`, or a folder in it, and raise if it has no configuration."""
    folder = folder_of_model(path, **hub) / subfolder
    if not (folder / "config.json").is_file():
        raise MissingFileError(f"{folder} has no config.json: it is not the folder of a model")
    return folder
