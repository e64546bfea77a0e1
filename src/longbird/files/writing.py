"""Atomic writing of folders and files: completely or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from longbird.errors import ExistingFileError

WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?")


@contextmanager
def writing_folder(path: str | os.PathLike[str]) -> Generator[Path, None, None]:
    """Provide an empty folder to write into, whose files then move into the folder at `path`.

    If writing fails, for example on a full disk, that folder remains as it was, or does not exist.
    New weights replace all existing weights, since the wrong ones could be loaded otherwise.

    Raises:
        OSError: The folder could not be written; the message says that nothing partial is left.
    """
    folder = Path(path)
    if os.path.exists(folder) and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file; expected a folder, or a name for a new one")
    made = _make(folder)
    try:
        with _telling(folder):
            # Inside the folder, so that files can be moved: its parent may be on another disk.
            scratch = tempfile.TemporaryDirectory(prefix=".writing-", dir=folder)
        with scratch as name:
            with _telling(folder):
                yield Path(name)
            _move(Path(name), folder)
    except BaseException:
        _remove(made)
        raise


@contextmanager
def writing_file(path: Path) -> Generator[Path, None, None]:
    """Provide a file to write, which then moves to `path`."""
    made = _make(path.parent)
    try:
        with (
            _telling(path),
            tempfile.TemporaryDirectory(prefix=".writing-", dir=path.parent) as scratch,
        ):
            yield Path(scratch, path.name)
            os.replace(Path(scratch, path.name), path)
    except BaseException:
        _remove(made)
        raise


@contextmanager
def writing_files(paths: Sequence[Path]) -> Generator[list[Path], None, None]:
    """Provide files of one folder to write, which then move to `paths` together.

    The last file marks the others as complete: it is deleted before they are replaced, and written
    after them. Files that a killed process left behind are deleted next time.
    """
    folder, last = paths[0].parent, paths[-1]
    made = _make(folder)
    scratch = folder / f".{paths[0].name}.writing"
    try:
        with _telling(paths[0]), _alone_in(scratch, paths[0]):
            yield [scratch / path.name for path in paths]
            last.unlink(missing_ok=True)
            for path in paths:
                os.replace(scratch / path.name, path)
    except BaseException:
        _remove(made)
        raise


@contextmanager
def _alone_in(scratch: Path, path: Path) -> Generator[None, None, None]:
    """Create an empty folder for this process alone, which is deleted in the end.

    Raises:
        FileExistsError: Another process is writing there.
    """
    with locked(scratch, path):
        try:
            for left in scratch.iterdir():  # by a killed process
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            yield
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def locked(scratch: Path, path: Path) -> Generator[None, None, None]:
    """Create a folder if there is none, and lock it against other processes.

    The folder may be deleted while it is locked: a process that waits for it creates it again.

    Args:
        scratch: Folder to lock.
        path: File that is written there, for the message.

    Raises:
        FileExistsError: Another process is writing there.
    """
    while True:
        scratch.mkdir(parents=True, exist_ok=True)
        lock = os.open(scratch, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until it is closed, also by a kill
            # Another process may have deleted the folder before this one got the lock.
            if os.path.exists(scratch) and os.path.samestat(os.stat(scratch), os.fstat(lock)):
                break
        except BlockingIOError:
            os.close(lock)
            raise FileExistsError(
                errno.EEXIST,
                f"{path} is being written by another process: wait for it, or name another file",
            ) from None
        os.close(lock)
    try:
        yield
    finally:
        os.close(lock)


def check_new(folder: Path) -> None:
    """Raise an error if a folder is neither new nor empty, or cannot be written."""
    there = os.path.isfile(folder) or os.path.islink(folder) or not folder.name
    if there or (os.path.isdir(folder) and any(folder.iterdir())):
        raise ExistingFileError(f"{folder} exists already: name a new folder")
    check_writable(folder)


def check_writable(folder: Path) -> None:
    """Raise an error if a folder cannot be created or written, before anything is written."""
    made = _make(folder)
    try:
        with _telling(folder), tempfile.TemporaryDirectory(prefix=".writing-", dir=folder):
            pass
    finally:
        _remove(made)


def _make(folder: Path) -> list[Path]:
    """Create a folder, and return the folders that did not exist before, innermost first."""
    new = [each for each in (folder, *folder.parents) if not os.path.exists(each)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _remove(new)
        parent = next(each for each in folder.absolute().parents if os.path.exists(each))
        raise OSError(
            error.errno,
            f"the folder {folder} cannot be made in {parent}: {error.strerror}; choose another",
        ) from error
    return new


def _remove(folders: list[Path]) -> None:
    for each in folders:
        if os.path.exists(
            each
        ):  # unlike Path.exists, it does not raise for names that are too long
            each.rmdir()


def _move(scratch: Path, folder: Path) -> None:
    files = sorted(scratch.iterdir(), key=lambda file: file.name == "config.json")  # it comes last
    for file in files:
        if (folder / file.name).is_dir() and not file.is_dir():
            raise IsADirectoryError(
                f"{folder / file.name} is a folder, where a file is to be written; nothing was "
                "written: name another folder"
            )
    names = {file.name for file in files}
    if any(WEIGHTS.fullmatch(name) for name in names):
        for old in folder.iterdir():
            if WEIGHTS.fullmatch(old.name) and old.name not in names:
                old.unlink()
    for file in files:
        if file.is_dir():
            shutil.copytree(file, folder / file.name, dirs_exist_ok=True, copy_function=os.replace)
        else:
            os.replace(file, folder / file.name)


@contextmanager
def _telling(path: Path) -> Generator[None, None, None]:
    """Extend errors of writing by the information that nothing partial is left."""
    try:
        yield
    except FileExistsError:  # its message says what to do
        raise
    except (OSError, SafetensorError) as error:
        # safetensors only has text: "I/O error: No space left on device (os error 28)".
        found = re.search(r"\(os error (\d+)\)", str(error))
        number = getattr(error, "errno", None) or (int(found[1]) if found else errno.EIO)
        reason = os.strerror(number) if found or isinstance(error, OSError) else str(error)
        raise OSError(
            number,
            f"{path} was not written: {reason}. Nothing partial is left, and what was there "
            "before is as it was",
        ) from error
