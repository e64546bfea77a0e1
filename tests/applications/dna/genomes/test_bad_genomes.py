"""Files that are not sound genomes: a clear error, and nothing left behind."""

import gzip
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pysam
import pytest

from longbird.applications.dna.genomes import Interval, open_genome

GENBANK = """\
LOCUS       TINY                      24 bp    DNA     circular BCT 01-JAN-2020
DEFINITION  A plasmid.
ACCESSION   TINY
VERSION     TINY.2
FEATURES             Location/Qualifiers
     source          1..24
     CDS             join(20..24,1..4)
                     /locus_tag="t1"
                     /codon_start=2
     gene            complement(join(3..6,9..12))
                     /gene="g"
ORIGIN
        1 acgtacgtaa ccggttnnry acgt
//
"""


def random_bases(length: int) -> str:
    return "".join(random.Random(0).choices("ACGT", k=length))


def bgzip(content: bytes, file: Path) -> bytes:
    file.write_bytes(content)
    pysam.tabix_compress(str(file), f"{file}.gz", force=True)
    return Path(f"{file}.gz").read_bytes()


LONG = f">a\n{random_bases(200_000)}\n".encode()
PROTEIN = b">sp|P0A|X\nMKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ\n"
BAD = {
    "empty": (b"", "is empty; expected FASTA or GenBank"),
    "spaces": (b"\n \n\n", "nothing in it but space"),
    "binary": (b"\x7fELF\0\0\1\0" * 30, "is a binary file"),
    "text": (b"Dear colleague,\n", "is neither FASTA, .* nor GenBank.* 'Dear colleague"),
    "fastq": (b"@read1\nACGT\n+\nIIII\n", "is FASTQ, which has reads"),
    "gff3": (b"##gff-version 3\n", "is GFF3, which has labels"),
    "zip": (b"PK\3\4abc", "zip file: unpack it first"),
    "bom": (b"\xef\xbb\xbf>a\nACGT\n", "byte-order mark"),
    "2bit": (b"\x43\x27\x41\x1a\0\0\0\0", "2bit: convert it with `twoBitToFa`"),
    "gzip twice": (gzip.compress(gzip.compress(b">a\nACGT\n")), "gzip twice"),
    "gzip of nothing": (gzip.compress(b""), "nothing in it but space"),
    "cut gzip": (gzip.compress(LONG)[:-20], "is not a complete gzip file .*truncated or damaged"),
    "cut gzip early": (gzip.compress(LONG)[:100], "is not a complete gzip file"),
    "gzip with a wrong byte": (
        gzip.compress(LONG, 0)[:5000] + b"!" + gzip.compress(LONG, 0)[5001:],
        "is not a complete gzip file|has '!'",
    ),
    "protein": (PROTEIN, "has the letters E, F, I, L, Q, which are amino acids: it is a protein"),
    "protein later": (b">a\nACGT\n" + PROTEIN, r"sp\|P0A\|X has the letters"),
    "protein without such letters": (b">a\nMKTAYRSHVKSHSRGW\n", "looks like a protein"),
    "gaps": (b">a\nACGT--ACG\n", "a has gaps .* it is an alignment"),
    "digits": (b">a\nACGT1ACG\n", "a has '1'; expected bases"),
    "two of a name": (b">a 1\nACGT\n>b\nAC\n>a 2\nCC\n", "two sequences named a"),
    "no bases": (b">a\n>b\nACGT\n", "a has no bases"),
    "no bases at the end": (b">a\nACGT\n>b\n", "b has no bases.*truncated"),
    "no bases, blank lines": (b">a\n\n \n>b\nACGT\n", "a has no bases"),
    "cut in a line": (b">a\nACGT\nACGT\nAC", "ends in the middle of a line: .*truncated"),
    "cut in the only line of the last": (
        b">a\nACGT\nACGT\nAC\n>b\nACG", "ends in the middle of a line: .*truncated",
    ),
    "cut at the end of a line": (b">a\nACGT\nACGT", "ends in the middle of a line: .*truncated"),
    "no name": (b">\nACGT\n", "sequence 1 has no name"),
    "a space for a name": (b">a\nACGT\n> b\nACGT\n", "sequence 2 has no name"),
    "CR": (b">a\rACGT\rACGT\r", "ends its lines with CR alone"),
    "name in Latin-1": (b">caf\xe9\nACGT\n", "name of sequence 1 is not text in UTF-8"),
    "cut GenBank": (GENBANK[:-20].encode(), "is damaged or truncated"),
    "GenBank without its end": (GENBANK[:-3].encode(), "is damaged or truncated"),
    "GenBank cut in features": (GENBANK[:350].encode(), "is damaged or truncated"),
    "GenBank without bases": (
        GENBANK.replace("        1 acgtacgtaa ccggttnnry acgt\n", "").encode(),
        "TINY.2 comes without its bases|truncated",
    ),
    "GenBank twice": ((GENBANK * 2).encode(), "two sequences named TINY.2"),
    "GenBank of a protein": (GENBANK.replace("ccggtt", "ccleft").encode(), "amino acids"),
}  # fmt: skip


@pytest.mark.fast_cases(40)
@pytest.mark.parametrize("case", BAD)
def test_what_is_not_a_genome_is_refused(case: str, tmp_path: Path, cache: Path):
    content, message = BAD[case]
    file = tmp_path / "genome"
    file.write_bytes(content)
    for _ in range(2):  # nothing of the first try makes the second pass
        with pytest.raises(ValueError, match=message) as raised:
            open_genome(file, tell=lambda line: None)
        assert str(file) in str(raised.value)
    assert [each.name for each in tmp_path.iterdir() if each != cache] == ["genome"]
    assert not [each for each in cache.glob("*") if each.is_dir()]


def test_bgzip_that_was_cut_off(tmp_path: Path):
    """Inside a block, and between blocks, where only the missing end tells."""
    whole = bgzip(LONG, tmp_path / "long.fa")
    file = tmp_path / "genome.gz"
    second = whole.index(b"\x1f\x8b\x08\x04", 10)
    for end in (len(whole) - 28, second, second + 1000, 40):
        file.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="truncated"):
            open_genome(file)
    file.write_bytes(whole)
    with open_genome(file) as genome:
        assert genome.bases(Interval("a", 100_000, 100_020)).encode() == LONG[100_003:100_023]


def test_that_bases_may_be_missing_is_said_every_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Of a file that keeps each sequence in a line; many such files have no last line break."""
    file = tmp_path / "genome.fa"
    file.write_bytes(b">a\nACGTACGTR\n>b\nACGT")
    for turn in range(3):
        lines: list[str] = []
        assert open_genome(file, tell=lines.append).sequences["b"].length == 4
        assert [line for line in lines if "no line break" in line] == lines[-1:]
        assert len(lines) == (2 if turn == 0 else 1)  # which letters there are is said once
    for _ in range(3):  # as a command does
        open_genome(file)
    assert capsys.readouterr().err.count("no line break") == 1


def test_no_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        open_genome(tmp_path / "none.fa")
    with pytest.raises(IsADirectoryError):
        open_genome(tmp_path)
    with pytest.raises(TypeError, match="path of a genome; received None"):
        open_genome(None)  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe or a device"):
        open_genome(tmp_path / "pipe")
    (tmp_path / "a.fa").write_text(">a\nACGT\n")
    with pytest.raises(ValueError, match=r"circular names x, .* it has a"):
        open_genome(tmp_path / "a.fa", circular=["x"])


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "bgzip"])
def test_indexes_that_belong_to_another_file(tmp_path: Path, packed: bool):
    file = tmp_path / ("g.fa.gz" if packed else "g.fa")

    def write(content: bytes) -> None:
        file.write_bytes(bgzip(content, tmp_path / "scratch") if packed else content)

    write(b">a\nACGT\nAC\n>b\nGG\n")
    open_genome(file)
    fai = Path(f"{file}.fai")
    pysam.faidx(str(file), "--fai-idx", str(tmp_path / "theirs.fai"))
    assert fai.read_bytes() == (tmp_path / "theirs.fai").read_bytes()
    with pysam.FastaFile(str(file)) as theirs:  # which finds it, and that of bgzip
        assert theirs.fetch("a") == "ACGTAC"
    for foreign, message in (
        ("a\t7\t3\t4\t5\nb\t2\t13\t2\t3\n", "has 7 bases under the name a, and the file has 6"),
        ("x\t6\t3\t4\t5\nb\t2\t13\t2\t3\n", "has 6 bases under the name x, .* has nothing"),
        ("a\t6\t3\t4\t5\n", "has nothing under the name b, and the file has 2 bases"),
        ("hello\n", "is not an index"),
    ):
        fai.write_text(foreign)
        with pytest.raises(ValueError, match=rf"g\.fa.*fai does not belong to .*{message}"):
            open_genome(file)
    fai.write_text("a\t6\t4\t4\t6\nb\t2\t16\t2\t4\n")  # as if its lines ended in CR LF
    assert open_genome(file).bases(Interval("a", 0, 6)) == "ACGTAC"
    fai.unlink()
    # The file changes, and what was known of it goes.
    genome = open_genome(file)
    assert genome.sequences["a"].length == 6
    fai.unlink()
    Path(f"{file}.gzi").unlink(missing_ok=True)
    time.sleep(0.02)
    write(b">a\nTTTTTTT\nAC\n>b\nGG\n")
    assert open_genome(file).bases(Interval("a", 5, 9)) == "TTAC"
    time.sleep(0.02)
    write(b">a\nTTT\nTTT\nTAC\n>b\nGG\n")  # other lines, and the index goes with them
    assert open_genome(file).bases(Interval("a", 5, 9)) == "TTAC"
    with pysam.FastaFile(str(file)) as theirs:
        assert theirs.fetch("a", 5, 9) == "TTAC"
    time.sleep(0.02)
    write(b">a\nTTT\nTTT\n")  # truncated, as the index tells
    with pytest.raises(ValueError, match="the file was changed or truncated"):
        open_genome(file)


def test_folders_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "read-only"
    folder.mkdir()
    (folder / "g.fa").write_text(">a\nACGT\n")
    folder.chmod(0o555)
    denied = PermissionError(13, "Permission denied")

    def refuse(*arguments: object, **options: object) -> None:
        raise denied

    with monkeypatch.context() as patched:  # root may write everywhere
        patched.setattr(
            "longbird.applications.dna.genomes.fasta.tempfile.TemporaryDirectory", refuse
        )
        patched.setattr("longbird.files.cache.tempfile.TemporaryDirectory", refuse)
        with pytest.raises(OSError, match="set LONGBIRD_CACHE in the environment"):
            open_genome(folder / "g.fa")
    real = os.replace
    monkeypatch.setattr(
        "os.replace", lambda a, b: refuse() if str(b).endswith("g.fa.fai") else real(a, b)
    )
    assert open_genome(folder / "g.fa").bases(Interval("a", 1, 3)) == "CG"
    assert [file.name for file in folder.iterdir()] == ["g.fa"]


def test_genbank(tmp_path: Path):
    for name, content in (
        ("a.gb", GENBANK.encode()),
        ("b.gb", GENBANK.replace("\n", "\r\n").encode()),
        ("c.gb.gz", gzip.compress(GENBANK.encode())),
    ):
        (tmp_path / name).write_bytes(content)
        lines: list[str] = []
        genome = open_genome(tmp_path / name, tell=lines.append)
        (contig,) = genome.sequences.values()
        assert (contig.name, contig.length, contig.circular) == ("TINY.2", 24, True)
        assert genome.bases(Interval("TINY.2", 20, 28)) == "ACGTACGT"
        assert genome.bases(Interval("TINY.2", 14, 21, "-")) == "TNNNNAA"
        assert "is GenBank: it is copied into" in lines[0]
        assert "2 letters of 24 are read as N: R 1, Y 1" in lines[1]
        lines.clear()
        assert not open_genome(tmp_path / name, circular=False).sequences["TINY.2"].circular
        assert not lines


def test_where_packages_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.fa").write_text(">a\nACGT\n")
    (tmp_path / "a.gb").write_text(GENBANK)
    for package in ("pysam", "Bio", "Bio.GenBank", "Bio.GenBank.Scanner"):
        monkeypatch.setitem(sys.modules, package, None)
    for name, package in (("a.fa", "pysam"), ("a.gb", "biopython")):
        with pytest.raises(ImportError, match=rf"{package}: pip install 'longbird\[dna\]'"):
            open_genome(tmp_path / name, tell=lambda line: None)


MEMORY = """
import resource, sys
from longbird.applications.dna.genomes import Interval, open_genome, windows
import pysam
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
genome = open_genome(sys.argv[1])
(contig,) = genome.sequences.values()
all_of_them = windows(genome, 30_000, 10_000)
for number in (0, len(all_of_them) // 2, -1):
    genome.bases(all_of_them[number])
end = Interval(contig.name, contig.length - 40, contig.length, "-")
print(peak() - before, contig.length, genome.bases(end))
"""


@pytest.mark.parametrize(
    ("megabases", "width"),
    [
        (20, 60),
        # Writing and reading 500 MB.
        pytest.param(500, None, marks=pytest.mark.slow),
    ],
)
def test_a_large_chromosome_takes_little_memory(tmp_path: Path, megabases: int, width: int | None):
    """Also where it stands in one line."""
    bases = random_bases(60_000)
    lines = bases if width is None else "\n".join(bases[i : i + 60] for i in range(0, 60_000, 60))
    file, times = tmp_path / "large.fa", megabases * 10**6 // 60_000
    with file.open("w") as opened:
        opened.write(">large\n")
        for _ in range(times):
            opened.write(lines if width is None else f"{lines}\n")
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(file)], capture_output=True, text=True, check=True
    )
    grown, length, end = done.stdout.split()
    file.unlink()
    assert int(length) == times * 60_000
    assert end == bases[-40:].translate(str.maketrans("ACGT", "TGCA"))[::-1]
    assert int(grown) < 16  # megabytes
