"""Is there room for a model, in memory and on the disk? Asked before anything is allocated."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from longbird.core.machine import available_bytes, in_words
from longbird.errors import InvalidValueError


def check_room(out: Path, model: Any, source: int) -> None:
    """Raises if a model does not fit.

    Args:
        out: Where it is to be written.
        model: Of the size in question; on `meta` it has none itself.
        source: Bytes of the model that it is made of, which is in memory beside it.

    Raises:
        ValueError: The message has the sizes.
    """
    stored = sum(x.numel() for x in model.parameters()) * 4
    needed = 2 * stored + source  # written, and read back to be compared
    folder = next(each for each in (out, *out.absolute().parents) if each.exists())
    for need, there, where in (
        (needed, available_bytes(), "of memory"),
        (stored, shutil.disk_usage(folder).free, f"on the disk of {folder}"),
    ):
        if need > there:
            raise InvalidValueError(
                f"the new model has {in_words(stored)}, and making it takes {in_words(need)} "
                f"{where}, where {in_words(there)} are free; choose a shorter length (--length)"
            )
