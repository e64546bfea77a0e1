"""Names of sequences: aliases, and what is proposed where they differ."""

from pathlib import Path

import pytest

from longbird.applications.dna.genomes import Interval, open_genome, read_features
from longbird.applications.dna.genomes.names import Names, propose


@pytest.mark.parametrize(
    ("name", "others", "wanted"),
    [
        ("U00096", ["U00096.3"], "U00096.3"),
        ("U00096.3", ["U00096.2", "U00097.3"], "U00096.2"),
        ("JAGU01", ["NZ_JAGU01.1", "NZ_JAGU02.1"], "NZ_JAGU01.1"),
        ("1", ["chr1", "chr10", "chr11"], "chr1"),
        ("chr1", ["1", "10"], "1"),
        ("Chr01", ["chr1", "chr10"], "chr1"),
        ("chrM", ["MT", "1"], "MT"),
        ("chrXIV", ["14", "4", "X"], "14"),
        ("chrX", ["X", "Y", "1"], "X"),
        ("chrIV", ["IV", "V"], "IV"),
        ("gi|556503834|ref|NC_000913.3|", ["NC_000913.3", "plasmid"], "NC_000913.3"),
        ("chr1", ["2", "3"], None),
        ("a", ["a.1", "a.2"], None),
    ],
)  # fmt: skip
@pytest.mark.fast_cases(13)
def test_proposals(name: str, others: list[str], wanted: str | None):
    assert propose(name, dict.fromkeys(others, 5)) == wanted


def test_proposals_by_length_and_by_being_alone():
    assert propose("NC_1", {"a": 5, "b": 6}, 6) == "b"
    assert propose("NC_1", {"a": 6, "b": 6}, 6) is None
    assert propose("NC_1", {"a": 5}) is None
    assert propose("NC_1", {"a": 5}, alone=True) == "a"


def test_match():
    names, told = Names("g.fa", {"chr1": 9, "chr2": 9, "chrM": 9}, {"one": "chr1"}), []
    matched = names.match("x.bed", ["one", "chr2", "scaffold7"], None, told.append)
    assert matched == {"one": "chr1", "chr2": "chr2"}
    assert told == ["x.bed: skipped labels on scaffold7, which g.fa does not have"]
    # An unknown name that is likely one of the others is no reason to leave labels out.
    with pytest.raises(ValueError, match=r"x\.bed has labels on MT.*alias=\{'MT': 'chrM'\}"):
        names.match("x.bed", ["chr1", "MT"], None, told.append)
    assert names.match("x.bed", ["chr1", "MT"], {"MT": "chrM"}, told.append)["MT"] == "chrM"
    with pytest.raises(
        ValueError, match=r"labels on contig9.*has chr1, chr2, chrM\. Use the names"
    ):
        names.match("x.bed", ["contig9"], None, told.append)
    with pytest.raises(
        ValueError, match=r"alias leads to chr7, which g\.fa does not have; it has"
    ):
        names.match("x.bed", ["chr1"], {"seven": "chr7"}, told.append)
    many = Names("g.fa", {f"c{i}.1": 9 for i in range(20)}, None)
    with pytest.raises(ValueError, match=r"c4 and 15 others, .*--alias c4=c4\.1 and so on \(in"):
        many.match("x.bed", [f"c{i}" for i in range(20)], None, told.append)


def test_an_alias_in_a_file(tmp_path: Path):
    (tmp_path / "g.fa").write_text(">NC_1.1\nACGT\n>NC_2.1\nGGCC\n")
    (tmp_path / "alias.tsv").write_text("# theirs\tours\none\tNC_1.1\textra\r\n\ntwo\tNC_2.1\n")
    (tmp_path / "x.bed").write_text("two\t0\t2\none\t1\t3\n")
    genome = open_genome(tmp_path / "g.fa", alias=tmp_path / "alias.tsv")
    assert genome.bases(Interval("two", 1, 3)) == "GC"
    two, one = read_features(tmp_path / "x.bed", genome)
    assert (two.bases(genome), one.bases(genome)) == ("GG", "CG")
    assert (two.interval.name, one.interval.name) == ("NC_2.1", "NC_1.1")
    plain = open_genome(tmp_path / "g.fa")
    assert read_features(tmp_path / "x.bed", plain, alias=tmp_path / "alias.tsv") == [two, one]
    (tmp_path / "alias.tsv").write_text("one NC_1.1\n")
    with pytest.raises(ValueError, match=r"alias\.tsv, line 1: expected an alias, a tab"):
        open_genome(tmp_path / "g.fa", alias=tmp_path / "alias.tsv")
