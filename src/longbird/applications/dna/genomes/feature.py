"""Features of a genome, and how they are assembled from the lines of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from longbird.applications.dna.genomes.genome import Contig, Genome
from longbird.applications.dna.genomes.interval import Interval
from longbird.applications.dna.genomes.raw import Raw
from longbird.errors import InvalidValueError


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a genome, such as a gene, a promoter or a peak.

    Attributes:
        interval: Interval from the first base to the last, including introns. Across the origin
            of a circular sequence, its end lies beyond the length. It has no strand if the parts
            lie on both.
        kind: Kind in the file, such as "CDS"; the class of a regulatory feature, such as
            "promoter"; "region" in BED files.
        id: ID in GFF3, name in BED, locus_tag in GenBank.
        score: Score, if the feature has one.
        attributes: Other attributes in the file; several values are separated by commas.
        parts: Parts in reading order, such as the exons that a CDS is translated from.
        phase: For a CDS, the number of bases before the first whole codon.
    """

    interval: Interval
    kind: str
    id: str | None = None
    score: float | None = None
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    parts: tuple[Interval, ...] = ()
    phase: int | None = None

    def bases(self, genome: Genome) -> str:
        """Return the joined bases of all parts."""
        return "".join(genome.bases(part) for part in self.parts)


def placed(raw: Raw, contig: Contig, genome: str) -> Feature:
    """Return a feature with its position in a sequence, beyond which it must not lie."""
    parts = [_placed(part, raw, contig, genome) for part in raw.parts]
    strands = {part.strand for part in parts}
    order = list(range(len(parts)))  # in which parts are read
    if not raw.in_order and len(strands) == 1:
        order = _nearest(
            sorted(order, key=lambda i: (parts[i].start, parts[i].end)), parts, contig
        )
        if strands == {"-"}:
            order.reverse()
    read = [parts[i] for i in order]
    rising = read[::-1] if strands == {"-"} else read
    start, end, strand = rising[0].start, _end(rising, contig), parts[0].strand
    if len(strands) > 1 or end is None:  # spliced out of order, or from both strands
        start, end = min(part.start for part in parts), max(part.end for part in parts)
        strand = strand if len(strands) == 1 else "."
    else:
        rising = _over_the_origin(rising, contig)
        read = rising[::-1] if strands == {"-"} else rising
    return Feature(
        Interval(contig.name, start, end, strand),
        raw.kind,
        raw.id,
        raw.score,
        raw.attributes,
        tuple(read),
        raw.phases[order[0]],
    )


def _placed(part: tuple[int, int, str], raw: Raw, contig: Contig, genome: str) -> Interval:
    start, end, strand = part
    circular, length = contig.circular, contig.length
    limit = start + length if circular and start < length else length
    if start < 0 or end > limit:
        what = " ".join(filter(None, (raw.kind, raw.id)))
        hint = (
            ""
            if circular
            else (
                f". If it is circular, open it with circular=[{contig.name!r}], in the command "
                f"--circular {contig.name}"
            )
        )
        raise InvalidValueError(
            f"{raw.where}: {what} reaches from base {start + 1:,} to {end:,} of {raw.name}, which "
            f"has {length:,} bases in {genome}. Labels and genome must be of one assembly{hint}"
        )
    return Interval(contig.name, start, end, strand)


def _nearest(order: list[int], parts: Sequence[Interval], contig: Contig) -> list[int]:
    """Order parts on a circle from the widest gap on, so that they span as little as possible."""
    if not contig.circular or len(parts) == 1:
        return order
    gaps = [parts[after].start - parts[before].end for before, after in pairwise(order)]
    gaps.append(parts[order[0]].start + contig.length - max(part.end for part in parts))
    first = (gaps.index(max(gaps)) + 1) % len(parts)
    return order[first:] + order[:first]


def _end(rising: Sequence[Interval], contig: Contig) -> int | None:
    """Return the end of consecutive parts, or None if they span more than one round."""
    turns, last, end = 0, rising[0].start, 0
    for part in rising:
        if part.start + turns < last:
            turns += contig.length
        last = part.start + turns
        end = max(end, part.end + turns)
    once_round = end - rising[0].start <= contig.length
    return end if once_round and (contig.circular or not turns) else None


def _over_the_origin(rising: Sequence[Interval], contig: Contig) -> list[Interval]:
    """Join parts that meet at the origin."""
    joined: list[Interval] = []
    for part in rising:
        last = joined[-1] if joined else None
        if last and contig.circular and last.end == contig.length and part.start == 0:
            joined[-1] = replace(last, end=last.end + part.end)
        else:
            joined.append(part)
    return joined
