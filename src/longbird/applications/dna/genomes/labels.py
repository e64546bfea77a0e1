"""Reading features from GFF3, BED and GenBank files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager

from longbird.applications.dna.genomes import bed, genbank
from longbird.applications.dna.genomes.fasta import unpacked
from longbird.applications.dna.genomes.feature import Feature, placed
from longbird.applications.dna.genomes.genome import Genome, check_genome, say
from longbird.applications.dna.genomes.gff3 import Gff3
from longbird.applications.dna.genomes.names import Alias, read_alias
from longbird.applications.dna.genomes.raw import Raw
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.files.paths import check_path

BIGWIG = (b"\x26\xfc\x8f\x88", b"\x88\x8f\xfc\x26")
BEDGRAPH = (".bedgraph", ".bdg", ".bg")
BIGBED = (b"\xeb\xf2\x89\x87", b"\x87\x89\xf2\xeb")


def read_features(
    path: str | os.PathLike[str],
    genome: Genome,
    *,
    kinds: Collection[str] | None = None,
    alias: Alias = None,
    tell: Callable[[str], None] = say,
) -> list[Feature]:
    r"""Read the features of a genome from a file, in the order of the file.

    Args:
        path: GFF3, BED (3 to 12 columns, and similar formats) or GenBank file, plain or gzip.
        genome: Genome that the features belong to.
        kinds: Kinds of features to read, such as ["CDS"]; all by default.
        alias: Names of the sequences in the file, as {name in the file: name in the genome}, or
            the path of a file with both in each line, separated by a tab.
        tell: Function that is called with a line about features that are skipped.

    Raises:
        ValueError: The file is damaged, has no features, or does not match the genome, because of
            other names or features beyond the end of a sequence. The message tells what to do.
        OSError: The file does not exist, or cannot be read.

    Examples:
        >>> import pathlib, tempfile
        >>> from longbird.applications.dna.genomes import open_genome
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "tiny.fa")
        >>> labels = pathlib.Path(folder.name, "tiny.gff3")
        >>> _ = file.write_text(">chr1\nCCATGAAACCTTATAGCC\n")
        >>> _ = labels.write_text(
        ...     "chr1\tme\tCDS\t3\t8\t.\t+\t0\tID=cds1\nchr1\tme\tCDS\t12\t16\t.\t+\t0\tID=cds1\n"
        ... )
        >>> genome = open_genome(file)
        >>> (feature,) = read_features(labels, genome)
        >>> feature.id, str(feature.interval), feature.bases(genome)
        ('cds1', 'chr1:3-16(+)', 'ATGAAATATAG')
        >>> folder.cleanup()
    """
    check_path(path, "a file of features")
    check_genome(genome)
    if isinstance(kinds, str):
        raise InvalidTypeError(f"expected several kinds, such as [{kinds!r}]; received {kinds!r}")
    file = os.fspath(path)
    kind = _kind(file)
    lengths: dict[str, int] = {}
    reaches: dict[str, int] = {}
    found: dict[str, int] = {}
    circular: list[str] = []
    if kind == "gff3":
        with numbered_lines(file) as lines:
            gff3 = Gff3(file, lines, kinds)
        raw, names, lengths, found = gff3.features, list(gff3.names), gff3.lengths, gff3.kinds
        circular, reaches = gff3.circular, gff3.reaches
    else:
        raw = list(_read(kind, file, lengths, tell))
        names = [each.name for each in raw]
        for each in raw:
            found[each.kind] = found.get(each.kind, 0) + 1
        if kinds is not None:
            raw = [each for each in raw if each.kind in kinds]
    if not found:
        raise InvalidValueError(f"{file} has no features; expected at least one")
    if not raw:
        has = ", ".join(f"{number:,} {each}" for each, number in found.items())
        raise InvalidValueError(
            f"{file} has no features of kind {', '.join(kinds or ())}; it has {has}"
        )
    matched = genome.names.match(file, names, alias, tell, lengths)
    for said, exactly in ((lengths, True), (reaches, False)):
        for name, length in said.items():
            _check_length(file, name, length, genome, matched.get(name), exactly=exactly)
    _tell_circular(file, circular, matched, genome, tell)
    return [
        placed(each, genome.sequences[matched[each.name]], genome.file)
        for each in raw
        if each.name in matched
    ]


def circular_in(path: str | os.PathLike[str], alias: Alias = None) -> list[str]:
    """Return the names of sequences that a label file marks as circular, for `open_genome`.

    GFF3 marks them with `Is_circular=true`, GenBank in the first line of a record; BED cannot.
    """
    file, names = os.fspath(path), read_alias(alias)
    match _kind(file):
        case "gff3":
            with numbered_lines(file) as lines:
                circular = Gff3(file, lines, ()).circular
        case "genbank":
            circular = genbank.circular_names(file)
        case _:
            circular = []
    return [names.get(name, name) for name in circular]


def is_bed(file: str | os.PathLike[str]) -> bool:
    """Return whether a file of features is BED, whose features have no kinds."""
    return _kind(os.fspath(file)) == "bed"


def is_bedgraph(file: str) -> bool:
    """Return whether a file is bedGraph, by its ending or its track line.

    Its columns do not tell, since BED may have four columns as well.
    """
    if file.lower().removesuffix(".gz").endswith(BEDGRAPH):
        return True
    with numbered_lines(file) as lines:
        for _, line in lines:
            if line.strip() and not bed.is_heading(line):
                return False
            if line.startswith("track") and "type=bedgraph" in line.lower().replace('"', ""):
                return True
    return False


@contextmanager
def numbered_lines(file: str) -> Generator[Iterator[tuple[int, str]], None, None]:
    """Yield the lines of a file, plain or gzip, without line ends, and numbered from 1."""
    with unpacked(file) as opened:
        yield (
            (
                number,
                line.decode("utf-8-sig" if number == 1 else "utf-8", "replace").rstrip("\r\n"),
            )
            for number, line in enumerate(opened, 1)
        )


def _read(
    kind: str, file: str, lengths: dict[str, int], tell: Callable[[str], None]
) -> Iterator[Raw]:
    if kind == "genbank":
        yield from genbank.features(file, lengths, tell)
        return
    with numbered_lines(file) as lines:
        yield from bed.read(file, lines)


def _kind(file: str) -> str:
    """Return the format of a label file by its content: "gff3", "bed" or "genbank"."""
    if os.path.isdir(file):
        raise IsADirectoryError(21, "a folder, expected a file of features", file)
    with unpacked(file) as opened:
        head = opened.read(4)
    if head in BIGWIG:
        raise InvalidValueError(f"{file} is bigWig, a signal: open it with open_signal")
    if head in BIGBED:
        raise InvalidValueError(f"{file} is bigBed: convert it with `bigBedToBed`")
    if is_bedgraph(file):
        raise InvalidValueError(f"{file} is bedGraph, a signal: open it with open_signal")
    odd: tuple[int, str] | None = None
    with numbered_lines(file) as lines:
        for number, line in lines:
            if "\0" in line:
                raise InvalidValueError(f"{file} is a binary file; expected GFF3, BED or GenBank")
            if line.startswith("##gff-version"):
                return "gff3"
            if line.startswith("LOCUS"):
                return "genbank"
            if line.startswith(">"):
                raise InvalidValueError(f"{file} is FASTA; expected labels: GFF3, BED or GenBank")
            if line.startswith(("fixedStep", "variableStep")):
                raise InvalidValueError(f"{file} is a signal: open it with open_signal")
            if not line.strip() or bed.is_heading(line):
                continue
            columns = bed.columns_of(line)
            if bed.is_row(columns) and odd is not None:
                raise InvalidValueError(
                    f"{file}: line {odd[0]} seems to be a header, which BED does not have; "
                    f"received {odd[1]!r:.80}. Delete it, or put # before it"
                )
            if bed.is_row(columns):
                return "bed"
            if len(columns) == 9 and columns[3].isdecimal() and columns[4].isdecimal():
                return "gff3"
            if odd is not None:
                break
            odd = number, line  # may be explained by the next line
    if odd is not None:
        raise InvalidValueError(
            f"{file} is neither GFF3, BED nor GenBank; received in line {odd[0]}: {odd[1]!r:.80}"
        )
    raise InvalidValueError(f"{file} has no features; expected at least one")


def _check_length(
    file: str, name: str, length: int, genome: Genome, own: str | None, *, exactly: bool
) -> None:
    if own is None:
        return
    has = genome.sequences[own].length
    if length > has or (exactly and length != has):
        more = "" if exactly else " or more"
        raise InvalidValueError(
            f"{file} says that {name} has {length:,} bases{more}, and in {genome.file} it has "
            f"{has:,}: they are not of the same assembly"
        )


def _tell_circular(
    file: str,
    circular: list[str],
    matched: dict[str, str],
    genome: Genome,
    tell: Callable[[str], None],
) -> None:
    names = [matched[name] for name in circular if name in matched]
    if linear := [name for name in names if not genome.sequences[name].circular]:
        tell(
            f"{file} says that {', '.join(linear[:5])} is circular, and {genome.file} was opened "
            f"as linear: open it with circular={linear[:5]} for windows that go over the origin"
        )
