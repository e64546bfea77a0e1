"""2,289 software licences, from one line to a book, with their categories.

They are the texts of ScanCode's database (CC BY 4.0) without the header, which contains the
category.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from longbird.files.sources.packages import cached, download

NAME = "licensedcode-data-32.1.0"
SHA256 = "18f60bde6dbabbc0a925d45ed80089cdbb7168156a2a1c118737198f9b743b96"
FILE = "licences.jsonl"


def path() -> Path:
    """Return a file for `longbird finetune classify` with the columns name, text and label."""
    return cached(NAME, [FILE], _fill, megabytes=27) / FILE


def _fill(folder: Path, scratch: Path) -> None:
    wheel = download("licensedcode-data", "32.1.0", SHA256, scratch)
    with (folder / FILE).open("w", encoding="utf-8") as file:
        for row in _rows(wheel):
            file.write(json.dumps(row) + "\n")


def _rows(wheel: Path) -> Iterator[dict[str, str]]:
    with zipfile.ZipFile(wheel) as archive:
        for member in sorted(archive.namelist()):
            if not member.startswith("licensedcode/data/licenses/"):
                continue
            content = archive.read(member).decode("utf-8")
            _, header, text = re.split("^---$", content, maxsplit=2, flags=re.MULTILINE)
            fields = dict(line.split(": ", 1) for line in header.splitlines() if ": " in line)
            if text.strip():
                yield {"name": fields["key"], "text": text.strip(), "label": fields["category"]}
