"""Checksums of files."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256_of(file: Path) -> str:
    """Return the sha256 of a file of any size, in hexadecimal digits."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while piece := opened.read(2**20):
            digest.update(piece)
    return digest.hexdigest()
