"""Models and tokenizers of folders, with no more of transformers than that takes."""

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
    """The folder of a model: one of its own, that of a finished run, or one of the hub.

    Raises:
        FileNotFoundError: There is no such folder, or a run that is not finished.
    """
    check_path(path)
    folder = folder_of(path)
    if not (folder / "run.toml").is_file():
        return folder
    if not (folder / "result.json").is_file():
        raise MissingFileError(
            f"{folder} is a run that is not finished: the same command that began it goes on"
        )
    if not (folder / "model" / "config.json").is_file():
        raise MissingFileError(
            f"{folder} is a finished run without the model that it had in {folder / 'model'}: "
            "train it again, in another folder"
        )
    return folder / "model"


def load_model(folder: str | Path, wanted: str, **options: Any) -> Any:
    """The model of a folder, to read with.

    Args:
        folder: As `save_pretrained` writes it.
        wanted: The name of our class that it must have been saved from.
        options: For `from_pretrained`.

    Raises:
        ValueError: It is a model of another kind.
    """
    from longbird import models
    from longbird.models.checkpoints.configs import read_config

    config = read_config(folder)
    named = (config.architectures or ["a model without a head"])[0]
    if named != wanted:
        raise InvalidValueError(f"{folder} is {named}, expected {wanted}")
    with quiet():
        return getattr(models, wanted).from_pretrained(folder, **options).eval()


def load_tokenizer(folder: str | Path) -> Any:
    """The tokenizer of a folder."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except JSONDecodeError as error:  # which does not say of which file
        raise InvalidValueError(
            f"a file of the tokenizer in {folder} is not JSON: {error}"
        ) from error


@contextlib.contextmanager
def quiet() -> Generator[None, None, None]:
    """Without the bar of loading, which takes a moment, and the report of what was loaded."""
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
