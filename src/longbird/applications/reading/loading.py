"""Loading tokenizers from folders, and models without messages."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from longbird.errors import InvalidValueError


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
