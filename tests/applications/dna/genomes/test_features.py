"""Features, base by base, against brute force, Biopython and gffutils."""

import gzip
import io
import random
import re
from pathlib import Path

import gffutils
import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import CompoundLocation, SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

from longbird.applications.dna.genomes import (
    Feature,
    Genome,
    Interval,
    circular_in,
    open_genome,
    open_signal,
    read_features,
)

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
LENGTH = 400
BASES = "".join(random.Random(0).choices("ACGT", k=LENGTH))


@pytest.fixture
def genome(tmp_path: Path) -> Genome:
    (tmp_path / "genome.fa").write_text(f">line\n{BASES}\n>circle\n{BASES}\n")
    return open_genome(tmp_path / "genome.fa", circular=["circle"])


def read(genome: Genome, text: str, **options) -> list[Feature]:
    file = Path(genome.file).with_name("labels")
    file.write_text(text)
    return read_features(file, genome, **options)


def one_based(first: int, last: int, strand: str) -> str:
    """The bases from the first to the last, both counted from 1, one by one, around the circle."""
    bases = [BASES[(position - 1) % LENGTH] for position in range(first, last + 1)]
    if strand == "-":
        bases = [COMPLEMENT[base] for base in reversed(bases)]
    return "".join(bases)


def gff(*rows: str) -> str:
    return "##gff-version 3\n" + "\n".join(re.sub(" +", "\t", row) for row in rows) + "\n"


def test_gff3_base_by_base(genome: Genome):
    """Every kind of place, also over the origin; positions of GFF3 are 1-based and closed."""
    rng = random.Random(1)
    rows, wanted = [], []
    for number in range(200):
        name = rng.choice(["line", "circle"])
        first = rng.randrange(1, LENGTH + 1)
        last = first + rng.randrange(60)
        last = last if name == "circle" else min(last, LENGTH)
        strand = rng.choice("+-.?")
        rows.append(f"{name} me gene {first} {last} . {strand} . ID=g{number}")
        wanted.append((one_based(first, last, strand), last - first + 1))
    for feature, (bases, length) in zip(read(genome, gff(*rows)), wanted, strict=True):
        assert feature.bases(genome) == genome.bases(feature.interval) == bases
        assert len(feature.interval) == length
        assert feature.parts == (feature.interval,)


def test_gff3_columns(genome: Genome):
    text = gff(
        "##sequence-region line 1 400",
        "line some%20tool gene 5 9 1.5e-3 ? . ID=a%3Bb;Name=x,y%2Cz;Note=1=2;",
        "line me region 1 400 . + . .",
    ).replace("some%20tool", "some tool")
    gene, region = read(genome, text.replace("\n", "\r\n") + "##FASTA\r\n>line\r\nACGT\r\n")
    assert (gene.id, gene.score, gene.interval.strand) == ("a;b", 0.0015, ".")
    assert gene.attributes == {"ID": "a;b", "Name": "x,y,z", "Note": "1=2"}
    assert (region.id, region.score, dict(region.attributes)) == (None, None, {})


@pytest.mark.parametrize("strand", "+-")
@pytest.mark.parametrize("named", ["ID=c", "Parent=m"])
def test_parts_of_a_cds_are_joined(genome: Genome, strand: str, named: str):
    """In the order of reading, whatever the order of lines, with the phase of the 5' end."""
    parts = [(11, 20, 0), (31, 38, 1), (51, 60, 2)]
    joined = "".join(one_based(first, last, "+") for first, last, _ in parts)
    if strand == "-":
        joined = "".join(COMPLEMENT[base] for base in reversed(joined))
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        rows = [
            f"line me CDS {first} {last} . {strand} {phase} {named}"
            for first, last, phase in (parts[i] for i in order)
        ]
        exon = "line me exon 1 60 . + . Parent=m"  # which is not joined to them
        (cds, *exons) = read(genome, gff(*rows, exon, exon))
        assert len(exons) == 2
        assert cds.bases(genome) == joined
        assert len(cds.parts) == 3
        assert cds.interval == Interval("line", 10, 60, strand)
        assert cds.phase == (0 if strand == "+" else 2)
    # The same ID elsewhere is something else.
    rows = [
        "line me CDS 1 3 . + 0 ID=c",
        "circle me CDS 7 9 . + 0 ID=c",
        "line me x 7 9 . + 0 ID=c",
    ]
    assert [len(feature.parts) for feature in read(genome, gff(*rows))] == [1, 1, 1]


@pytest.mark.parametrize("strand", "+-")
def test_parts_over_the_origin(genome: Genome, strand: str):
    """Lines that meet at the origin are one part, and others go round the shorter way."""
    rows = [f"circle me CDS {place} . {strand} 0 ID=c" for place in ("1 5", "20 30", "391 400")]
    (cds,) = read(genome, gff(*rows))
    assert cds.interval == Interval("circle", 390, 430, strand)
    wanted = one_based(391, 405, "+") + one_based(20, 30, "+")
    if strand == "-":
        wanted = "".join(COMPLEMENT[base] for base in reversed(wanted))
    assert cds.bases(genome) == wanted
    assert len(cds.parts) == 2
    (whole,) = read(genome, gff(f"circle me gene 301 700 . {strand} . ID=c"))
    assert whole.bases(genome) == one_based(301, 700, strand)


def test_gff3_against_gffutils(genome: Genome):
    rng = random.Random(2)
    rows = []
    for number in range(100):
        first = rng.randrange(1, 300)
        rows.append(
            f"line me {rng.choice(['gene', 'exon'])} {first} {first + rng.randrange(90)} "
            f"{rng.choice(['.', '0.25', '7'])} {rng.choice('+-.')} . "
            f"ID=i{number};Note=a%20b%3D{number};Dbxref=x:{number},y:{number}"
        )
    theirs = list(gffutils.iterators.DataIterator(gff(*rows), from_string=True))
    ours = read(genome, gff(*rows))
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.kind, mine.id) == (other.featuretype, other.id or other["ID"][0])
        assert mine.interval == Interval(other.seqid, other.start - 1, other.end, other.strand)
        assert mine.score == (None if other.score == "." else float(other.score))
        assert {name: value.split(",") for name, value in mine.attributes.items()} == {
            name: [re.sub("%20", " ", re.sub("%3D", "=", each)) for each in values]
            for name, values in other.attributes.items()
        }


def locations(rng: random.Random) -> SimpleLocation | CompoundLocation:
    """One, or several joined, on either strand, over the origin, out of both strands."""
    cuts = sorted(rng.sample(range(1, LENGTH), 6))
    strand = rng.choice([1, -1])
    pieces = [SimpleLocation(cuts[i], cuts[i + 1], strand) for i in (0, 2, 4)]
    match rng.randrange(5):
        case 0:
            return pieces[0]
        case 1:
            ordered = pieces if strand == 1 else pieces[::-1]
            return CompoundLocation(ordered)
        case 2:  # over the origin
            around = [SimpleLocation(cuts[5], LENGTH, strand), SimpleLocation(0, cuts[0], strand)]
            return CompoundLocation(around if strand == 1 else around[::-1])
        case 3:  # over it, with an intron
            around = [pieces[2], pieces[0]]
            return CompoundLocation(around if strand == 1 else around[::-1])
        case _:
            return CompoundLocation([pieces[0], SimpleLocation(cuts[2], cuts[3], -strand)])


def test_genbank_against_biopython(genome: Genome):
    rng = random.Random(3)
    record = SeqRecord(Seq(BASES), "circle", annotations={"molecule_type": "DNA"})
    record.annotations["topology"] = "circular"
    for number in range(150):
        qualifiers = {"locus_tag": [f"t{number}"], "codon_start": [str(number % 3 + 1)]}
        record.features.append(SeqFeature(locations(rng), "CDS", qualifiers=qualifiers))
    text = io.StringIO()
    SeqIO.write(record, text, "genbank")
    theirs = SeqIO.read(io.StringIO(text.getvalue()), "genbank").features
    ours = read(genome, text.getvalue())
    assert len(ours) == 150
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        assert mine.bases(genome) == str(other.extract(Seq(BASES)))
        assert (mine.id, mine.phase, mine.kind) == (f"t{number}", number % 3, "CDS")
        strands = {part.strand for part in other.location.parts}
        assert mine.interval.strand == ("." if len(strands) > 1 else "+-"[-1 in strands])
        # Every base of it lies inside, and it begins and ends with one of them.
        inside = {position % LENGTH for position in range(mine.interval.start, mine.interval.end)}
        own = {position for part in other.location.parts for position in part}
        assert own <= inside
        assert {mine.interval.start, (mine.interval.end - 1) % LENGTH} <= own
    assert len(read(genome, text.getvalue(), kinds=["CDS"])) == 150
    # The same through a genome that was read from the file itself.
    file = Path(genome.file).with_name("whole.gb")
    file.write_text(text.getvalue())
    again = open_genome(file, tell=lambda line: None)
    assert [feature.parts for feature in read_features(file, again)] == [f.parts for f in ours]


def test_bed(genome: Genome):
    rows = [
        ("line 0 5", ("ACGTN", None, None, ".")),
        ("line 0 5 x", ("", "x", None, ".")),
        ("line 3 9 . 960.5", ("", None, 960.5, ".")),
        ("line 3 9 x 0 -", ("", "x", 0.0, "-")),
        ("line 3 9 x 0 - 3 9 0,0,0", ("", "x", 0.0, "-")),
        ("line 3 9 peak 0 . 12.5 -1 -1 3", ("", "peak", 0.0, ".")),
    ]
    for row, (_, id_, score, strand) in rows:
        for end in ("\n", "\r\n"):
            text = f"#c\nbrowser x\ntrack name=x\n{row.replace(' ', chr(9))}{end}\n"
            (feature,) = read(genome, text)
            start, stop = (int(word) for word in row.split()[1:3])
            assert (feature.id, feature.score, feature.kind) == (id_, score, "region")
            assert feature.interval == Interval("line", start, stop, strand)
            wanted = one_based(start + 1, stop, strand)
            assert feature.bases(genome) == wanted
        assert read(genome, row) == [feature]  # separated by spaces
    for strand in "+-":
        text = f"line\t10\t50\tg\t1\t{strand}\t10\t50\t0\t3\t5,10,4,\t0,12,36,\n"
        (feature,) = read(genome, text)
        wanted = one_based(11, 15, "+") + one_based(23, 32, "+") + one_based(47, 50, "+")
        if strand == "-":
            wanted = "".join(COMPLEMENT[base] for base in reversed(wanted))
        assert feature.bases(genome) == wanted
    file = Path(genome.file).with_name("labels.bed.gz")
    file.write_bytes(gzip.compress(b"line\t0\t5\n"))
    assert len(read_features(file, genome)) == 1


BAD = {
    "empty": ("", "labels has no features"),
    "comments alone": ("# nothing\n\ntrack name=x\n", "labels has no features"),
    "gff3 without features": ("##gff-version 3\n###\n", "labels has no features"),
    "text": ("Dear colleague,\n", "neither GFF3, BED nor GenBank; received in line 1: 'Dear"),
    "binary": ("\0\1\2\3" * 50, "binary file"),
    "fasta": (">line\nACGT\n", "is FASTA; expected labels"),
    "gtf": (
        'line\tme\tCDS\t1\t9\t.\t+\t0\tgene_id "x"; transcript_id "y";\n',
        "line 1: this is GTF; expected GFF3",
    ),
    "columns": (gff("line me gene 1 5 . + . ID=a", "line me gene"), "line 3: expected 9 columns"),
    "zero": (gff("line me gene 0 5 . + . ID=a"), "line 2: .*counted from 1; received '0'"),
    "backwards": (gff("line me gene 7 5 . + . ID=a"), "line 2: .* received '7' and '5'"),
    "strand": (gff("line me gene 1 5 . * . ID=a"), r"strand .* received '\*'"),
    "score": (gff("line me gene 1 5 high + . ID=a"), "expected a score .* 'high'"),
    "attributes": (gff("line me gene 1 5 . + . gene1"), "name=value.* received 'gene1'"),
    "beyond the end": (
        gff("line me gene 1 400 . + . ID=a", "line me gene 390 401 . + . ID=b"),
        "line 3: gene b reaches from base 390 to 401 of line, which has 400 bases in .*one "
        r"assembly. If it is circular, open it with circular=\['line'\]",
    ),
    "beyond a circle": (
        gff("circle me gene 401 402 . + . ID=b"), "from base 401 to 402 of circle",
    ),
    "round twice": (gff("circle me gene 5 405 . + . ID=b"), "from base 5 to 405 of circle"),
    "another assembly": (
        gff("##sequence-region line 1 500", "line me gene 1 5 . + . ID=b"),
        "says that line has 500 bases, and in .* it has 400",
    ),
    "bed end": ("line\t390\t401\n", "line 1: region reaches from base 391 to 401"),
    "bed backwards": ("line\t9\t4\n", "line 1: the end 4 lies before the start 9"),
    "bed columns": ("line\t0\t4\tx\nline\t0\t4\n", "line 2: expected 4 columns .*received 3"),
    "bed numbers": ("line\t0\t4\nline\tx\t4\n", "line 2: expected the name of a sequence"),
    "bed negative at once": ("line\t-5\t4\n", "line 1: .* not negative; received 'line.t-5"),
    "bed titles": ("chrom start end\nline 0 4\n", "line 1 seems to be a header.* or put #"),
    "bed titles of words": ("a title\nline\t0\t4\n", "line 1 seems to be a header"),
    "bed negative": ("line\t0\t4\nline\t-1\t4\n", "line 2: expected the name of a sequence"),
    "bed strand": ("line\t0\t4\tx\t0\tplus\n", "column 6; received 'plus'"),
    "bed values": ("line\t0\t4\t2\nline\t4\t9\t0.5\n", "If they are .* end in .bedgraph; if"),
    "bed blocks": ("line\t0\t9\tx\t0\t+\t0\t9\t0\t2\t3,3\t0,5\n", "expected blocks .* '3,3'"),
    "other names": (gff("chr1 me gene 1 5 . + . ID=a"), "labels on chr1, .* has line, circle"),
    "versions": (
        gff("line.2 me gene 1 5 . + . ID=a", "circle me gene 1 5 . + . ID=b"),
        r"labels on line.2, .*it has line\. .*alias=\{'line.2': 'line'\}",
    ),
}  # fmt: skip


@pytest.mark.fast_cases(40)
@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case: str, genome: Genome):
    text, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        read(genome, text)


def test_damaged_files(genome: Genome, tmp_path: Path):
    rows = "".join(f"line\t{i}\t{i + 5}\tname{i * 7919}\n" for i in range(390)).encode()
    (tmp_path / "cut.bed.gz").write_bytes(gzip.compress(rows)[:-30])
    with pytest.raises(ValueError, match=r"cut\.bed\.gz is not a complete gzip file"):
        read_features(tmp_path / "cut.bed.gz", genome)
    with pytest.raises(FileNotFoundError):
        read_features(tmp_path / "none.bed", genome)
    with pytest.raises(IsADirectoryError):
        read_features(tmp_path, genome)
    for name, heading in (
        ("x.bedgraph", ""),
        ("x.bg", ""),
        ("x.bed", "browser hide all\ntrack name=a type=bedGraph\n"),
    ):
        (tmp_path / name).write_text(f"{heading}line\t0\t5\t1.5\n")
        with pytest.raises(ValueError, match="is bedGraph, a signal"):
            read_features(tmp_path / name, genome)
    with pytest.raises(TypeError, match=r"\['CDS'\]; received 'CDS'"):
        read_features(tmp_path / "x.bed", genome, kinds="CDS")
    with pytest.raises(TypeError, match="from open_genome, received 'genome'"):
        read_features(tmp_path / "x.bed", "genome")  # type: ignore[arg-type]


def test_names_of_bed_may_look_like_numbers(genome: Genome):
    names = [each.id for each in read(genome, "line\t0\t4\t12\nline\t4\t9\ta13\n")]
    assert names == ["12", "a13"]
    assert [each.id for each in read(genome, "line\t0\t4\t12\t0\t+\n")] == ["12"]


def test_sequences_may_be_called_as_headings_begin(tmp_path: Path):
    fasta = "".join(f">{name}\nACGTACGTAC\n" for name in ("track1", "browser_x", "track"))
    (tmp_path / "g.fa").write_text(fasta)
    genome = open_genome(tmp_path / "g.fa")
    rows = "track1\t5\t9\nbrowser_x\t1\t2\ntrack\t3\t4\n"
    found = read(genome, f"browser position track1:1-9\ntrack name=a description=b\n{rows}")
    assert [str(each.interval) for each in found] == ["track1:6-9", "browser_x:2-2", "track:4-4"]
    (tmp_path / "s.bedgraph").write_text("track type=bedGraph\ntrack1\t5\t9\t1.5\n")
    values = open_signal(tmp_path / "s.bedgraph", genome).values(Interval("track1", 4, 6))
    assert values[1] == 1.5


def test_regulatory_features_are_of_their_class(genome: Genome):
    classes = ("promoter", "terminator", None)
    rows = [
        f"line me regulatory {9 * i + 1} {9 * i + 6} . + . ID=r{i}"
        + (f";regulatory_class={each}" if each else "")
        for i, each in enumerate(classes)
    ]
    record = SeqRecord(Seq(BASES), id="line", name="line", annotations={"molecule_type": "DNA"})
    for i, each in enumerate(classes):
        qualifiers = {"regulatory_class": [each]} if each else {}
        place = SimpleLocation(9 * i, 9 * i + 6, 1)
        record.features.append(SeqFeature(place, type="regulatory", qualifiers=qualifiers))
    text = io.StringIO()
    SeqIO.write(record, text, "genbank")
    for file in (gff(*rows), text.getvalue()):
        assert [each.kind for each in read(genome, file)] == [
            "promoter",
            "terminator",
            "regulatory",
        ]
        (promoter,) = read(genome, file, kinds=["promoter"])
        assert str(promoter.interval) == "line:1-6(+)"


def test_kinds(genome: Genome):
    rows = ["line me gene 1 9 . + . ID=a", "line me CDS 1 9 . + 0 ID=b", "line me CDS 2 9 . + 0 ."]
    assert [each.kind for each in read(genome, gff(*rows), kinds=["CDS"])] == ["CDS", "CDS"]
    with pytest.raises(ValueError, match="no features of kind exon; it has 1 gene, 2 CDS"):
        read(genome, gff(*rows), kinds=["exon"])
    with pytest.raises(ValueError, match="no features of kind CDS; it has 1 region"):
        read(genome, "line\t0\t5\n", kinds=["CDS"])


@pytest.mark.parametrize("end", [300, 399, 401])
@pytest.mark.parametrize(
    "said", ["##sequence-region {name} 1 {end}", "{name} me region 1 {end} . + . Is_circular=true"]
)
def test_a_sequence_of_another_length_is_of_another_assembly(genome: Genome, said: str, end: int):
    gene = "circle me gene 1 5 . + . ID=a"
    with pytest.raises(ValueError, match=rf"circle has {end} bases, and in .* it has 400"):
        read(genome, gff(said.format(name="circle", end=end), gene))
    assert read(genome, gff(said.format(name="circle", end=400), gene))


def test_a_file_may_be_about_a_part_of_a_sequence(genome: Genome):
    gene = "line me gene 120 150 . + . ID=a"
    assert read(genome, gff("##sequence-region line 101 200", gene))
    with pytest.raises(ValueError, match=r"line has 401 bases or more, and in .* it has 400"):
        read(genome, gff("##sequence-region line 101 401", gene))


def test_what_labels_say_of_circles(genome: Genome, tmp_path: Path):
    rows = [
        "L me region 1 400 . + . ID=r;Is_circular=true",
        "circle me region 1 400 . + . Is_circular=true",
    ]
    lines: list[str] = []
    read(genome, gff(*rows), alias={"L": "line"}, tell=lines.append)
    (line,) = lines
    assert "says that line is circular" in line
    assert "circular=['line']" in line
    assert circular_in(tmp_path / "labels", {"L": "line"}) == ["line", "circle"]
    (tmp_path / "x.bed").write_text("line\t0\t5\n")
    assert circular_in(tmp_path / "x.bed") == []
    circular = circular_in(tmp_path / "labels", {"L": "line"})
    reopened = open_genome(genome.file, circular=circular)
    assert all(contig.circular for contig in reopened.sequences.values())
