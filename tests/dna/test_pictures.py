"""What a picture of a stretch shows, read back from the figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from planting import write_fasta

from longbird.dna.pictures import Known, Scores, draw, known
from longbird.genomes import Interval, open_genome

GFF = """##gff-version 3
g\tx\tregion\t1\t400\t.\t+\t.\tID=all
g\tx\tgene\t11\t300\t.\t-\t.\tID=gene
g\tx\tCDS\t11\t40\t.\t-\t0\tID=cds;Parent=gene
g\tx\tCDS\t261\t300\t.\t-\t0\tID=cds;Parent=gene
"""


def test_parts_in_the_stretch_are_shown(tmp_path: Path) -> None:
    """Of a gene with an intron only the exons; of what is the whole sequence nothing."""
    genome = open_genome(write_fasta(tmp_path / "g.fa", g="ACGT" * 100))
    labels = tmp_path / "g.gff3"
    labels.write_text(GFF)
    shown = {
        region: sorted((each.id, part.start, part.end, part.strand) for each, part in its.features)
        for region in ((0, 400), (35, 50), (100, 200))
        for its in [known(labels, genome, Interval("g", *region))]
    }
    assert shown == {
        (0, 400): [("cds", 10, 40, "-"), ("cds", 260, 300, "-"), ("gene", 10, 300, "-")],
        (35, 50): [("cds", 10, 40, "-"), ("gene", 10, 300, "-")],
        (100, 200): [("gene", 10, 300, "-")],
    }


@pytest.mark.parametrize("bases", [300, 4000, 4001, 9001, 100_003])
def test_long_lines_keep_their_ends_and_peaks(
    bases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Any] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    peaks = [0, bases // 3, bases - 1]
    signal = np.zeros(bases)
    signal[peaks] = [3, 5, 7]
    scores = Scores(np.arange(1), np.full(1, bases), np.zeros((1, 1)), ("all",), "all", 0.5)
    region = Interval("g", 0, bases)
    draw(region, bases, scores, [Known("signal", signal, [])], tmp_path / "g.png")
    [line] = figures[0].axes[0].lines
    places, values = (np.asarray(each) for each in line.get_data())
    joined = -(-bases // 4000)
    assert len(values) == -(-bases // joined)
    assert values[values > 0].tolist() == [3, 5, 7]
    for wanted, found in zip(peaks, places[values > 0], strict=True):
        assert found - 1 <= wanted < found - 1 + joined
