"""Reading signals along a genome from bigWig and bedGraph files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from longbird.applications.dna.genomes.bed import columns_of, is_heading
from longbird.applications.dna.genomes.extra import need
from longbird.applications.dna.genomes.fasta import unpacked
from longbird.applications.dna.genomes.genome import Genome, check_genome, say
from longbird.applications.dna.genomes.handles import Handles
from longbird.applications.dna.genomes.interval import Interval
from longbird.applications.dna.genomes.labels import BIGBED, BIGWIG, numbered_lines
from longbird.applications.dna.genomes.names import Alias
from longbird.errors import InvalidValueError
from longbird.files.paths import check_path

Numbers = npt.NDArray[np.float32]


def open_signal(
    path: str | os.PathLike[str],
    genome: Genome,
    *,
    alias: Alias = None,
    tell: Callable[[str], None] = say,
) -> Signal:
    r"""Open a signal along a genome.

    Args:
        path: bigWig file, which is read by index, or bedGraph file, which is read into memory.
        genome: Genome that the signal belongs to.
        alias: Names of the sequences in the file, as for `read_features`.
        tell: Function that is called with a line about sequences that are skipped.

    Raises:
        ValueError: The file is damaged, or its names or lengths do not match the genome.
        OSError: The file does not exist, or cannot be read.
        ImportError: The package that reads bigWig is not installed.

    Examples:
        >>> import pathlib, tempfile
        >>> from longbird.applications.dna.genomes import open_genome
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "tiny.fa")
        >>> signal = pathlib.Path(folder.name, "tiny.bedgraph")
        >>> _ = file.write_text(">chr1\nACGTTAACGG\n")
        >>> _ = signal.write_text("chr1\t2\t4\t0.5\nchr1\t4\t5\t3\n")
        >>> open_signal(signal, open_genome(file)).values(Interval("chr1", 1, 6, "-"))
        array([nan, 3. , 0.5, 0.5, nan], dtype=float32)
        >>> folder.cleanup()
    """
    check_path(path, "a signal")
    check_genome(genome)
    file = os.fspath(path)
    if os.path.isdir(file):
        raise IsADirectoryError(21, "a folder, expected a signal: bigWig or bedGraph", file)
    with unpacked(file) as opened:
        head = opened.read(4)
    if head in BIGWIG and not _begins(file, BIGWIG):
        raise InvalidValueError(f"{file} is bigWig compressed with gzip: unpack it first")
    if head in BIGBED:
        raise InvalidValueError(
            f"{file} is bigBed, which has features; expected bigWig or bedGraph"
        )
    numbers = BigWig(file) if head in BIGWIG else BedGraph(file)
    matched = genome.names.match(file, numbers.lengths, alias, tell, numbers.lengths)
    for name, own in matched.items():
        has, says = genome.sequences[own].length, numbers.lengths[name]
        if says > has or (isinstance(numbers, BigWig) and says != has):
            raise InvalidValueError(
                f"{file} has {says:,} bases of {name}, and in {genome.file} it has {has:,}: they "
                "are not of the same assembly"
            )
    return Signal(file, genome, numbers, {own: name for name, own in matched.items()})


def _begins(file: str, magic: tuple[bytes, ...]) -> bool:
    with open(file, "rb") as opened:
        return opened.read(4) in magic


class Signal:
    """A signal along a genome, from `open_signal`.

    It can be passed to other processes and used by several threads.
    """

    def __init__(
        self, file: str, genome: Genome, numbers: SignalSource, names: Mapping[str, str]
    ) -> None:
        self.file, self.genome = file, genome
        self._numbers, self._names = numbers, names

    def values(self, interval: Interval) -> Numbers:
        """Return a value for each base of `genome.bases(interval)`; NaN where there is none."""
        pieces = [
            self._numbers.values(self._names[piece.name], piece.start, piece.end)
            if piece.name in self._names and len(piece)
            else np.full(len(piece), np.nan, np.float32)
            for piece in self.genome.pieces(interval)
        ]
        values = np.concatenate(pieces)
        return values[::-1].copy() if interval.strand == "-" else values

    def __repr__(self) -> str:
        return f"<Signal {self.file} along {self.genome.file}>"


class SignalSource(Protocol):
    """A file with a signal."""

    lengths: dict[str, int]
    """Lengths of the sequences by name; of a bedGraph file, the ends of their last values."""

    def values(self, name: str, start: int, end: int) -> Numbers:
        """Return the values of an interval inside of a sequence; NaN where there is none."""
        ...


class BigWig:
    """A bigWig file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._handles = Handles(partial(_open, file))
        self.lengths: dict[str, int] = dict(self._handles.get().chroms() or {})

    def values(self, name: str, start: int, end: int) -> Numbers:
        """See `SignalSource`."""
        try:
            values = self._handles.get().values(name, start, end, numpy=True)
        except RuntimeError as error:
            raise InvalidValueError(f"{self.file} is damaged or truncated: {error}") from error
        return np.asarray(values, np.float32)


def _open(file: str) -> Any:
    library = need("pyBigWig", "reading bigWig")
    try:
        return library.open(file)
    except RuntimeError as error:
        raise InvalidValueError(f"{file} is damaged or truncated: {error}") from error


class BedGraph:
    """A bedGraph file in memory."""

    def __init__(self, file: str) -> None:
        rows: dict[str, list[tuple[int, int, float]]] = {}
        with numbered_lines(file) as lines:
            for number, line in lines:
                if "\0" in line:
                    raise InvalidValueError(
                        f"{file} is a binary file; expected bigWig or bedGraph"
                    )
                if line.startswith(("fixedStep", "variableStep")):
                    raise InvalidValueError(f"{file} is wiggle: convert it with `wigToBigWig`")
                if not line.strip() or is_heading(line):
                    continue
                try:
                    name, start, end, value = columns_of(line)
                    rows.setdefault(name, []).append((int(start), int(end), float(value)))
                    sound = 0 <= int(start) < int(end)
                except ValueError:
                    sound = False
                if not sound:
                    raise InvalidValueError(
                        f"{file}, line {number}: expected the name of a sequence, a start, an end "
                        f"and a number, as in bedGraph; received {line!r:.80}"
                    )
        if not rows:
            raise InvalidValueError(f"{file} has no numbers; expected bigWig or bedGraph")
        self._rows = {name: self._sorted(file, name, each) for name, each in rows.items()}
        self.lengths = {name: int(ends[-1]) for name, (_, ends, _) in self._rows.items()}

    @staticmethod
    def _sorted(file: str, name: str, rows: list[tuple[int, int, float]]) -> Any:
        rows.sort()
        starts, ends = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
        if (overlap := np.flatnonzero(starts[1:] < ends[:-1])).size:
            at = int(starts[overlap[0] + 1])
            raise InvalidValueError(
                f"{file} has two numbers for base {at + 1:,} of {name}; expected one"
            )
        return starts, ends, np.array([row[2] for row in rows], np.float32)

    def values(self, name: str, start: int, end: int) -> Numbers:
        """See `SignalSource`."""
        starts, ends, numbers = self._rows[name]
        here = slice(np.searchsorted(ends, start, "right"), np.searchsorted(starts, end, "left"))
        values = np.full(end - start, np.nan, np.float32)
        first, last = np.maximum(starts[here], start), np.minimum(ends[here], end)
        for a, b, number in zip(first - start, last - start, numbers[here], strict=True):
            values[a:b] = number
        return values
