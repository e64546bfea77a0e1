"""The cache folder of the user, whose folders appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from longbird.errors import InvalidValueError


def cache_folder() -> Path:
    """Where downloads are kept: $LONGBIRD_CACHE, $XDG_CACHE_HOME/longbird or ~/.cache/longbird.

    Examples:
        >>> cache_folder().is_absolute()
        True
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LONGBIRD_CACHE") or Path(caches, "longbird")).absolute()


def cached(
    name: str,
    files: Iterable[str],
    fill: Callable[[Path, Path], None],
    *,
    megabytes: int | None,
    doing: str = "downloading",
) -> Path:
    """The folder of that name in the cache, with those files, filled at its first use.

    It appears with all its files or not at all, also after a kill. Of concurrent calls one fills
    it and the others wait.

    Args:
        name: Of the folder; it should change whenever the contents do.
        files: Names of the files that it holds.
        fill: `fill(folder, scratch)` writes the files into folder; scratch is deleted afterwards.
        megabytes: Size of the download, for the line that announces it; None for no line.
        doing: What that line says is done.
    """
    folder, files = cache_folder() / name, list(files)
    if _is_complete(folder, files):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed, by a kill too
        if _is_complete(folder, files):
            return folder
        prefix = f"{name}.partial-"
        for killed in folder.parent.glob(f"{prefix}*"):
            shutil.rmtree(killed, ignore_errors=True)
        if megabytes is not None:
            line = f"longbird: {doing} {name} ({megabytes} MB, once) into {folder.parent}"
            print(line, file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as temporary:
            scratch, filled = Path(temporary), Path(temporary, "filled")
            filled.mkdir()
            fill(filled, scratch)
            if folder.exists():  # someone deleted a part of it
                shutil.rmtree(folder)
            os.replace(filled, folder)
    return folder


@contextmanager
def mending(folder: Path) -> Generator[None, None, None]:
    """An error that names a file in a folder of the cache says how to get a whole one.

    Raises:
        ValueError: The file cannot be read; any other error is as it was.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if folder.parent != cache_folder() or str(folder) not in str(error):
            raise
        raise InvalidValueError(f"{error}. Delete {folder}, and it is made again") from error


def _is_complete(folder: Path, files: Iterable[str]) -> bool:
    return all((folder / file).is_file() for file in files)
