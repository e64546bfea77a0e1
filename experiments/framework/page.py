"""The parts of a report: numbers as they are printed, and tables in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LARGEST_JSON = 100_000
"""Bytes of the JSON file of a run."""


def digits(value: float) -> str:
    """A number as it is printed: four digits, or all that stand before the point.

    Examples:
        >>> digits(0.44512), digits(107.04), digits(20664.7)
        ('0.4451', '107', '20,665')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def quotient(numerator: float, denominator: float) -> float:
    """The ratio of two numbers as they are printed, to three digits."""
    above, below = (float(digits(x).replace(",", "")) for x in (numerator, denominator))
    return float(f"{above / below:.3g}") if below else float("inf")


@dataclass(frozen=True)
class Sheet:
    """A table with notes below it."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        """A section of a page."""
        lines = [self.heads, ["---"] * len(self.heads), *self.rows]
        table = ["| " + " | ".join(line) + " |" for line in lines]
        notes = ["", *(f"- {note}" for note in self.notes)] if self.notes else []
        return "\n".join([f"## {self.title}", "", *table, *notes]) + "\n"


def write_run(
    folder: Path, name: str, page: str, values: Any, draw: Callable[[Path], None], plain: Any = str
) -> list[Path]:
    """Write the page, the JSON file and the picture of a run; files of the same name are replaced.

    Args:
        folder: Folder to write into.
        name: Name of the files without their endings. The page refers to the picture by it.
        page: The page in Markdown.
        values: Values for the JSON file.
        draw: Draws the picture into a file.
        plain: Converts values that JSON does not have.

    Raises:
        ValueError: The JSON file would be too large.
    """
    text = json.dumps(values, indent=1, default=plain, allow_nan=False)
    # One line for each list of numbers, so that a person can read the file.
    text = re.sub(r"\[[\s\d.,e+-]+\]", lambda found: " ".join(found[0].split()), text) + "\n"
    if len(text) > LARGEST_JSON:
        raise ValueError(f"{name}.json has {len(text):,} bytes, expected at most {LARGEST_JSON:,}")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in ("md", "json", "png")]
    paths[0].write_text(page, "utf-8")
    paths[1].write_text(text, "utf-8")
    draw(paths[2])
    return paths
