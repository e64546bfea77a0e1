"""Signals, base by base, against what was written."""

import math
import pickle
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyBigWig
import pytest

from longbird.applications.dna.genomes import Genome, Interval, open_genome, open_signal

LENGTH = 300


@pytest.fixture
def genome(tmp_path: Path) -> Genome:
    sequences = "".join(f">{name}\n{'ACGTT' * 60}\n" for name in ("line", "circle", "silent"))
    (tmp_path / "genome.fa").write_text(sequences)
    return open_genome(tmp_path / "genome.fa", circular=["circle"])


def drawn() -> dict[str, list[tuple[int, int, float]]]:
    """Stretches with numbers, and gaps between them, up to the ends."""
    rng, rows = random.Random(0), {}
    for name in ("line", "circle"):
        cuts = [0, *sorted(rng.sample(range(1, LENGTH), 38)), LENGTH]
        pairs = list(pairwise(cuts))
        rows[name] = [(a, b, rng.randrange(1000) / 8) for a, b in pairs if a == 0 or b % 3]
    return rows


def write(kind: str, file: Path) -> None:
    rows = drawn()
    if kind == "bigwig":
        with pyBigWig.open(str(file), "w") as opened:
            opened.addHeader([(name, LENGTH) for name in rows])
            for name, each in rows.items():
                starts, ends, values = (list(column) for column in zip(*each, strict=True))
                opened.addEntries([name] * len(each), starts, ends=ends, values=values)
        return
    lines = [f"{name}\t{a}\t{b}\t{v}\n" for name, each in rows.items() for a, b, v in each]
    random.Random(1).shuffle(lines)
    file.write_text("track type=bedGraph\n" + "".join(lines))


@pytest.mark.parametrize("kind", ["bigwig", "bedgraph"])
def test_every_base(kind: str, genome: Genome, tmp_path: Path):
    write(kind, tmp_path / "signal")
    signal = open_signal(tmp_path / "signal", genome)
    signal = pickle.loads(pickle.dumps(signal))
    numbers = {name: [math.nan] * LENGTH for name in genome.sequences}
    for name, rows in drawn().items():
        for start, end, value in rows:
            numbers[name][start:end] = [value] * (end - start)
    rng = random.Random(2)
    for name in genome.sequences:
        for _ in range(100):
            start = rng.randrange(LENGTH)
            end = start + rng.randrange(200)
            end = end if name == "circle" else min(end, LENGTH)
            wanted = [numbers[name][position % LENGTH] for position in range(start, end)]
            for strand in "+-.":
                values = signal.values(Interval(name, start, end, strand))
                assert values.dtype == np.float32
                order = wanted[::-1] if strand == "-" else wanted
                assert np.array_equal(values, np.array(order, np.float32), equal_nan=True)
    with pytest.raises(ValueError, match="beyond the ends of line"):
        signal.values(Interval("line", 290, 301))


def test_signals_that_do_not_fit(genome: Genome, tmp_path: Path):
    file = tmp_path / "signal.bw"

    def written(name: str, length: int) -> Path:
        with pyBigWig.open(str(file), "w") as opened:
            opened.addHeader([(name, length)])
            opened.addEntries([name], [0], ends=[5], values=[1.0])
        return file

    with pytest.raises(ValueError, match=r"has 299 bases of line, and in .* it has 300"):
        open_signal(written("line", 299), genome)
    with pytest.raises(ValueError, match=r"labels on line\.1, .*alias=\{'line\.1': 'line'\}"):
        open_signal(written("line.1", 300), genome)
    signal = open_signal(written("line.1", 300), genome, alias={"line.1": "line"})
    assert signal.values(Interval("line", 3, 7))[:2].tolist() == [1.0, 1.0]
    whole = written("line", 300).read_bytes()
    file.write_bytes(whole[: len(whole) // 3])
    with pytest.raises(ValueError, match="is damaged or truncated"):
        open_signal(file, genome).values(Interval("line", 0, 300))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no numbers"),
        ("line\t0\t5\n", "line 1: expected the name of a sequence, a start, an end and a number"),
        ("line\t0\t5\tx\n", "line 1: expected"),
        ("line\t5\t5\t1\n", "line 1: expected"),
        ("line\t0\t5\t1\nline\t4\t6\t1\n", "two numbers for base 5 of line"),
        ("line\t0\t301\t1\n", "has 301 bases of line, and in .* it has 300"),
        ("fixedStep chrom=line start=1 step=1\n1\n", "is wiggle: convert it"),
        ("\0\0\0", "binary file"),
    ],
    ids=["empty", "columns", "number", "nothing", "overlap", "end", "wiggle", "binary"],
)
@pytest.mark.fast_cases(8)
def test_bedgraph_that_is_refused(text: str, message: str, genome: Genome, tmp_path: Path):
    (tmp_path / "x.bedgraph").write_text(text)
    with pytest.raises(ValueError, match=message):
        open_signal(tmp_path / "x.bedgraph", genome)


def test_where_pybigwig_is_missing(
    genome: Genome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write("bigwig", tmp_path / "signal")
    monkeypatch.setitem(__import__("sys").modules, "pyBigWig", None)
    with pytest.raises(ImportError, match=r"pyBigWig: pip install 'longbird\[dna\]'"):
        open_signal(tmp_path / "signal", genome)
