"""1,872 manual pages of Linux and Perl, each with the line in its section NAME as a summary.

They are those of the Debian packages manpages, manpages-dev (free licences by page: GPL-2+, BSD,
and
that of the Linux man-pages) and perl-doc (Artistic or GPL-1+). Links, and pages that only refer to
another, are left out. The section NAME is not part of the text.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.sources import debian
from experiments.sources.roff import name_line, sections
from longbird.files.sources.packages import cached

NAME = "manual-debian-12"
PACKAGES = (
    ("manpages", "6.03-2", "efa1ba4cd19ad7baeae959c9209a7eb74be2ebb858bcabb412597bfc9f588c91"),
    ("manpages-dev", "6.03-2", "96f55cb5e26231d5567c89b692bced63825a14a2d5bd18fdf16ea2ed44eb9838"),
    (
        "perl-doc",
        "5.36.0-7+deb12u3",
        "e9e3564ff5ade27de0585835f2acad769bcc545c0a0045a9f55d5401f27f7591",
    ),
)
FILE = "pages.jsonl"
PAGE = re.compile(r"usr/share/man/man\d/(?P<name>[^/]+)\.(?P<section>\d\w*)\.gz")


def path() -> Path:
    """Return a file for `longbird finetune summarize --text text --summary summary`.

    Its columns are page (such as open.2), package, names (the subjects of the page), summary (from
    NAME),
    text (all other sections) and description (that section only, possibly empty).
    """
    return cached(NAME, [FILE], _fill, megabytes=11) / FILE


def _fill(folder: Path, scratch: Path) -> None:
    with (folder / FILE).open("w", encoding="utf-8") as file:
        for name, version, sha256 in PACKAGES:
            for row in _rows(name, debian.download(name, version, sha256, scratch)):
                file.write(json.dumps(row) + "\n")


def _rows(name: str, package: Path) -> Iterator[dict[str, Any]]:
    for path, content in sorted(debian.files(package)):
        found = PAGE.fullmatch(path)
        if found is None:
            continue
        page = sections(gzip.decompress(content).decode("utf-8", "replace"))
        named = name_line("\n".join(text for title, text in page if title == "NAME"))
        others = [(title, text) for title, text in page if title != "NAME" and text]
        if named is None or not others:
            continue
        names, summary = named
        yield {
            "page": f"{found['name']}.{found['section']}",
            "package": name,
            "names": names,
            "summary": summary,
            "text": "\n\n".join(f"{title}\n{text}" for title, text in others),
            "description": next((text for title, text in others if title == "DESCRIPTION"), ""),
        }
