"""Bases of genomes, one by one, against brute force over the text that was written."""

import gzip
import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pysam
import pytest

from longbird.applications.dna.genomes import Genome, Interval, open_genome, reverse_complement
from longbird.applications.dna.genomes.handles import Handles

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}
LETTERS = "ACGTNacgtnRYSWKMBDHVXryswkmbdhvxUu"


def drawn(length: int, seed: int = 0, letters: str = LETTERS) -> str:
    weights = [20 if letter in "ACGTacgt" else 1 for letter in letters]
    return "".join(random.Random(seed).choices(letters, weights, k=length))


def expected(text: str) -> str:
    """Base by base, what `text` means."""
    return "".join(
        "T" if base in "uU" else base.upper() if base.upper() in "ACGTN" else "N" for base in text
    )


def other(bases: str) -> str:
    return "".join(COMPLEMENT[base] for base in reversed(bases))


def fasta(sequences: dict[str, str], width: int = 13, end: str = "\n") -> bytes:
    lines: list[str] = []
    for name, text in sequences.items():
        lines.append(f">{name} a description, with > in it")
        lines += [text[start : start + width] for start in range(0, len(text), width)]
    return (end.join(lines) + end).encode()


SEQUENCES = {"chr1": drawn(200), "chr2|x:y": drawn(39, 1), "c3": drawn(5, 2)}


def uneven(sequences: dict[str, str]) -> bytes:
    lines: list[str] = []
    for name, text in sequences.items():
        lines += [f">{name}", text[:2], "", text[2:4] + " ", text[4:]]
    return "\n".join(lines).encode()


def bgzipped(file: Path, content: bytes) -> None:
    plain = file.with_suffix(".plain")
    plain.write_bytes(content)
    pysam.tabix_compress(str(plain), str(file), force=True)


FORMS = {
    "plain": lambda file: file.write_bytes(fasta(SEQUENCES)),
    "one line": lambda file: file.write_bytes(fasta(SEQUENCES, width=1000)),
    "CR LF": lambda file: file.write_bytes(fasta(SEQUENCES, end="\r\n")),
    "no last line end": lambda file: file.write_bytes(fasta(SEQUENCES, width=1000)[:-1]),
    "empty lines": lambda file: file.write_bytes(
        b"\n\n" + fasta(SEQUENCES).replace(b"\n>", b"\n\n>") + b"\n\n"
    ),
    "uneven": lambda file: file.write_bytes(uneven(SEQUENCES)),
    "gzip": lambda file: file.write_bytes(gzip.compress(fasta(SEQUENCES, end="\r\n"))),
    "gzip of two": lambda file: file.write_bytes(
        b"".join(gzip.compress(fasta({name: text})) for name, text in SEQUENCES.items())
    ),
    "bgzip": lambda file: bgzipped(file, fasta(SEQUENCES)),
    "bgzip, uneven": lambda file: bgzipped(file, uneven(SEQUENCES)),
}


@pytest.fixture(params=FORMS)
def genome(request: pytest.FixtureRequest, tmp_path: Path) -> Genome:
    file = tmp_path / "genome"
    FORMS[request.param](file)
    return open_genome(file, circular=["c3"])


@pytest.mark.fast_cases(10)
def test_every_interval_on_both_strands(genome: Genome):
    """Every base of every interval, wherever lines break; with wrapping on what is circular."""
    lengths = {name: contig.length for name, contig in genome.sequences.items()}
    assert lengths == {name: len(text) for name, text in SEQUENCES.items()}
    for name, text in SEQUENCES.items():
        bases = expected(text)
        for start in range(len(text) + 1):
            for end in range(start, len(text) + 1, 1 if len(text) < 50 else 7):
                assert genome.bases(Interval(name, start, end)) == bases[start:end]
                assert genome.bases(Interval(name, start, end, "+")) == bases[start:end]
                assert genome.bases(Interval(name, start, end, "-")) == other(bases[start:end])
    round_ = expected(SEQUENCES["c3"])
    for start in range(-7, 12):
        for length in range(6):
            wanted = "".join(round_[position % 5] for position in range(start, start + length))
            assert genome.bases(Interval("c3", start, start + length)) == wanted
            assert genome.bases(Interval("c3", start, start + length, "-")) == other(wanted)


def test_letters_that_are_read_as_others_are_counted_and_told(tmp_path: Path):
    text = "".join(SEQUENCES.values())
    (tmp_path / "genome").write_bytes(fasta(SEQUENCES))
    lines: list[str] = []
    genome = open_genome(tmp_path / "genome", tell=lines.append)
    codes = sum(base.upper() not in "ACGTNU" for base in text)
    assert any(
        f"{codes} letters of {len(text)} are read as N: B " in note for note in genome.notes
    )
    rna = sum(base in "uU" for base in text)
    assert any(f"{rna} letters of {len(text)} are U" in note for note in genome.notes)
    assert lines == [f"{tmp_path / 'genome'}: {note}" for note in genome.notes]
    lines.clear()
    assert open_genome(tmp_path / "genome", tell=lines.append).notes == genome.notes
    assert not lines  # told once


def test_beyond_the_ends(tmp_path: Path):
    (tmp_path / "genome").write_text(">a\nACGTT\n>b\nACGTT\n")
    genome = open_genome(tmp_path / "genome", circular=["b"])
    for start, end in ((-1, 3), (3, 6), (5, 6), (-3, 9), (7, 9), (-4, -2)):
        for strand in "+-":
            interval = Interval("a", start, end, strand)
            with pytest.raises(ValueError, match=r"beyond the ends of a .* has 5 bases"):
                genome.bases(interval)
            padded = "".join(
                "ACGTT"[position] if 0 <= position < 5 else "N" for position in range(start, end)
            )
            wanted = padded if strand == "+" else other(padded)
            assert genome.bases(interval, pad=True) == wanted
    assert genome.bases(Interval("b", -2, 3), pad=True) == "TTACG"
    with pytest.raises(ValueError, match=r"has 6 bases, .* has 5: expected at most one round"):
        genome.bases(Interval("b", 2, 8))
    assert genome.pieces(Interval("b", 3, 7, "-")) == (
        Interval("b", 3, 5, "-"),
        Interval("b", 0, 2, "-"),
    )
    with pytest.raises(ValueError, match=r"no sequence chrA; it has a, b\. If it is a, use"):
        genome.bases(Interval("chrA", 0, 1))


inherited: list[Genome] = []
"""What a forked process has from its parent, without pickling."""


def _bases(interval: Interval) -> str:
    return inherited[-1].bases(interval)


def test_many_threads_and_processes(tmp_path: Path):
    table = bytes(b"ACGT"[value % 4] for value in range(256))
    text = random.Random(0).randbytes(1_000_000).translate(table).decode()
    (tmp_path / "genome").write_bytes(fasta({"a": text}, width=80))
    genome = open_genome(tmp_path / "genome")
    places = [random.Random(seed).randrange(999_000) for seed in range(200)]
    intervals = [Interval("a", start, start + 1000) for start in places]
    wanted = [text[start : start + 1000] for start in places]
    assert genome.bases(intervals[0]) == wanted[0]  # which opens it
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(genome.bases, intervals)) == wanted
    inherited.append(genome)
    with get_context("fork").Pool(2) as processes:
        assert processes.map(_bases, intervals, chunksize=7) == wanted
    assert pickle.loads(pickle.dumps(genome)).bases(intervals[1]) == wanted[1]


opened: list[int] = []


def _opening() -> int:
    opened.append(os.getpid())
    return len(opened)


handles = Handles(_opening)


def _handle(_: int) -> tuple[int, int]:
    return handles.get(), opened[-1]


def test_each_thread_of_each_process_has_a_file_of_its_own():
    """Sharing one gives wrong bases, but only now and then."""
    first = handles.get()
    assert handles.get() == first
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handles.get).result() != first
    number = len(opened)
    with get_context("fork").Pool(1) as processes:
        ((other, process), again) = processes.map(_handle, range(2))
    assert other == number + 1
    assert process != os.getpid()
    assert again == (other, process)
    assert pickle.loads(pickle.dumps(handles)).get() != first
    handles.close()
    assert handles.get() != first


@pytest.mark.fast_cases(10)
@pytest.mark.parametrize("form", FORMS)
def test_what_is_deleted_from_the_cache_is_made_again(form: str, tmp_path: Path, cache: Path):
    file = tmp_path / "genome"
    FORMS[form](file)
    open_genome(file)
    wanted = expected(SEQUENCES["chr1"])
    (folder,) = (each for each in cache.iterdir() if each.is_dir())
    for name in sorted(each.name for each in folder.iterdir()):
        (folder / name).unlink()
        assert open_genome(file).bases(Interval("chr1", 0, 200)) == wanted
        assert (folder / name).exists()
    for name in ("index.fai", "sequence.fa"):
        if (folder / name).exists():
            content = (folder / name).read_bytes()
            (folder / name).write_bytes(content.replace(b"A", b"C").replace(b"1", b"2"))
            assert open_genome(file).bases(Interval("chr1", 0, 200)) == wanted
            assert (folder / name).read_bytes() == content


def test_intervals():
    assert Interval("a", 3, 3)
    assert len(Interval("a", 3, 3)) == 0
    for text in ("chr1:1-1", "HLA-A*01:01:5-20(-)", "x y:7-9(+)"):
        assert str(Interval.parse(text)) == text
    assert Interval.parse("NC_000913.3:1,000..2,000") == Interval("NC_000913.3", 999, 2000)
    for text in ("chr1", "chr1:5", "chr1:0-5", "chr1:6-5", "chr1:-5-9", "chr1:,-5", ""):
        with pytest.raises(ValueError, match="such as chr1:1001-2000"):
            Interval.parse(text)
    with pytest.raises(ValueError, match="received start 5 and end 4 on a"):
        Interval("a", 5, 4)
    with pytest.raises(ValueError, match="received 'plus'"):
        Interval("a", 5, 6, "plus")
    with pytest.raises(TypeError):
        Interval("a", 0.5, 6)  # type: ignore[arg-type]
    assert Interval("a", 10, 20, "-").part(2, 5) == Interval("a", 15, 18, "-")
    for strand in "+-.":
        interval = Interval("a", 10, 20, strand)
        assert [interval.base(interval.position(i)) for i in range(10)] == list(range(10))
        assert interval.opposite().opposite() == interval


def test_reverse_complement():
    text = drawn(300)
    assert reverse_complement(text) == other(expected(text))
    assert reverse_complement(reverse_complement(text)) == expected(text)
    with pytest.raises(ValueError, match="received 'E', 'F'"):
        reverse_complement("ACGEF")
