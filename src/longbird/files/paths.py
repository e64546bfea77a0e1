"""Where models are read from, and models and pictures written to, as the caller names it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from longbird.errors import InvalidTypeError, InvalidValueError, MissingFileError


def check_path(path: Any, expected: str = "a folder, or the name of a model on the hub") -> None:
    """Raises for what cannot be a path: None would be looked for on the hub, as "None".

    Args:
        path: What the caller gave.
        expected: In words, for the message.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidTypeError(f"expected the path of {expected}; received {path!r:.80}")
    if not str(path).strip():
        raise InvalidValueError(
            f"expected the path of {expected}; received the empty text {path!r:.80}"
        )


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raises if a picture cannot be written here, which is better said before it is drawn."""
    check_picture_name(path)
    if not Path(path).parent.is_dir():
        raise MissingFileError(f"there is no folder {Path(path).parent} for {Path(path).name}")


def check_picture_name(path: str | os.PathLike[str]) -> None:
    """Raises if this is not the name of a picture; its folder may still have to be made."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidValueError(
            f"received {str(path)!r} to write a picture to, expected a name that ends in .png, "
            ".svg or .pdf"
        )


def is_path(path: str | os.PathLike[str]) -> bool:
    """Can this only be a path, and not the name of a model on the hub?"""
    return str(path).count("/") > 1 or str(path).startswith((".", "/", "~"))


def folder_of(path: str | os.PathLike[str], **hub: Any) -> Path:
    """The folder itself, or a snapshot of the model of this name on the hub.

    A name without an owner is looked for among earlier downloads alone: most likely it is a folder
    with a typing mistake in its name, and the hub would be asked about it for a long time.
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
    """Raises if there is no download of that name, without importing what looks into it."""
    from huggingface_hub.constants import HF_HUB_CACHE

    if not os.path.isdir(Path(cache or HF_HUB_CACHE, f"models--{name}")):
        raise MissingFileError(f"{name} was not downloaded")


def model_folder(path: str | os.PathLike[str], subfolder: str = "", **hub: Any) -> Path:
    """The same, if there is a model in it."""
    folder = folder_of(path, **hub) / subfolder
    if not (folder / "config.json").is_file():
        raise MissingFileError(f"{folder} has no config.json")
    return folder
