"""What cannot be read is said in a line, and leaves nothing behind."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planting import planted, write_fasta
from typer.testing import CliRunner

from longbird.applications.dna.genomes import Contig, Interval, open_genome
from longbird.applications.dna.runs import finetune, load
from longbird.applications.dna.sweeps import Starts, Tiles, bases_around
from longbird.cli.app import app
from longbird.cli.errors import describe

QUIET: dict[str, Any] = {"say": lambda _: None}


def complaint(*words: Any) -> str:
    done = CliRunner().invoke(app, ["dna", *map(str, words)])
    assert done.exit_code != 0, done.output
    assert isinstance(done.exception, Exception), done.output
    line, code = describe(done.exception)
    assert code == 2, line
    return line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (">a\nMKVLPEFQQL\n", "it is a protein"),
        (">a\nACGT\n>a\nACGT\n", "two sequences named a"),
        ("", "is empty"),
        (">a\n", "has no bases"),
        ("ACGT\n", "neither FASTA"),
    ],
)
def test_a_genome_that_is_none(tmp_path: Path, content: str, said: str) -> None:
    genome, out = tmp_path / "g.fa", tmp_path / "run"
    genome.write_text(content)
    assert said in complaint("pretrain", genome, "--out", out)
    assert not out.exists()


def test_a_genome_that_was_cut_off(tmp_path: Path) -> None:
    whole = gzip.compress((">a\n" + "ACGTTGCA" * 500 + "\n").encode())
    genome, out = tmp_path / "g.fa.gz", tmp_path / "run"
    genome.write_bytes(whole[: len(whole) // 2])
    assert "truncated" in complaint("pretrain", genome, "--out", out)
    assert not out.exists()


@pytest.mark.parametrize("task", ["promoter", "coding", "profile"])
@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("", "no features"),
        ("chrZ\t1\t5\tp\t0\t+\n", "chrZ"),
        ("chrA\t5000\t5001\tp\t0\t+\n", "chrA"),
        (">a\nACGT\n", "FASTA"),
        ("what is this?\n", "neither GFF3, BED nor GenBank"),
    ],
)
def test_labels_that_do_not_fit(tmp_path: Path, task: str, labels: str, said: str) -> None:
    genome, file, out = planted(tmp_path, 1000).genome, tmp_path / "labels.bed", tmp_path / "run"
    file.write_text(labels)
    assert said in complaint("finetune", task, genome, file, "--out", out)
    assert not out.exists()


def test_a_genome_that_is_too_short(tmp_path: Path) -> None:
    genome = write_fasta(tmp_path / "g.fa", c="ACGTTGCATT" * 3)
    bed = tmp_path / "s.bed"
    bed.write_text("c\t9\t10\tp\t0\t+\n")
    said = complaint("finetune", "promoter", genome, bed, "--out", tmp_path / "run")
    assert "nothing is left for training" in said
    assert "300 bases" in said


def test_a_model_that_is_not_there_is_not_looked_for_on_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    def asked(*_: Any, **__: Any) -> Any:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", asked)
    monkeypatch.chdir(tmp_path)
    genome = planted(tmp_path, 600)
    files = genome.genome, genome.labels
    for words in (
        ("scan", "runs/nothere", files[0], "--out", "s.bed"),
        ("evaluate", "runs/nothere", *files),
        ("finetune", "promoter", *files, "--model", "runs/nothere", "--out", "run"),
        ("pretrain", files[0], "--model", "runs/nothere", "--out", "run"),
    ):
        assert "there is no folder runs/nothere" in complaint(*words)
    with pytest.raises(FileNotFoundError, match="there is no folder runs/nothere"):
        load("runs/nothere")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow  # trains
def test_a_scan_of_what_cannot_be_read_leaves_nothing(tmp_path: Path) -> None:
    genome = planted(tmp_path, 1500)
    options: dict[str, Any] = {"upstream": 24, "downstream": 8, "tokens_per_batch": 512, **QUIET}
    finetune("promoter", genome.genome, [genome.labels], tmp_path / "run", steps=1, **options)
    cut, out = tmp_path / "cut.fa.gz", tmp_path / "out"
    whole = gzip.compress(genome.genome.read_bytes())
    cut.write_bytes(whole[: len(whole) // 2])
    for ending in ("bed", "bedgraph", "gff3", "bw", "parquet"):
        said = complaint("scan", tmp_path / "run", cut, "--out", out / f"scores.{ending}")
        assert "truncated" in said
    said = complaint("scan", tmp_path / "run", genome.genome, "--out", out / "s.bed", "--step", 99)
    assert "between 1 and the 32 bases" in said
    said = complaint("scan", tmp_path / "run", genome.genome, "--plot", "chrA:1000-2000")
    assert "has the bases 1 to 1,500" in said
    assert not out.exists()
    (tmp_path / "there.bed").touch()
    said = complaint("scan", tmp_path / "run", genome.genome, "--out", tmp_path / "there.bed")
    assert "exists already" in said


@pytest.mark.slow  # trains
def test_stretches_may_be_of_one_genome_of_several(tmp_path: Path) -> None:
    from longbird.applications.dna.runs import pretrain

    bases = "ACGTTGCATCGGATTA" * 20
    files = [
        write_fasta(tmp_path / f"{name}.fa", **{name: bases, f"{name}2": bases}) for name in "ab"
    ]
    options: dict[str, Any] = {"length": 34, "steps": 1, "tokens_per_batch": 256, **QUIET}
    run = pretrain(files, tmp_path / "run", validation_on=("a2", "b:1-64"), **options)
    said = json.loads((run.path / "data.json").read_text())["parts"]
    assert said == {"train": "a:1-320; b:97-320, b2:1-320", "validation": "a2:1-320; b:1-64"}
    with pytest.raises(ValueError, match="has no sequence c"):
        pretrain(files, tmp_path / "other", validation_on=("c",), **options)
    assert not (tmp_path / "other").exists()


GENBANK = """LOCUS       tiny                {length} bp    DNA     {shape} BCT 01-JAN-2020
FEATURES             Location/Qualifiers
{features}ORIGIN
{sequence}
//
"""


def write_genbank(path: Path, bases: str, locations: list[str], shape: str) -> Path:
    features = "".join(
        f'     CDS             {place}\n                     /locus_tag="t{number}"\n'
        for number, place in enumerate(locations)
    )
    rows = [
        f"{at + 1:>9} " + " ".join(bases[b : b + 10].lower() for b in range(at, at + 60, 10))
        for at in range(0, len(bases), 60)
    ]
    text = GENBANK.format(
        length=len(bases), shape=shape, features=features, sequence="\n".join(rows)
    )
    path.write_text(text)
    return path


@pytest.mark.slow  # trains
def test_a_genbank_file_has_its_labels(tmp_path: Path) -> None:
    """Sequence, labels and shape out of one file."""
    bases = "ACGTTGCATC" * 60
    places = [f"{at}..{at + 20}" for at in range(20, 560, 60)]
    places += [f"complement({at}..{at + 20})" for at in range(50, 560, 60)]
    file = write_genbank(tmp_path / "t.gb", bases, places, "circular")
    run = finetune(
        "coding", file, [], tmp_path / "run", length=34, steps=1, tokens_per_batch=256, **QUIET
    )
    assert run.finished
    assert 0 <= run.metrics["validation"]["auroc"] <= 1


def test_labels_say_that_a_sequence_is_circular(tmp_path: Path) -> None:
    from longbird.applications.dna.genome_files import open_genome_of
    from longbird.applications.dna.settings import DnaLabelSettings

    genome = write_fasta(tmp_path / "g.fa", c="ACGTTGCATC" * 60, d="ACGT" * 20)
    gff = tmp_path / "g.gff3"
    gff.write_text("##gff-version 3\nc\tx\tregion\t1\t600\t.\t+\t.\tID=c;Is_circular=true\n")
    settings = DnaLabelSettings("dna-coding", (str(genome), str(gff)))
    opened = open_genome_of(settings, str(genome), [str(gff)])
    assert [each.circular for each in opened.sequences.values()] == [True, False]


@pytest.mark.parametrize("length", [1, 2, 4, 9, 10, 11, 100, 101])
@pytest.mark.parametrize("step", [1, 3, 5, 7, 79])
def test_starts_are_the_same_from_both_ends(length: int, step: int) -> None:
    sweep = Starts(Contig("c", length), step, lambda *_: Interval("c", 0, 1))
    places = [sweep.first + job * sweep.step for job in range(sweep.jobs)]
    assert places[-1] + places[0] == length - 1
    starts, ends = sweep.edges(0, sweep.jobs)
    assert starts[0] == 0
    assert ends[-1] == length
    assert (starts[1:] == ends[:-1]).all()
    assert all(a <= place < b for a, place, b in zip(starts, places, ends, strict=True))


@pytest.mark.parametrize("length", [1, 7, 64, 65, 200, 1001])
@pytest.mark.parametrize("bin", [1, 4])
def test_tiles_cover_every_bin_once_with_context(length: int, bin: int) -> None:
    sweep = Tiles(Contig("c", length), 64, bin, 1)
    borders = [sweep.first_bin(job) for job in range(sweep.jobs + 1)]
    assert borders[0] == 0
    assert borders[-1] == sweep.bins == -(-length // bin)
    assert all(a < b for a, b in itertools.pairwise(borders))
    assert borders == [sweep.bins - each for each in borders[::-1]]
    longest = max(b - a for a, b in itertools.pairwise(borders)) * bin
    assert longest + 2 * sweep.margin <= 64 or sweep.jobs == 1
    assert sweep.jobs == 1 or sweep.margin >= 12


def test_a_window_goes_round_a_small_circle(tmp_path: Path) -> None:
    bases = "ACGTTGC"
    genome = open_genome(write_fasta(tmp_path / "g.fa", c=bases), circular=True)
    assert bases_around(genome, Interval("c", -3, 13, "+")) == (bases * 4)[4:20]
    turned = bases_around(genome, Interval("c", -3, 13, "-"))
    assert turned == (bases * 4)[4:20].translate(str.maketrans("ACGT", "TGCA"))[::-1]
    assert re.fullmatch("[ACGT]{16}", turned)


@pytest.mark.parametrize("circular", [False, True])
def test_windows_without_a_base_are_not_scored_and_all_others_are(
    tmp_path: Path, circular: bool
) -> None:
    bases = "N" * 90 + "ACGTTGCA" + "N" * 300 + "G" + "N" * 200
    genome = open_genome(write_fasta(tmp_path / "g.fa", c=bases), circular=circular)

    def window_at(name: str, base: int, strand: str) -> Interval:
        return Interval(name, base - 7, base + 4, strand)  # the same on both strands, for the test

    sweep = Starts(genome.contig("c"), 3, window_at, at_once=16)
    read: list[str] = []

    def scores(windows: list[str]) -> list[np.ndarray]:
        read.extend(windows)
        return [np.array(float(len(each.strip("N")))) for each in windows]

    found = np.concatenate(
        [
            sweep.run(scores, genome, first, min(first + 16, sweep.jobs))
            for first in range(0, sweep.jobs, 16)
        ]
    )
    assert all(each.strip("N") for each in read)
    for job, own in enumerate(found):
        base = sweep.first + 3 * job
        around = [at % len(bases) for at in range(base - 7, base + 4)]
        inside = [bases[at] for at in around if circular or base - 7 <= at < base + 4]
        expected = len("".join(inside).strip("N")) or np.nan
        np.testing.assert_equal(own, [expected, expected])
    assert len(read) == 2 * np.isfinite(found[:, 0]).sum() < found.size
