"""Reading genomes from the disk by name and interval."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import stat
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Any

from longbird.applications.dna.genomes import fasta, genbank
from longbird.applications.dna.genomes.extra import need
from longbird.applications.dna.genomes.fasta import SequenceContents
from longbird.applications.dna.genomes.handles import Handles
from longbird.applications.dna.genomes.interval import Interval
from longbird.applications.dna.genomes.letters import opposite, plain
from longbird.applications.dna.genomes.names import Alias, Names
from longbird.errors import InvalidTypeError, InvalidValueError, UnsupportedError
from longbird.files.cache import cache_folder, cached
from longbird.files.paths import check_path

OTHER_KINDS = (
    (b"@", "is FASTQ, which has reads of a sequencer; expected a genome"),
    (b"##gff-version", "is GFF3, which has labels; expected the genome that they belong to"),
    (b"\x1a\x41\x27\x43", "is 2bit: convert it with `twoBitToFa`"),
    (b"\x43\x27\x41\x1a", "is 2bit: convert it with `twoBitToFa`"),
    (b"BAM\1", "is BAM, which has alignments; expected a genome"),
    (b"CRAM", "is CRAM, which has alignments; expected a genome"),
    (b"PK\3\4", "is a zip file: unpack it first"),
    (b"BZh", "is compressed with bzip2: unpack it first"),
    (b"\xfd7zXZ", "is compressed with xz: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it first"),
    (b"\x1f\x8b", "is compressed with gzip twice: unpack it first"),
    (b"ID   ", "is EMBL: convert it to GenBank or FASTA, for example with Biopython"),
)


COPIED = {
    "gzip fasta": "compressed with plain gzip",
    "genbank": "GenBank",
    "gzip genbank": "GenBank",
    "bgzip genbank": "GenBank",
}
"""Formats that do not allow random access and are copied into the cache, for messages."""
COPY, FOUND = "sequence.fa", "found.json"
"""Names of files in the cache."""
FORMAT = 2
"""Version of the files in the cache."""


@dataclass(frozen=True, slots=True)
class Contig:
    """A sequence of a genome, such as a chromosome, a plasmid or a contig."""

    name: str
    length: int
    circular: bool = False


@functools.cache
def say(line: str) -> None:
    """Print a line on stderr, once per process, since a command may open a file several times."""
    print(f"longbird: {line}", file=sys.stderr, flush=True)


def open_genome(
    path: str | os.PathLike[str],
    *,
    alias: Alias = None,
    circular: bool | Iterable[str] | None = None,
    tell: Callable[[str], None] = say,
) -> Genome:
    r"""Open a genome of any size; bases are read from the disk when they are needed.

    The first time, the whole file is read once and checked. The index is kept in the cache and,
    if the folder is writable, beside the file.

    Args:
        path: FASTA (plain, gzip, bgzip) or GenBank (plain, gzip) file, recognized by content.
            Plain gzip and GenBank do not allow random access, and are copied into the cache once.
        alias: Aliases of the sequences, as {alias: name in the file}, or the path of a file with
            both in each line, separated by a tab.
        circular: Names of the circular sequences, or True for all, or False for none. By default
            those that a GenBank file marks as circular.
        tell: Function that is called with notes on how the file is read, the first time that it
            is opened. If the last line has no line break, so that bases may be missing, it is
            called every time.

    Raises:
        ValueError: The genome is damaged or truncated, is a protein, or has two sequences of the
            same name; the message tells what to do.
        OSError: The file does not exist, or cannot be read.
        ImportError: The package that reads it is not installed.

    Examples:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "tiny.fa")
        >>> _ = file.write_text(">chr1 an example\nacgtt\naannn\nRC\n")
        >>> with open_genome(file, tell=lambda line: None) as genome:
        ...     print(genome.sequences["chr1"].length, genome.notes)
        ...     print(genome.bases(Interval("chr1", 3, 7, "-")))
        12 ('1 letters of 12 are read as N: R 1',)
        TTAA
        >>> folder.cleanup()
    """
    check_path(path, "a genome")
    file = os.path.abspath(os.fspath(path))
    kind = _kind(file, os.fspath(path))
    folder, found = _prepared(file, kind, os.fspath(path), tell)
    copy = folder / COPY
    return Genome(
        os.fspath(path),
        found,
        source=str(copy) if copy.exists() else file,
        folder=folder,
        circular=_circular(circular, found),
        alias=alias,
    )


class Genome:
    """A genome on the disk, from `open_genome`.

    It can be passed to other processes and used by several threads.

    Attributes:
        file: Path of the file, as the caller gave it.
        sequences: Sequences by name, in the order of the file.
        notes: Notes on letters that are read as other letters.
        names: Names and aliases of the sequences.
    """

    def __init__(
        self,
        file: str,
        found: SequenceContents,
        *,
        source: str,
        folder: Path,
        circular: set[str],
        alias: Alias = None,
    ) -> None:
        self.file = file
        self.sequences: Mapping[str, Contig] = {
            name: Contig(name, length, name in circular) for name, length in found.lengths.items()
        }
        self.notes = tuple(found.notes)
        self.names = Names(file, found.lengths, alias)
        self._contigs = list(self.sequences.values())
        self._ends = list(accumulate(contig.length for contig in self._contigs))
        self._handles = Handles(partial(_open, source, folder))

    def bases(self, interval: Interval, *, pad: bool = False) -> str:
        """Return the bases of an interval in the direction of its strand: A, C, G, T and N.

        Args:
            interval: The interval, which may cross the origin of a circular sequence.
            pad: Whether positions beyond the ends of a linear sequence are N instead of an error.
        """
        contig = self.contig(interval.name)
        start, end = interval.start, interval.end
        before = after = 0
        if pad and not contig.circular:
            before, after = (
                min(n, end - start) for n in (max(0, -start), max(0, end - contig.length))
            )
            start, end = start + before, end - after
        inside = Interval(interval.name, start, end) if start < end else None
        pieces = self.pieces(inside) if inside else ()
        bases = "".join(self._fetch(piece) for piece in pieces)
        bases = "N" * before + bases + "N" * after
        return opposite(bases) if interval.strand == "-" else bases

    def contig(self, name: str) -> Contig:
        """Return the sequence with a name or an alias.

        Raises:
            ValueError: There is none; the message lists the names.
        """
        return self.sequences[self.names.find(name)]

    @property
    def size(self) -> int:
        """Number of bases of all sequences."""
        return self._ends[-1]

    def locate(self, number: int) -> tuple[Contig, int]:
        """Return the sequence and the position of a base that is counted over all sequences."""
        which = bisect_right(self._ends, number)
        contig = self._contigs[which]
        return contig, number - self._ends[which] + contig.length

    def pieces(self, interval: Interval) -> tuple[Interval, ...]:
        """Cut an interval at the origin into one or two pieces, in the order of the plus strand.

        Aliases are replaced by the names in the file.

        Raises:
            ValueError: The interval exceeds the ends of a linear sequence, or the length of a
                circular one.
        """
        contig = self.contig(interval.name)
        start, end, strand = interval.start, interval.end, interval.strand
        if not contig.circular:
            if start < 0 or end > contig.length:
                raise InvalidValueError(
                    f"{interval} lies beyond the ends of {contig.name} in {self.file}, which has "
                    f"{contig.length:,} bases and is not circular"
                )
            return (Interval(contig.name, start, end, strand),)
        if end - start > contig.length:
            raise InvalidValueError(
                f"{interval} has {end - start:,} bases, and the circular {contig.name} in "
                f"{self.file} has {contig.length:,}: expected at most one round"
            )
        start, end = start % contig.length, start % contig.length + end - start
        if end <= contig.length:
            return (Interval(contig.name, start, end, strand),)
        return (
            Interval(contig.name, start, contig.length, strand),
            Interval(contig.name, 0, end - contig.length, strand),
        )

    def _fetch(self, piece: Interval) -> str:
        bases = self._handles.get().fetch(piece.name, piece.start, piece.end)
        if len(bases) != len(piece):
            raise UnsupportedError(f"{self.file} was changed while it was read: open it again")
        return plain(bases)

    def close(self) -> None:
        """Close the file, which is opened again at its next use."""
        self._handles.close()

    def __enter__(self) -> Genome:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Genome {self.file}: {len(self.sequences):,} sequences, {self.size:,} bases>"


def check_genome(value: Any) -> None:
    """Raise an error for anything but a `Genome`, such as a path."""
    if not isinstance(value, Genome):
        raise InvalidTypeError(f"expected a genome from open_genome, received {value!r:.80}")


def _open(source: str, folder: Path) -> Any:
    gzi = folder / "index.gzi"
    return need("pysam", "reading a genome").FastaFile(
        source,
        filepath_index=str(folder / "index.fai"),
        filepath_index_compressed=str(gzi) if gzi.exists() else None,
    )


def _kind(file: str, shown: str) -> str:
    """Return the format by the content: "fasta" or "genbank", after "gzip" or "bgzip"."""
    mode = os.stat(file).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(21, "a folder, expected the file of a genome", shown)
    if not stat.S_ISREG(mode):
        raise InvalidValueError(
            f"{shown} is a pipe or a device; expected a file, which can be read twice"
        )
    with open(file, "rb") as opened:
        head = opened.read(16)
    if not head:
        raise InvalidValueError(f"{shown} is empty; expected FASTA or GenBank")
    packing = "bgzip " if fasta.is_bgzip(head) else "gzip " if head[:2] == b"\x1f\x8b" else ""
    with fasta.unpacked(file) as opened:
        head = opened.read(4096)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"LOCUS"):
        return f"{packing}genbank"
    if head.lstrip().startswith(b">"):
        return f"{packing}fasta"
    if start.startswith(b">"):
        raise InvalidValueError(
            f"{shown} begins with a byte-order mark, which no index allows: save it as plain ASCII"
        )
    for begin, what in OTHER_KINDS:
        if head.startswith(begin):
            raise InvalidValueError(f"{shown} {what}")
    if b"\0" in head:
        raise InvalidValueError(
            f"{shown} is a binary file; expected FASTA or GenBank, plain or gzip"
        )
    if not start:
        raise InvalidValueError(f"{shown} has nothing in it but space; expected FASTA or GenBank")
    raise InvalidValueError(
        f"{shown} is neither FASTA, which begins with '>', nor GenBank, which begins with LOCUS; "
        f"received {start[:40].decode('latin-1')!r}"
    )


def _prepared(
    file: str, kind: str, shown: str, tell: Callable[[str], None]
) -> tuple[Path, SequenceContents]:
    """Return the folder in the cache with the contents of a file and its index."""
    status = os.stat(file)
    changes = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, FORMAT)
    path_hash, state_hash = (
        hashlib.sha256(repr(value).encode()).hexdigest()[:16] for value in (file, changes)
    )
    name = f"genome-{path_hash}-{state_hash}"

    def fill(folder: Path, _scratch: Path) -> None:
        found = SequenceContents() if kind in COPIED else fasta.scan(file)
        source = file
        if kind in COPIED or not found.even:
            why = f"is {COPIED[kind]}" if kind in COPIED else "has lines of uneven length"
            tell(f"{shown} {why}: it is copied into {cache_folder()} once, for random access")
            source = str(folder / COPY)
            copy = fasta.EvenLines(folder / COPY)
            try:
                found = (genbank if "genbank" in kind else fasta).scan(file, copy.take)
            finally:
                copy.close()
        fasta.index(source, folder, found.lengths)
        for note in found.notes:
            if note != fasta.NO_END:
                tell(f"{shown}: {note}")
        found.write(folder / FOUND)

    folder = cached(name, [FOUND], fill, megabytes=None)
    found = SequenceContents.read(folder / FOUND)
    if fasta.NO_END in found.notes:  # every time
        tell(f"{shown}: {fasta.NO_END}")
    for before in cache_folder().glob(f"genome-{path_hash}-*"):  # the file as it was
        if before.is_dir() and before.name != name and ".partial-" not in before.name:
            fasta.take_back(file, before, found.lengths)
            shutil.rmtree(before, ignore_errors=True)
    if kind.endswith("fasta"):
        fasta.check_beside(file, found.lengths)
        if not (folder / COPY).exists():
            fasta.put_beside(file, folder)
    return folder, found


def _circular(wanted: bool | Iterable[str] | None, found: SequenceContents) -> set[str]:
    if wanted is None:
        return set(found.circular)
    if isinstance(wanted, bool):
        return set(found.lengths) if wanted else set()
    names = {wanted} if isinstance(wanted, str) else set(wanted)
    if unknown := sorted(names - set(found.lengths)):
        raise InvalidValueError(
            f"circular names {', '.join(unknown[:5])}, which the genome does not have; it has "
            f"{', '.join(list(found.lengths)[:10])}"
        )
    return names
