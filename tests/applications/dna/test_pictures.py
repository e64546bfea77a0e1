"""What a picture of a stretch shows, read back from the figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import CompoundLocation, SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord
from matplotlib.figure import Figure
from planting import write_fasta

from longbird.applications.dna.genomes import Genome, Interval, open_genome
from longbird.applications.dna.scanning.pictures import (
    BOX,
    EXON,
    LINE,
    Labels,
    Scores,
    draw,
    read_labels,
)

GFF = """##gff-version 3
g\tx\tregion\t1\t400\t.\t+\t.\tID=all
g\tx\tgene\t11\t300\t.\t-\t.\tID=gene
g\tx\texon\t5\t40\t.\t-\t.\tParent=gene
g\tx\tCDS\t11\t40\t.\t-\t0\tID=cds;Parent=gene
g\tx\tCDS\t261\t300\t.\t-\t0\tID=cds;Parent=gene
"""


def shown(labels: Path, genome: Genome, start: int, end: int) -> set[tuple[str, int, int, float]]:
    name = next(iter(genome.sequences))
    return {
        (piece.name, piece.interval.start, piece.interval.end, piece.thickness)
        for piece in read_labels(labels, genome, Interval(name, start, end)).shapes
    }


def test_genes_are_lines_and_exons_are_boxes(tmp_path: Path) -> None:
    """And of what is the whole sequence nothing."""
    genome = open_genome(write_fasta(tmp_path / "g.fa", g="ACGT" * 100))
    labels = tmp_path / "g.gff3"
    labels.write_text(GFF)
    gene, line = ("gene", 10, 300, LINE), ("", 10, 300, LINE)
    assert shown(labels, genome, 0, 400) == {
        gene, line, ("", 4, 40, EXON), ("", 10, 40, BOX), ("", 260, 300, BOX),
    }  # fmt: skip
    assert shown(labels, genome, 35, 50) == {
        gene, line, ("", 4, 40, EXON), ("", 10, 40, BOX),
    }  # fmt: skip
    assert shown(labels, genome, 100, 200) == {gene, line}
    assert shown(labels, genome, 300, 400) == set()
    bed = tmp_path / "g.bed"
    bed.write_text("g\t10\t300\tb\t0\t-\t10\t300\t0\t2\t30,40\t0,250\n")
    assert shown(bed, genome, 0, 50) == {("b", 10, 300, LINE), ("", 10, 40, BOX)}


def test_genes_of_genbank_have_the_name_of_their_locus(tmp_path: Path) -> None:
    record = SeqRecord(Seq("ACGT" * 100), "g", "g", annotations={"molecule_type": "DNA"})
    exons = CompoundLocation([SimpleLocation(10, 40, 1), SimpleLocation(260, 300, 1)])
    for place, kind, locus in (
        (SimpleLocation(10, 300, 1), "gene", "a"),
        (exons, "CDS", "a"),
        (SimpleLocation(320, 340, -1), "gene", "b"),
        (SimpleLocation(320, 340, -1), "tRNA", "b"),
        (SimpleLocation(350, 360, -1), "gene", "alone"),
    ):
        record.features.append(SeqFeature(place, kind, qualifiers={"locus_tag": [locus]}))
    labels = tmp_path / "g.gb"
    SeqIO.write([record], labels, "genbank")
    assert shown(labels, open_genome(labels), 0, 400) == {
        ("a", 10, 300, LINE), ("", 10, 300, LINE), ("", 10, 40, BOX), ("", 260, 300, BOX),
        ("b", 320, 340, LINE), ("", 320, 340, BOX), ("alone", 350, 360, BOX),
    }  # fmt: skip


@pytest.mark.parametrize("bases", [300, 4000, 4001, 9001, 100_003])
def test_long_lines_keep_their_ends_and_peaks(
    bases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    peaks = [0, bases // 3, bases - 1]
    signal = np.zeros(bases)
    signal[peaks] = [3, 5, 7]
    signal[bases // 2 : bases // 2 + 100] = np.nan
    scores = Scores(np.arange(1), np.full(1, bases), np.zeros((1, 1)), ("all",), "all", 0.5)
    region = Interval("g", 0, bases)
    draw(region, bases, scores, [Labels("signal", signal, [])], tmp_path / "g.png")
    [line] = figures[0].axes[0].lines
    places, values = (np.asarray(each) for each in line.get_data())
    joined = -(-bases // 4000)
    assert len(values) == -(-bases // joined)
    assert values[values > 0].tolist() == [3, 5, 7]
    assert np.isnan(values).any()
    assert (places[values > 0] - 1).tolist() == peaks  # as people count, from 1
