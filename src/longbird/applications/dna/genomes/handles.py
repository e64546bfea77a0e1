"""Files that are opened anew in each thread of each process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


class Handles:
    """An open file for whoever asks.

    Readers in C keep their place in a file, which threads would share, and so would processes
    after a fork. It can be pickled if what opens the file can.

    Args:
        opening: Opens the file.
    """

    def __init__(self, opening: Callable[[], Any]) -> None:
        self._opening = opening
        self._local = threading.local()

    def get(self) -> Any:
        """The file, open for this thread."""
        if getattr(self._local, "process", None) != os.getpid():
            self._local.file = self._opening()
            self._local.process = os.getpid()
        return self._local.file

    def close(self) -> None:
        """Closes all of them; who asks again opens it again."""
        self._local = threading.local()

    def __getstate__(self) -> Callable[[], Any]:
        return self._opening

    def __setstate__(self, opening: Callable[[], Any]) -> None:
        self.__init__(opening)
