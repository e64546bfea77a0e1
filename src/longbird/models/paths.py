"""Where a model is read from or written to, as the caller names it."""

from __future__ import annotations

import os
from typing import Any


def check_path(path: Any, expected: str = "a folder, or the name of a model on the hub") -> None:
    """Raises for what cannot be a path: None would be looked for on the hub, as "None".

    Args:
        path: What the caller gave.
        expected: In words, for the message.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected the path of {expected}; received {path!r:.80}")
    if not str(path).strip():
        raise ValueError(f"expected the path of {expected}; received the empty text {path!r:.80}")
