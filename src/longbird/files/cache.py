"""The user's cache folder: its folders are complete or absent, and verified before each use."""

from __future__ import annotations

import fcntl
import functools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from longbird.errors import InvalidValueError
from longbird.files.digest import sha256_of

CHECKSUMS = ".checksums.json"
"""File in each folder of the cache with the sha256 of every other file."""


def cache_folder() -> Path:
    """Return $LONGBIRD_CACHE, $XDG_CACHE_HOME/longbird or ~/.cache/longbird.

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
    """Return a folder of the cache, which is filled at its first use and verified at every use.

    The folder appears complete or not at all, even if the process is killed. If several processes
    ask for it at once, one fills it and the others wait. A folder with a missing or modified file
    is filled again; modifications are found by comparing checksums, once per process.

    Args:
        name: Name of the folder; it should change whenever the contents do.
        files: Names of the files that it must contain.
        fill: Function `fill(folder, scratch)` that writes the files into `folder`; `scratch` is
            deleted afterwards.
        megabytes: Size of the download for the line that announces it; None for no line.
        doing: First word of that line.

    Raises:
        OSError: The cache folder cannot be written.
    """
    folder, files = cache_folder() / name, list(files)
    if _flaw(folder, files) is None:
        return folder
    with _locked(folder):
        if (flaw := _flaw(folder, files)) is None:
            return folder
        if flaw:
            _print(f"{flaw}, so {name} is discarded and made again")
        prefix = f"{name}.partial-"
        for killed in folder.parent.glob(f"{prefix}*"):
            shutil.rmtree(killed, ignore_errors=True)
        if megabytes is not None:
            _print(f"{doing} {name} ({megabytes} MB, once) into {folder.parent}")
        with _explaining(folder.parent):
            temporary = tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent)
        with temporary:
            scratch, filled = Path(temporary.name), Path(temporary.name, "filled")
            filled.mkdir()
            fill(filled, scratch)
            _write_checksums(filled)
            if folder.exists():
                shutil.rmtree(folder)
            os.replace(filled, folder)
    return folder


@contextmanager
def suggesting_deletion(folder: Path) -> Generator[None, None, None]:
    """Extend errors that name a file in a folder of the cache by how to replace that folder.

    Raises:
        ValueError: The file cannot be read; any other error is left as it is.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if folder.parent != cache_folder() or str(folder) not in str(error):
            raise
        raise InvalidValueError(f"{error}. Delete {folder}, and it is made again") from error


def _print(line: str) -> None:
    print(f"longbird: {line}", file=sys.stderr, flush=True)


@contextmanager
def _locked(folder: Path) -> Generator[None, None, None]:
    """Hold the lock of a folder, which a killed process releases as well."""
    with _explaining(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = folder.with_name(f"{folder.name}.lock").open("w")
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _explaining(cache: Path) -> Generator[None, None, None]:
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"the cache folder {cache} cannot be written ({error.strerror}): set LONGBIRD_CACHE "
            "in the environment to a folder that can be",
        ) from error


def _flaw(folder: Path, files: Iterable[str]) -> str | None:
    """Return why a folder cannot be used ("" if it does not exist), or None if it can.

    Folders of earlier versions have no checksums yet, which are written at their first use.
    """
    if not folder.is_dir():
        return ""
    if missing := [file for file in files if not (folder / file).is_file()]:
        return f"{folder / missing[0]} is missing"
    try:
        known: dict[str, str] = json.loads((folder / CHECKSUMS).read_text("utf-8"))
        for file, sha256 in known.items():
            status = (folder / file).stat()
            state = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            if _sha256(folder / file, state) != sha256:
                return f"{folder / file} was modified or damaged"
    except FileNotFoundError as error:
        if error.filename != str(folder / CHECKSUMS):
            return f"{error.filename} is missing"
        with suppress(OSError):  # a cache of another user, which may only be read
            _write_checksums(folder)
    except (ValueError, AttributeError):
        return f"{folder / CHECKSUMS} was modified or damaged"
    return None


def _write_checksums(folder: Path) -> None:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    checksums = {
        str(file.relative_to(folder)): sha256_of(file)
        for file in files
        if not file.name.startswith(CHECKSUMS)
    }
    written = folder / f"{CHECKSUMS}.{os.getpid()}"
    written.write_text(json.dumps(checksums), "utf-8")
    os.replace(written, folder / CHECKSUMS)


@functools.cache
def _sha256(file: Path, state: tuple[int, ...]) -> str:  # noqa: ARG001
    """Return the sha256 of a file, computed once for each of its states."""
    return sha256_of(file)
