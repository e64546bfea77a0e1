"""The package stays small: lines of each room, and of each file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORD = (ROOT / "docs" / "adr" / "0016-package-tree.md").read_text()
ROOMS = re.findall(r"^\| `([\w/]+)` \| [\d,]+ \| ([\d,]+) \|$", RECORD, re.MULTILINE)

LONGEST = 450


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_files_are_short() -> None:
    package = ROOT / "src" / "longbird"
    found = {
        str(path.relative_to(package)) for path in package.rglob("*.py") if lines(path) > LONGEST
    }
    found |= {str(path) for path in (ROOT / "experiments").rglob("*.py") if lines(path) > LONGEST}
    assert not found, f"more than {LONGEST} lines: divide by subject, or simplify"


@pytest.mark.parametrize(("room", "most"), ROOMS)
def test_rooms_are_no_larger_than_recorded(room: str, most: str) -> None:
    folder = ROOT / room
    count = sum(lines(path) for path in folder.rglob("*.py*") if path.suffix in (".py", ".pyi"))
    assert count <= int(most.replace(",", "")), "simplify, or record a new limit and the reason"


def test_every_room_is_recorded() -> None:
    package = ROOT / "src" / "longbird"
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    recorded = {Path(room).name for room, _ in ROOMS if len(Path(room).parts) <= 3}
    assert recorded == rooms | {"longbird", "experiments"}
