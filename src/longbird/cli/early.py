"""Checks of file and model names that run before the slow imports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from longbird.errors import MissingFileError
from longbird.files.paths import folder_of
from longbird.files.sources import is_named


def check_files(files: Iterable[Path] | None) -> None:
    """Raise an error if a file does not exist or has an unsupported format."""
    from longbird.applications.training.data.files import (
        find_files,  # names the missing package if the extra `train` is not installed
    )

    if files:
        find_files(files)


def check_trained(model: str, files: Iterable[Path]) -> None:
    """Raise an error if a file, or the folder of a run or a model, cannot be used."""
    check_model(model)
    check_files(files)


def check_there(files: Iterable[Path]) -> None:
    """Raise an error if a file or folder does not exist; "-" stands for standard input."""
    for file in files:
        if str(file) != "-" and not file.exists():
            raise MissingFileError(f"there is no file {file}")


def check_model(model: str | Path) -> None:
    """Raise an error if this is neither the name of a model nor an existing folder."""
    if not is_named(str(model)):
        folder_of(model)
