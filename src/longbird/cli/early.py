"""What is wrong with names of files and models is said before seconds of imports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from longbird.errors import MissingFileError
from longbird.files.paths import folder_of
from longbird.files.sources import is_named


def check_files(files: Iterable[Path] | None) -> None:
    """Raises if one of the files to read is not there, or of a kind that is not read."""
    from longbird.applications.training.files import (
        find_files,  # says what is missing without the extra `train`
    )

    if files:
        find_files(files)


def check_trained(model: str, files: Iterable[Path]) -> None:
    """The same, and for the folder of a run or of a model."""
    check_model(model)
    check_files(files)


def check_there(files: Iterable[Path]) -> None:
    """Raises if one of the files or folders is not there; "-" is stdin."""
    for file in files:
        if str(file) != "-" and not file.exists():
            raise MissingFileError(f"there is no file {file}")


def check_model(model: str | Path) -> None:
    """Raises if there is no model of this name, nor such a folder."""
    if not is_named(str(model)):
        folder_of(model)
