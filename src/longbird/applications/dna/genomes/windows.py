"""Cutting genomes into windows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import overload

from longbird.applications.dna.genomes.genome import Contig, Genome
from longbird.applications.dna.genomes.interval import STRANDS, Interval
from longbird.errors import InvalidValueError


class Windows(Sequence[Interval]):
    """A sequence of windows of a genome, which are computed when they are accessed."""

    def __init__(self, contigs: Sequence[Contig], size: int, step: int, strand: str) -> None:
        self._contigs, self.size, self.step, self.strand = contigs, size, step, strand
        self._ends = list(accumulate(self._count(contig) for contig in contigs))

    def _count(self, contig: Contig) -> int:
        if contig.length <= self.size:
            return 1
        # On a circle, a window begins at each step; on a line, the last one reaches the end.
        first_of_last = contig.length - 1 if contig.circular else contig.length - self.size
        steps = first_of_last if contig.circular else first_of_last + self.step - 1
        return steps // self.step + 1

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Interval: ...
    @overload
    def __getitem__(self, index: slice) -> list[Interval]: ...
    def __getitem__(self, index: int | slice) -> Interval | list[Interval]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} windows; received number {index}")
        which = bisect_right(self._ends, index)
        contig = self._contigs[which]
        start = (index - (self._ends[which - 1] if which else 0)) * self.step
        end = start + self.size
        if not contig.circular or contig.length <= self.size:
            end = min(end, contig.length)
        return Interval(contig.name, start, end, self.strand)


def windows(
    genome: Genome,
    size: int,
    step: int | None = None,
    *,
    names: Iterable[str] | None = None,
    strand: str = "+",
) -> Windows:
    r"""Return windows that cover every base of a genome, in the order of its sequences.

    The last window of a linear sequence may be shorter. All windows of a circular sequence have
    the same size, and cross its origin. A sequence that is shorter than a window is one window.

    Args:
        genome: A genome from `open_genome`.
        size: Number of bases of a window.
        step: Number of bases between the starts of windows; by default they do not overlap.
        names: Names of the sequences; all by default.
        strand: Strand of the windows.

    Examples:
        >>> import pathlib, tempfile
        >>> from longbird.applications.dna.genomes import open_genome
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "tiny.fa")
        >>> _ = file.write_text(">chr1\nACGTACGTAC\n>plasmid\nACGTAC\n")
        >>> with open_genome(file, circular=["plasmid"]) as genome:
        ...     [str(window) for window in windows(genome, 4, 3)]
        ['chr1:1-4(+)', 'chr1:4-7(+)', 'chr1:7-10(+)', 'plasmid:1-4(+)', 'plasmid:4-7(+)']
        >>> folder.cleanup()
    """
    step = size if step is None else step
    if not 1 <= step <= size:
        raise InvalidValueError(
            f"expected a size of at least 1 and a step between 1 and the size, or bases would be "
            f"left out; received size {size} and step {step}"
        )
    if strand not in STRANDS:
        raise InvalidValueError(f"strand must be '+', '-' or '.'; received {strand!r:.80}")
    chosen = (
        list(genome.sequences.values())
        if names is None
        else [genome.contig(name) for name in names]
    )
    return Windows(chosen, size, step, strand)
