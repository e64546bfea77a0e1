"""Where every format says that something is, base by base and on both strands."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from planting import other_strand, planted, write_fasta

from longbird.applications.dna.coding import Coding
from longbird.applications.dna.genomes import Contig, Interval, open_genome, read_features
from longbird.applications.dna.promoters import Promoters
from longbird.applications.dna.runs import finetune
from longbird.applications.dna.scanning import formats, genome_scan, resume, scan
from longbird.applications.dna.scanning.calls import CallSettings, calls
from longbird.applications.dna.scanning.pictures import picture_path
from longbird.applications.dna.scanning.track import Track
from longbird.applications.dna.sweeps import Tiles

QUIET: dict[str, Any] = {"say": lambda _: None}
UNMERGED: dict[str, Any] = {"smoothing": 0, "merge_gap": 0, "minimum_length": 0}
UP, DOWN, WORD = 12, 6, "GAT"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs that have learned nothing: what they say is put into their mouths below."""
    folder = tmp_path_factory.mktemp("runs")
    genome = planted(folder, 1500)
    genes = folder / "genes.gff3"
    genes.write_text(
        "##gff-version 3\n"
        + "".join(
            f"chrA\tx\tCDS\t{at}\t{at + 30}\t.\t+\t0\tID=a{at}\n" for at in range(9, 1400, 90)
        )
        + "".join(
            f"chrA\tx\tCDS\t{at}\t{at + 30}\t.\t-\t0\tID=b{at}\n" for at in range(50, 1400, 90)
        )
    )
    options: dict[str, Any] = {"steps": 1, "tokens_per_batch": 512, **QUIET}
    finetune(
        "promoter", genome.genome, [genome.labels], folder / "promoter",
        upstream=UP, downstream=DOWN, **options,
    )  # fmt: skip
    finetune("coding", genome.genome, [genes], folder / "coding", length=34, **options)
    return {each: folder / each for each in ("promoter", "coding")}


def says_words(self: Any, model: Any, windows: list[str]) -> list[np.ndarray]:
    """A promoter starts where the word does."""
    return [np.array(0.9 if each[UP : UP + len(WORD)] == WORD else 0.1) for each in windows]


def says_letters(self: Any, model: Any, windows: list[str]) -> list[np.ndarray]:
    """On plus A is coding, and so is, on minus, what is A there."""
    return [
        np.array([[0.9 if x == "A" else 0.1, 0.9 if x == "T" else 0.1] for x in each], np.float32)
        for each in windows
    ]


def read_lines(file: Path) -> list[list[str]]:
    return [
        line.split("\t")
        for line in file.read_text().splitlines()
        if not line.startswith(("#", "track"))
    ]


def along(file: Path, lengths: dict[str, int]) -> dict[str, np.ndarray]:
    """The numbers of bedGraph or bigWig at each base, by reading them as their makers do."""
    import pyBigWig

    found = {name: np.full(length, np.nan) for name, length in lengths.items()}
    if file.suffix == ".bw":
        opened = pyBigWig.open(str(file))
        rows = [(name, *each) for name in lengths for each in opened.intervals(name) or ()]
    else:
        rows = [(a, int(b), int(c), float(x)) for a, b, c, x in read_lines(file)]
    for name, start, end, value in rows:
        assert np.isnan(found[name][start:end]).all()  # nothing twice
        found[name][start:end] = value
    return found


@pytest.mark.parametrize("circular", [None, ("c",)])
def test_promoters_start_at_their_base(
    runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    circular: Any,
) -> None:
    monkeypatch.setattr(Promoters, "scored", says_words)
    draw = random.Random(1)
    sequences = {
        name: "".join(draw.choices("ACGT", k=size)) for name, size in (("c", 701), ("d", 90))
    }
    sequences["c"] = WORD[1:] + sequences["c"][3:] + WORD[:1]  # one lies over the origin
    genome = write_fasta(tmp_path / "g.fa", **sequences)
    wanted: set[tuple[str, int, str]] = set()
    for name, bases in sequences.items():
        around = bases + bases[:2] if circular and name in circular else bases
        size = len(bases)
        for at in range(len(around) - 2):
            if around[at : at + 3] == WORD:
                wanted.add((name, at % size, "+"))
            if other_strand(around[at : at + 3]) == WORD:
                wanted.add((name, (at + 2) % size, "-"))
    assert {strand for _, _, strand in wanted} == {"+", "-"}
    assert len(wanted) > 15
    assert (("c", 700, "+") in wanted) == bool(circular)
    options: dict[str, Any] = {"step": 1, "circular": circular, **QUIET}
    for ending in ("bed", "gff3", "bw", "bedgraph", "parquet"):
        scan(runs["promoter"], genome, tmp_path / f"s.{ending}", **options)
    bed = read_lines(tmp_path / "s.bed")
    # Neighbours that both reach the threshold are one stretch, and the word cannot overlap itself.
    assert {(x[0], int(x[1]), x[5]) for x in bed} == wanted
    assert all(int(x[2]) == int(x[1]) + 1 and x[4] == "900" for x in bed)
    gff = read_lines(tmp_path / "s.gff3")
    assert {(x[0], int(x[3]) - 1, x[6]) for x in gff} == wanted
    assert all(x[3] == x[4] for x in gff)
    lengths = {name: len(bases) for name, bases in sequences.items()}
    table = pq.read_table(tmp_path / "s.parquet").to_pydict()
    for name, size in lengths.items():
        starts = {at for own, at, _ in wanted if own == name}
        for ending in ("bw", "bedgraph"):
            values = along(tmp_path / f"s.{ending}", lengths)[name]
            assert set(np.flatnonzero(values > 0.5).tolist()) == starts
            assert not np.isnan(values).any()
            assert len(values) == size
        for strand in "+-":
            over = {
                start
                for own, start, x in zip(
                    table["sequence"], table["start"], table[f"promoter {strand}"], strict=True
                )
                if own == name and x > 0.5
            }
            assert over == {at for own, at, its in wanted if own == name and its == strand}


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("circular", [None, ("all",)])
def test_every_base_is_coding_on_its_strand(
    runs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    circular: Any,
    both: bool,
) -> None:
    monkeypatch.setattr(Coding, "scored", says_letters)
    draw = random.Random(2)
    sequences = {
        f"s{size}": "".join(draw.choices("ACGT", k=size)) for size in (1, 31, 32, 33, 257)
    }
    genome = write_fasta(tmp_path / "g.fa", **sequences)
    lengths = {name: len(bases) for name, bases in sequences.items()}
    options: dict[str, Any] = {"circular": circular, "both_strands": both, **UNMERGED, **QUIET}
    for ending in ("bed", "gff3", "parquet"):
        scan(runs["coding"], genome, tmp_path / f"s.{ending}", **options)
    for strand in "+-":
        for ending in ("bw", "bedgraph"):
            scan(runs["coding"], genome, tmp_path / f"s{strand}.{ending}", track=strand, **options)
    table = pq.read_table(tmp_path / "s.parquet").to_pydict()
    for name, bases in sequences.items():
        for strand, letter in (("+", "A"), ("-", "T")):
            wanted = [0.9 if x == letter else 0.1 for x in bases]
            column = zip(table["sequence"], table[f"coding {strand}"], strict=True)
            values = [x for own, x in column if own == name]
            np.testing.assert_allclose(values, wanted, atol=1e-6)
            for ending in ("bw", "bedgraph"):
                found = along(tmp_path / f"s{strand}.{ending}", lengths)[name]
                np.testing.assert_allclose(found, wanted, atol=1e-4)
            for file, first, at in (("s.bed", 1, 5), ("s.gff3", 3, 6)):
                covered = np.zeros(len(bases), bool)
                for row in read_lines(tmp_path / file):
                    if row[0] == name and row[at] == strand:
                        start = int(row[first]) - (first == 3)
                        covered[start : int(row[first + 1])] = True
                assert covered.tolist() == [x == letter for x in bases]


@pytest.mark.parametrize("circular", [None, ("all",)])
def test_neighbours_of_a_base_go_round_a_circle_of_any_size(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, circular: Any
) -> None:
    """A model that says of each base whether there is an A before it, and one after it."""

    def scored(self: Any, model: Any, windows: list[str]) -> list[np.ndarray]:
        return [
            np.array([[a == "A", b == "A"] for a, b in zip("." + x, x[1:] + ".", strict=False)])
            for x in windows
        ]

    monkeypatch.setattr(Coding, "scored", scored)
    draw = random.Random(3)
    sequences = {
        f"s{size}": "A" + "".join(draw.choices("ACGT", k=size - 2)) + "A"
        for size in (2, 5, 16, 17, 20, 31, 32, 33, 200)  # a window has 32
    }
    genome = write_fasta(tmp_path / "g.fa", **sequences)
    scan(runs["coding"], genome, tmp_path / "s.parquet", circular=circular, **QUIET)
    table = pq.read_table(tmp_path / "s.parquet").to_pydict()
    for name, bases in sequences.items():
        around = f"{bases[-1]}{bases}{bases[0]}" if circular else f".{bases}."
        for strand, off in (("+", 0), ("-", 2)):
            column = zip(table["sequence"], table[f"coding {strand}"], strict=True)
            found = [bool(x) for own, x in column if own == name]
            assert found == [around[at + off] == "A" for at in range(len(bases))], name


@pytest.mark.parametrize("label", ["promoter", "coding"])
def test_stretches_are_found_across_blocks(
    label: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a loop over all bins; blocks are small, so that stretches go over several."""
    whole = Track.smoothed_blocks
    monkeypatch.setattr(Track, "smoothed_blocks", lambda self, width: whole(self, width, 7))
    draw = np.random.default_rng(0)
    contigs = [Contig("a", 311), Contig("b", 5), Contig("c", 64)]
    scores = draw.random((380, 2)).astype(np.float32)
    scores[40:100, 0] = 0.7  # longer than any block
    scores[305:313] = 0.8  # up to the end of one sequence, and on with the next
    scores[draw.random((380, 2)) < 0.05] = np.nan
    sweeps = [Tiles(each, 64, 1, 2) for each in contigs]
    genome: Any = None
    track = Track(genome, sweeps, scores, ("+", "-"), label, 0.4)
    wanted: list[Any] = []
    first = 0
    for contig in contigs:
        own: list[Any] = []
        for channel in (0, 1):
            run: list[tuple[float, int]] = []
            for at in range(contig.length + 1):
                score = scores[first + at, channel] if at < contig.length else np.nan
                if score >= np.float32(0.4):
                    run.append((float(score), at))
                elif run:
                    if label == "promoter":
                        best, place = max(run, key=lambda each: each[0])
                        own.append((contig.name, place, place + 1, channel, best))
                    else:
                        mean = float(np.mean([x for x, _ in run]))
                        own.append((contig.name, run[0][1], run[-1][1] + 1, channel, mean))
                    run = []
        wanted += sorted(own, key=lambda each: (each[1], each[3]))
        first += contig.length
    found = list(calls(track, CallSettings(peaks=label == "promoter")))
    places = [(each.name, each.start, each.end, each.channel) for each in found]
    assert places == [each[:4] for each in wanted]
    np.testing.assert_allclose([x.score for x in found], [x[4] for x in wanted], atol=1e-6)


@pytest.mark.slow  # nine scans, each with a picture
def test_a_scan_goes_on_wherever_it_was_stopped(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill leaves at any moment: nothing, a part, all scores, the picture, the file."""
    genome = planted(tmp_path, 1500).genome
    options: dict[str, Any] = {"step": 3, "plot": "chrA:1-300", **QUIET}
    whole = tmp_path / "whole.gff3"
    scan(runs["promoter"], genome, whole, picture=tmp_path / "whole.png", **options)

    def killed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    left = iter([resume.score_chunk, killed])
    moments: dict[str, Any] = {
        "open_genome_of": (genome_scan, killed),
        "score_chunk": (resume, lambda *words: next(left)(*words)),
        "draw": (genome_scan, killed),
        "os": (resume, SimpleNamespace(replace=killed, fsync=os.fsync)),
        "shutil": (resume, SimpleNamespace(rmtree=killed)),
    }
    for name, (module, instead) in moments.items():
        out, picture = tmp_path / f"{name}.gff3", tmp_path / f"{name}.png"
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(module, name, instead)
            scan(runs["promoter"], genome, out, picture=picture, **options)
        assert out.exists() == (name == "shutil")
        assert picture.exists() == (name in ("os", "shutil"))
        scan(runs["promoter"], genome, out, picture=picture, **options)
        assert out.read_bytes() == whole.read_bytes()
        assert picture.exists()
        assert not (tmp_path / f".{out.name}.scan").exists()


def test_what_was_there_before_is_not_overwritten(runs: dict[str, Path], tmp_path: Path) -> None:
    """A scan that was stopped knows which files it made itself."""
    genome = planted(tmp_path, 600).genome
    out = tmp_path / "s.bed"
    folder = tmp_path / ".s.bed.scan"
    folder.mkdir()
    (folder / "scan.json").write_text(json.dumps({"another": "scan"}))
    (folder / "new.json").write_text(json.dumps([str(out)]))
    out.write_text("mine\n")
    with pytest.raises(FileExistsError, match="set `force`"):
        scan(runs["promoter"], genome, out, step=9, **QUIET)
    assert out.read_text() == "mine\n"
    scan(runs["promoter"], genome, out, step=9, force=True, **QUIET)
    assert out.read_text().startswith("track")
    assert not folder.exists()


@pytest.mark.parametrize("out", [True, False])
def test_what_cannot_be_drawn_is_said_before_the_scan(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: bool
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("scored")

    monkeypatch.setattr(Promoters, "scored", never)
    genome = planted(tmp_path, 600).genome
    labels = tmp_path / "bad.bed"
    labels.write_text("chrZ\t5\t9\tp\t0\t+\n")
    options: dict[str, Any] = {"plot": "chrA:1-300", "step": 9, **QUIET}
    file = tmp_path / "new" / "s.bed" if out else None
    with pytest.raises(ValueError, match="labels on chrZ"):
        scan(runs["promoter"], genome, file, labels=[labels], **options)
    told = r"s\.txt' to write a picture to, expected a name that ends in \.png"
    with pytest.raises(ValueError, match=told):
        scan(runs["promoter"], genome, file, picture=tmp_path / "s.txt", **options)
    with pytest.raises(ValueError, match=r"`track` is for \.bedgraph and \.bw"):
        scan(runs["promoter"], genome, file, track="+", **options)
    assert not (tmp_path / "new").exists()
    new = tmp_path / "new" / "s.PNG"  # its folder is made when it is written
    assert picture_path(new, file, Interval("chrA", 0, 300)) == new


def test_nobody_else_gets_the_folder_of_a_scan_that_ends(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever begins while it is taken away would lose it under its hands."""
    genome = planted(tmp_path, 600).genome
    tried: list[Path] = []

    def watched(folder: Path, **options: Any) -> None:
        with pytest.raises(FileExistsError, match="another process"):
            scan(runs["promoter"], genome, tmp_path / "s.bed", step=9, force=True, **QUIET)
        tried.append(folder)
        shutil.rmtree(folder, **options)

    monkeypatch.setattr(resume, "shutil", SimpleNamespace(rmtree=watched))
    scan(runs["promoter"], genome, tmp_path / "s.bed", step=9, **QUIET)
    assert tried == [tmp_path / ".s.bed.scan"]
    assert not tried[0].exists()


@pytest.mark.parametrize("ending", ["bw", "bed", "parquet"])
def test_a_genome_of_n_has_no_scores(runs: dict[str, Path], tmp_path: Path, ending: str) -> None:
    genome = write_fasta(tmp_path / "g.fa", c="N" * 300)
    out = tmp_path / f"s.{ending}"
    with pytest.raises(ValueError, match="nothing but N"):
        scan(runs["coding"], genome, out, **QUIET)
    assert not out.exists()
    assert not (tmp_path / f".{out.name}.scan").exists()
    said: list[str] = []
    half = write_fasta(tmp_path / "h.fa", c="N" * 300, d="ACGTA" * 40)
    scan(runs["coding"], half, out, say=said.append, **UNMERGED)
    what = "the scores of"
    if ending == "bed":
        lines = out.read_text().count("\n") - 1
        what = f"{lines} stretches that reach 0.5, out of"
    assert said[-1] == f"{out} has {what} 200 bins; 300 without a score, as all is N there"
    if ending == "bw":
        import pyBigWig

        with pyBigWig.open(str(out)) as opened:
            assert opened.header()["nBasesCovered"] == 200
            assert opened.header()["maxVal"] <= 1


def test_labels_say_for_a_scan_that_a_sequence_is_circular(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Promoters, "scored", says_words)
    genome = write_fasta(tmp_path / "g.fa", c=WORD[1:] + "C" * 300 + WORD[:1])
    labels = tmp_path / "g.gff3"
    labels.write_text("##gff-version 3\nc\tx\tregion\t1\t303\t.\t+\t.\tID=c;Is_circular=true\n")
    options: dict[str, Any] = {"step": 1, "plot": "c:1-100", **QUIET}
    scan(runs["promoter"], genome, tmp_path / "a.bed", labels=[labels], **options)
    scan(runs["promoter"], genome, tmp_path / "b.bed", **options)
    assert [x[1] for x in read_lines(tmp_path / "a.bed") if x[5] == "+"] == ["302"]
    assert not [x for x in read_lines(tmp_path / "b.bed") if x[5] == "+"]


def test_a_bigwig_on_a_full_disk_is_an_error(runs: dict[str, Path], tmp_path: Path) -> None:
    """The library that writes it only prints that; the scores are kept, and the same goes on."""
    import pyBigWig

    genome = write_fasta(tmp_path / "g.fa", c="ACGTTGCAAC" * 300)
    out, raw = tmp_path / "s.bw", 4 * 2 * 3000  # bytes of the scores on the way
    scan(runs["coding"], genome, tmp_path / "whole.bw", **QUIET)

    class Full:
        """Has room for 4,096 bytes."""

        def __init__(self, file: str, mode: str) -> None:
            self.file, self.opened = file, pyBigWig.open(file, mode)
            self.addHeader, self.addEntries = self.opened.addHeader, self.opened.addEntries

        def close(self) -> None:
            self.opened.close()
            os.truncate(self.file, 4096)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "need", lambda *_: SimpleNamespace(open=Full))
        with pytest.raises(OSError, match="No space left"):
            scan(runs["coding"], genome, out, **QUIET)
    assert not out.exists()
    assert (tmp_path / ".s.bw.scan" / "scores.f32").stat().st_size == raw
    scan(runs["coding"], genome, out, **QUIET)
    assert out.read_bytes() == (tmp_path / "whole.bw").read_bytes()


def test_a_scan_does_not_write_over_what_it_reads(runs: dict[str, Path], tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.bed", c="ACGTTGCAAC" * 30)
    bases = genome.read_bytes()
    with pytest.raises(ValueError, match="`out` is the input file"):
        scan(runs["coding"], genome, genome, force=True, **QUIET)
    with pytest.raises(ValueError, match="`tokens_per_batch` must be at least 1, received 0"):
        scan(runs["coding"], genome, tmp_path / "o.bed", tokens_per_batch=0, **QUIET)
    assert genome.read_bytes() == bases


@pytest.mark.parametrize("step", [1, 3, 9])
def test_short_sequences_are_the_same_on_both_strands(
    runs: dict[str, Path], tmp_path: Path, step: int
) -> None:
    draw = random.Random(2)
    sequences = {f"c{n}": "".join(draw.choices("ACGT", k=n)) for n in (1, 2, 3, 8, 9, 10, 12)}
    others = {name: other_strand(bases) for name, bases in sequences.items()}
    tables = {}
    for which, own in (("a", sequences), ("b", others)):
        genome = write_fasta(tmp_path / f"{which}.fa", **own)
        scan(runs["promoter"], genome, tmp_path / f"{which}.parquet", step=step, **QUIET)
        tables[which] = pq.read_table(tmp_path / f"{which}.parquet").to_pandas()
    for name, bases in sequences.items():
        a, b = (each[each["sequence"] == name] for each in tables.values())
        plus, minus = (a[f"promoter {strand}"].to_numpy() for strand in "+-")
        np.testing.assert_allclose(plus, b["promoter -"].to_numpy()[::-1], atol=1e-6)
        np.testing.assert_allclose(minus, b["promoter +"].to_numpy()[::-1], atol=1e-6)
        assert a["start"].iloc[0] == 0
        assert a["end"].iloc[-1] == len(bases)


def test_odd_names_come_back_or_are_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    """Also in pictures, where $ is not mathematics."""
    bases = "ACGTTGCAAC" * 30
    names = ["#hash", ">more", "a|b;c=d", r"$\frac$", "x" * 300, "plain", "ü"]
    genome = tmp_path / "g.fa"
    genome.write_text("".join(f">{name}\n{bases}\n" for name in names), encoding="utf-8")
    out = tmp_path / "s.gff3"
    scan(runs["promoter"], genome, out, step=9, threshold=0.01, **QUIET)
    with open_genome(genome) as opened:
        found = [each.interval.name for each in read_features(out, opened)]
    assert set(found) == set(names)
    assert len(found) == len(read_lines(out))
    for ending in ("bed", "bedgraph"):
        with pytest.raises(
            ValueError, match=r"called #hash would be headings in .*: write \.gff3"
        ):
            scan(runs["promoter"], genome, tmp_path / f"s.{ending}", **QUIET)
    labels = tmp_path / "l.bed"
    labels.write_text("".join(f"{each}\t5\t9\t$\\frac$\t0\t+\n" for each in names[3:5]))
    for name in names[3:5]:
        drawn = picture_path(None, tmp_path / "s.gff3", Interval(name, 0, 50))
        scan(runs["promoter"], genome, plot=f"{name}:1-50", picture=drawn, labels=labels, **QUIET)
        assert drawn.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"threshold": "0.5"}, {"prevalence": [0.1]}, {"step": 2.5}, {"step": True},
        {"tokens_per_batch": 2.5}, {"genome": None}, {"labels": [None]},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_types_are_said(tmp_path: Path, wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"genome": "g.fa", "out": tmp_path / "s.bed", **QUIET, **wrong}
    with pytest.raises(
        TypeError, match=r"must be (a number|a whole number), received|expected the path"
    ):
        scan("default", **given)


@pytest.mark.parametrize("out", [True, False])
@pytest.mark.parametrize("plot", ["c:181-20", "c:181-220"])
def test_a_picture_goes_over_the_origin(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: bool, plot: str
) -> None:
    """Against the letters of the sequence, which the model says."""
    monkeypatch.setattr(Coding, "scored", says_letters)
    figures: list[Any] = []
    monkeypatch.setattr(
        Figure, "savefig", lambda self, file, **_: (figures.append(self), file.touch())
    )
    bases = "".join(random.Random(6).choices("ACGT", k=200))
    genome = write_fasta(tmp_path / "g.fa", c=bases)
    labels = tmp_path / "g.bed"
    labels.write_text("c\t3\t9\tbehind\t0\t+\nc\t100\t110\tfar\t0\t+\nc\t190\t195\tbefore\t0\t-\n")
    options: dict[str, Any] = {"labels": labels, "picture": tmp_path / "g.png", **QUIET}
    file = tmp_path / "g.parquet" if out else None
    scan(runs["coding"], genome, file, plot=plot, circular=("all",), **options)
    known, scores = figures[0].axes
    assert [each.get_text() for each in known.texts] == ["before", "behind"]
    assert [each.get_position()[0] for each in known.texts] == [190.5, 203.5]
    for line, letter, sign in zip(scores.lines, "AT", (1, -1), strict=False):
        places, values = (np.asarray(each) for each in line.get_data())
        assert places.tolist() == list(range(181, 221))  # as people count
        around = (bases + bases)[180:220]
        np.testing.assert_allclose(sign * values, [0.9 if x == letter else 0.1 for x in around])
    said = scores.xaxis.get_major_formatter()
    assert [said(at) for at in (181, 200, 201, 220)] == ["181", "200", "1", "20"]
    with pytest.raises(ValueError, match="has the bases 1 to 200"):
        scan(runs["coding"], genome, plot=plot, **QUIET)  # not circular


@pytest.mark.parametrize("plot", ["c:0-5", "c:201-5", "c:5-0", "c:181-381"])
def test_a_picture_goes_round_once(runs: dict[str, Path], tmp_path: Path, plot: str) -> None:
    genome = write_fasta(tmp_path / "g.fa", c="ACGT" * 50)
    with pytest.raises(ValueError, match="has the bases 1 to 200"):
        scan(runs["coding"], genome, plot=plot, circular=("all",), **QUIET)


def test_several_files_of_one_scan(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each as if it had been asked for alone, and the genome is read once."""
    monkeypatch.setattr(Coding, "scored", says_letters)
    genome = write_fasta(tmp_path / "g.fa", c="".join(random.Random(7).choices("ACGT", k=300)))
    endings = ("bed", "bw", "gff3", "bedgraph", "parquet")
    for ending in endings:
        scan(runs["coding"], genome, tmp_path / f"alone.{ending}", **QUIET)
    times: list[int] = []
    once = resume.score_chunk
    monkeypatch.setattr(resume, "score_chunk", lambda *words: (times.append(1), once(*words))[1])
    said: list[str] = []
    files = [tmp_path / str(number) / f"s.{end}" for number, end in enumerate(endings)]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(formats.WRITERS, "gff3", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        scan(runs["coding"], genome, files, say=said.append)
    assert [file.exists() for file in files] == [True, True, False, False, False]
    scan(runs["coding"], genome, files, say=said.append)
    assert len(times) == 1
    assert said[0].startswith("resuming")
    for file in files:
        assert file.read_bytes() == (tmp_path / f"alone{file.suffix}").read_bytes()
        assert [each.name for each in file.parent.iterdir()] == [file.name]
    with pytest.raises(ValueError, match="a file twice"):
        scan(runs["coding"], genome, [files[0], files[0]], force=True, **QUIET)
    with pytest.raises(FileExistsError, match=r"s\.bw exists already"):
        scan(runs["coding"], genome, [tmp_path / "new.bed", files[1]], **QUIET)


def test_a_scan_that_begins_again_says_why(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    genome = planted(tmp_path, 600).genome
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(resume, "score_chunk", killed)
        scan(runs["promoter"], genome, tmp_path / "s.bed", step=9, **QUIET)
    said: list[str] = []
    scan(runs["promoter"], genome, tmp_path / "s.bed", step=11, say=said.append)
    assert "had another step: starting again" in said[0]


def test_a_promoter_at_the_origin_is_one(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last base and the first are neighbours, on a circle."""

    def scored(self: Any, model: Any, windows: list[str]) -> list[np.ndarray]:
        return [np.array(score[each[UP]]) for each in windows]

    monkeypatch.setattr(Promoters, "scored", scored)
    score = {"A": 0.9, "C": 0.1, "G": 0.1, "T": 0.7}  # on minus, T is 0.9
    for bases, kept in (
        ("TTCCCCCCAA", {(8, "+"), (0, "-")}),
        ("AACCCCCCTT", {(0, "+"), (8, "-")}),
    ):
        genome = write_fasta(tmp_path / f"{bases}.fa", c=bases)
        found = {}
        for circular in (None, ("all",)):
            out = tmp_path / f"{bases}-{circular is None}.bed"
            scan(runs["promoter"], genome, out, step=1, circular=circular, **QUIET)
            found[circular is None] = {(int(row[1]), row[5]) for row in read_lines(out)}
        assert found[False] == kept
        assert len(found[True]) == 4


def test_what_is_for_pictures_needs_a_stretch(runs: dict[str, Path], tmp_path: Path) -> None:
    genome = planted(tmp_path, 600)
    for option in ({"picture": tmp_path / "s.png"}, {"labels": genome.labels}):
        with pytest.raises(ValueError, match="requires `plot`"):
            scan(runs["promoter"], genome.genome, tmp_path / "s.bed", **option, **QUIET)


def test_a_link_is_followed(runs: dict[str, Path], tmp_path: Path) -> None:
    link, file = tmp_path / "link.bed", tmp_path / "far" / "s.bed"
    link.symlink_to(file)
    scan(runs["promoter"], planted(tmp_path, 600).genome, link, step=9, **QUIET)
    assert link.is_symlink()
    assert file.read_text().startswith("track")
