"""Loading models and tokenizers from folders."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Generator
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from longbird.errors import InvalidValueError, MissingFileError
from longbird.files.paths import check_path, folder_of


def folder_of_model(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a model, given that folder, a finished run, or a name on the hub.

    Raises:
        FileNotFoundError: The folder does not exist, or is a run that is not finished.
    """
    check_path(path)
    folder = folder_of(path)
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


def load_model(folder: str | Path, wanted: str, **options: Any) -> Any:
    """Load a model for inference.

    Args:
        folder: Folder that `save_pretrained` wrote.
        wanted: Name of the Longbird class that it must have been saved from.
        **options: Options of `from_pretrained`.

    Raises:
        ValueError: It is a model of another class.
    """
    from longbird import models
    from longbird.models.checkpoints.folders import read_config

    config = read_config(folder)
    named = (config.architectures or ["a model without a head"])[0]
    if named != wanted:
        raise InvalidValueError(f"{folder} is {named}, expected {wanted}")
    with quiet():
        return getattr(models, wanted).from_pretrained(folder, **options).eval()


def load_tokenizer(folder: str | Path) -> Any:
    """Load the tokenizer of a folder."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except JSONDecodeError as error:  # which does not name the file
        raise InvalidValueError(
            f"a file of the tokenizer in {folder} is not JSON: {error}"
        ) from error


@contextlib.contextmanager
def quiet() -> Generator[None, None, None]:
    """Hide the progress bar and the report of loading."""
    from transformers.utils import logging as theirs

    log, shown = logging.getLogger("longbird"), theirs.is_progress_bar_enabled()
    before = log.level
    theirs.disable_progress_bar()
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
        if shown:
            theirs.enable_progress_bar()
