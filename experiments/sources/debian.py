"""Packages of Debian, pinned by sha256, downloaded from the sources of the user's apt.

Nothing is installed, and no root permissions are needed.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

from longbird.errors import UnsupportedError
from longbird.files.sources.packages import cache_folder, check_sha256, run_in_new

HEADER = 60
"""Bytes before each member of an `ar` archive: name 16, dates and owners 32, size 10, end 2."""


def download(name: str, version: str, sha256: str, scratch: Path) -> Path:
    """Download the file of a package with `apt-get download`.

    Raises:
        RuntimeError: There is no apt-get, it does not know this version, or the file has another
            checksum.
    """
    apt_get = shutil.which("apt-get")
    if apt_get is None:
        raise UnsupportedError(
            f"{name} {version} is a package of Debian, and there is no apt-get on the path. Run "
            f"this on Debian, or copy {cache_folder()} from a machine that has the data."
        )
    folder = scratch / name
    done = run_in_new(folder, [apt_get, "download", "-q", f"{name}={version}"])
    packages = list(folder.glob("*.deb"))
    if done.returncode or len(packages) != 1:
        raise UnsupportedError(
            f"apt-get could not download {name} {version}, which is that of Debian 12. Try "
            "`apt-get update` first; other releases have other versions, whose texts differ: then "
            f"copy {cache_folder()} from a machine that has the data. apt-get said:\n"
            f"{done.stderr.strip()}"
        )
    return check_sha256(packages[0], sha256, "apt-cache policy")


def files(package: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the regular files of a package, without links.

    Nothing is written, so that no name in the package decides where a file goes.

    Raises:
        RuntimeError: It is not a package of Debian, or its compression is not supported.
    """
    data = next((each for each in _members(package) if each[0].startswith("data.tar")), None)
    if data is None:
        raise UnsupportedError(f"{package.name} is not a package of Debian: it has no data.tar")
    try:
        archive = tarfile.open(fileobj=io.BytesIO(data[1]))  # noqa: SIM115
    except tarfile.ReadError as error:
        raise UnsupportedError(
            f"{package.name} has a {data[0]} that cannot be read: {error}"
        ) from error
    with archive:
        for member in archive:
            if member.isfile() and (file := archive.extractfile(member)) is not None:
                yield member.name.removeprefix("./"), file.read()


def _members(package: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of an `ar` archive, which is the format of a package."""
    content = package.read_bytes()
    if not content.startswith(b"!<arch>\n"):
        raise UnsupportedError(f"{package.name} is not a package of Debian: it is no ar archive")
    at = 8
    while at + HEADER <= len(content):
        header, begin = content[at : at + HEADER], at + HEADER
        size = int(header[48:58])
        yield header[:16].decode("ascii").strip().rstrip("/"), content[begin : begin + size]
        at = begin + size + size % 2  # members begin at even places
