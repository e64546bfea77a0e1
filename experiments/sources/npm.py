"""Packages of npm, pinned by sha256, from the registry that the user's npm is configured with."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from longbird.errors import UnsupportedError
from longbird.files.sources.packages import cache_folder, check_sha256, run_in_new


def download(name: str, version: str, sha256: str, scratch: Path) -> Path:
    """The archive of a package, by `npm pack`, which runs nothing that is in it.

    Raises:
        RuntimeError: There is no npm, the registry does not give the package, or the archive is
            not the one expected.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise UnsupportedError(
            f"{name} {version} is a package of npm, and there is no npm on the path. Install "
            f"Node.js, which brings it, or copy {cache_folder()} from a machine that has the data."
        )
    folder = scratch / name
    done = run_in_new(folder, [npm, "pack", "--ignore-scripts", f"{name}@{version}"])
    archives = list(folder.glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        raise UnsupportedError(
            f"npm could not download {name} {version}. Check the network and the registry (`npm "
            f"config get registry`), or copy {cache_folder()} from a machine that has it. npm "
            f"said:\n{done.stderr.strip()}"
        )
    return check_sha256(archives[0], sha256, "npm config get registry")


def member(archive: Path, name: str) -> bytes:
    """The content of one file of a package; no name in the archive decides where a file goes."""
    with tarfile.open(archive, "r:gz") as opened:
        file = opened.extractfile(name) if name in opened.getnames() else None
        if file is None:
            raise UnsupportedError(f"{archive.name} has no file {name}, only {opened.getnames()}")
        return file.read()
