"""Files that are opened separately in each thread of each process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


class Handles:
    """An open file for each thread of each process, since readers in C keep a position in it."""

    def __init__(self, opening: Callable[[], Any]) -> None:
        self._opening = opening
        self._local = threading.local()

    def get(self) -> Any:
        """Return the file that is open for this thread."""
        if getattr(self._local, "process", None) != os.getpid():
            self._local.file = self._opening()
            self._local.process = os.getpid()
        return self._local.file

    def close(self) -> None:
        """Close all files; `get` opens them again."""
        self._local = threading.local()

    def __getstate__(self) -> Callable[[], Any]:
        return self._opening

    def __setstate__(self, opening: Callable[[], Any]) -> None:
        self.__init__(opening)
