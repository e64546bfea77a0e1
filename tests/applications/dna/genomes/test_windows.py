"""Windows over a genome: every base is covered, none twice as often as the step allows."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longbird.applications.dna.genomes import Interval, open_genome, windows
from longbird.applications.dna.genomes.genome import Contig
from longbird.applications.dna.genomes.windows import Windows


def brute(contig: Contig, size: int, step: int) -> list[tuple[int, int]]:
    """Starts, one after the other, until the sequence is covered (all of them on a circle)."""
    if contig.length <= size:
        return [(0, contig.length)]
    found: list[tuple[int, int]] = []
    for start in range(0, contig.length, step):
        if contig.circular:
            found.append((start, start + size))
        else:
            found.append((start, min(start + size, contig.length)))
            if found[-1][1] == contig.length:
                break
    return found


@given(
    st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=4),
    st.integers(1, 20),
    st.data(),
)
def test_windows_cover_every_base(lengths, size, data):
    step = data.draw(st.integers(1, size))
    contigs = [Contig(str(i), length, circular) for i, (length, circular) in enumerate(lengths)]
    made = Windows(contigs, size, step, "+")
    wanted = [
        Interval(contig.name, start, end, "+")
        for contig in contigs
        for start, end in brute(contig, size, step)
    ]
    assert list(made) == wanted
    assert len(made) == len(wanted)
    assert made[-1] == wanted[-1]
    assert made[1:3] == wanted[1:3]
    for contig in contigs:
        mine = [window for window in made if window.name == contig.name]
        covered = {place % contig.length for w in mine for place in range(w.start, w.end)}
        assert covered == set(range(contig.length))
        if contig.circular and contig.length > size:
            assert {len(window) for window in mine} == {size}
    with pytest.raises(IndexError):
        made[len(made)]


def test_windows_of_a_genome(tmp_path: Path):
    (tmp_path / "genome").write_text(">a\nACGTTAC\n>b\nGGGTT\n")
    with open_genome(tmp_path / "genome", circular=["b"], alias={"B": "b"}) as genome:
        bases = [genome.bases(window) for window in windows(genome, 4, 2)]
        assert bases == ["ACGT", "GTTA", "TAC", "GGGT", "GTTG", "TGGG"]
        assert [str(w) for w in windows(genome, 9, names=["B"], strand="-")] == ["b:1-5(-)"]
        for size, step in ((0, None), (4, 0), (4, 5), (-1, 1)):
            with pytest.raises(ValueError, match=f"received size {size}"):
                windows(genome, size, step)
