"""A picture of a stretch of a genome: labels, and the scores of a model below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longbird.applications.dna.division import PLACE, stretches
from longbird.applications.dna.genomes import Feature, Genome, Interval, open_signal, read_features
from longbird.applications.dna.genomes.labels import is_bed
from longbird.applications.dna.labels import is_signal, is_whole
from longbird.errors import InvalidValueError
from longbird.files.paths import check_picture_name

BLUE, RED, GREY = "#3465a4", "#c4472c", "#777777"
STRAND = {"+": BLUE, "-": RED, ".": GREY}
NAMED = 40
"""Features that are few enough to have their names beside them."""
LINE, EXON, BOX = 0.06, 0.2, 0.4
"""How thick the pieces of features are."""
UNTRANSLATED = ("exon", "five_prime_UTR", "three_prime_UTR", "UTR", "5'UTR", "3'UTR")
"""Kinds of parts of genes that are drawn thinner than what is translated."""
LETTER = 1 / 175
"""Of the width of a panel, that a letter of a name takes."""
POINTS = 4000
"""Of a line, that a picture shows; more are joined, the highest staying."""


class Scores(NamedTuple):
    """Scores of the bins of a stretch."""

    starts: np.ndarray
    ends: np.ndarray
    values: np.ndarray
    """[bins, channels]."""
    channels: tuple[str, ...]
    label: str
    threshold: float


class Piece(NamedTuple):
    """What is drawn of a feature: a part of it, or a line from its first part to its last."""

    name: str
    """Its own, if nothing else shows it."""
    interval: Interval
    thickness: float


class Known(NamedTuple):
    """What a file of labels says of a stretch."""

    title: str
    values: np.ndarray | None
    """Of a signal, [bases]."""
    pieces: list[Piece]
    """Of features, that lie in the stretch."""


def region_of(text: str, genome: Genome) -> Interval:
    """The stretch to draw: a sequence, or a place such as chr1:1-5000.

    Of a circular sequence with 5,000 bases, p:4801-200 and p:4801-5200 go over the origin.
    """
    place = PLACE.fullmatch(text)
    if place and text not in genome.sequences and genome.contig(place[1]).circular:
        contig = genome.contig(place[1])
        first, last = (int(place[each].replace(",", "")) for each in (2, 3))
        end = last + contig.length * (last < first)
        if 1 <= first <= contig.length and last >= 1 and end - first < contig.length:
            return Interval(contig.name, first - 1, end, "+")
    found = stretches(text, genome)
    if len(found) != 1:
        raise InvalidValueError(f"--plot takes one stretch, such as chr1:1-5000; received {text}")
    return found[0]


def known(file: Path, genome: Genome, region: Interval) -> Known:
    """Reads what a file says of a stretch; raises if it does not fit the genome."""
    if is_signal(str(file)):
        return Known(file.name, open_signal(file, genome).values(region), [])
    features = read_features(file, genome)
    if not is_bed(file):  # what covers a sequence says nothing, unless somebody put it there
        features = [
            each
            for each in features
            if not all(is_whole(part, genome) for part in each.parts or (each.interval,))
        ]
    return Known(file.name, None, _inside(features, genome, region))


def draw(
    region: Interval, length: int, scores: Scores, labels: Sequence[Known], file: Path
) -> None:
    """Draws a stretch into a file.

    Args:
        region: The stretch.
        length: Bases of its sequence; beyond them, the stretch goes on at the origin.
        scores: Those of its bins.
        labels: What is known of it.
        file: A .png, .svg or .pdf.
    """
    from matplotlib.figure import Figure

    stranded = scores.channels == ("+", "-")
    rows = [*labels, *([scores.label] if stranded else scores.channels)]
    heights = [*(1.0 for _ in labels), *(1.6 for _ in rows[len(labels) :])]
    figure = Figure(figsize=(10, 0.7 + 0.95 * sum(heights)), layout="constrained")
    panels: Any = figure.subplots(
        len(rows), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    for panel, own in zip(panels, labels, strict=False):
        if own.values is not None:
            _line(panel, np.arange(region.start, region.end), own.values, GREY)
        else:
            _features(panel, own.pieces, region)
        panel.set_title(own.title, loc="left", fontsize=9, parse_math=False)
    middles = (scores.starts + scores.ends - 1) / 2
    for number, panel in enumerate(panels[len(labels) :]):
        if stranded:
            _line(panel, middles, scores.values[:, 0], BLUE, "plus strand")
            _line(panel, middles, -scores.values[:, 1], RED, "minus strand, downwards")
            panel.set_ylim(-1.02, 1.02)
            panel.set_yticks([-1, 0, 1], ["1", "0", "1"])
            panel.axhline(-scores.threshold, color=GREY, linewidth=0.6, linestyle=":")
            beside = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
            panel.legend(fontsize=7, ncols=2, frameon=False, **beside)
        else:
            _line(panel, middles, scores.values[:, number], BLUE)
            panel.set_ylim(-0.02, 1.02)
        panel.axhline(scores.threshold, color=GREY, linewidth=0.6, linestyle=":")
        name = scores.label if stranded else scores.channels[number]
        panel.set_title(f"score: {name}", loc="left", fontsize=9, parse_math=False)
    panels[-1].set_xlim(region.start + 0.5, region.end + 0.5)
    panels[-1].set_xlabel(f"base of {_short(region.name)}", parse_math=False)
    panels[-1].xaxis.set_major_formatter(lambda at, _: f"{(at - 1) % length + 1:.10g}")
    if region.end > length:
        for panel in panels:
            panel.axvline(length + 0.5, color=GREY, linewidth=0.6)
    figure.savefig(file, dpi=150)


def _line(panel: Any, places: np.ndarray, values: np.ndarray, colour: str, name: str = "") -> None:
    """A line over the bases, counted from 1 as people do."""
    joined = -(-len(values) // POINTS)
    if joined > 1:
        rest = (0, -len(values) % joined)
        groups = np.pad(values, rest, constant_values=np.nan).reshape(-1, joined)
        far = np.nan_to_num(np.abs(groups), nan=-1.0).argmax(1)
        rows = np.arange(len(groups))
        values, places = groups[rows, far], np.pad(places, rest).reshape(-1, joined)[rows, far]
    panel.fill_between(places + 1, values, step="mid", color=colour, alpha=0.35, linewidth=0)
    panel.step(places + 1, values, where="mid", color=colour, linewidth=0.8, label=name or None)


def _inside(features: list[Feature], genome: Genome, region: Interval) -> list[Piece]:
    """What a stretch overlaps, counted as it is.

    Genes are lines on which their exons are boxes, as in genome browsers: a feature is a line if
    another is a part of it (Parent in GFF3, the same locus_tag in GenBank).
    """
    genes = {each.id for each in features if each.kind == "gene" and each.id}
    others = {each.id for each in features if each.kind != "gene"}
    names = {each.id for each in features}
    have_parts = {name for each in features for name in _parents(each)}
    shown: list[Piece] = []
    for feature in features:
        own, gene = feature.id or "", feature.kind == "gene"
        whole = own in have_parts or (gene and own in others)
        is_part = any(each in names for each in _parents(feature)) or (own in genes and not gene)
        name = "" if is_part else own
        parts = () if whole else feature.parts or (feature.interval,)
        lines = (feature.interval,) if whole or len(parts) > 1 else ()
        thickness = EXON if feature.kind in UNTRANSLATED else BOX
        drawn = [*((each, LINE) for each in lines), *((each, thickness) for each in parts)]
        for part, own_thickness in drawn:
            shown += _pieces(name, part, own_thickness, genome, region)
            name = ""
    return shown


def _parents(feature: Feature) -> list[str]:
    return [name for name in feature.attributes.get("Parent", "").split(",") if name]


def _pieces(
    name: str, part: Interval, thickness: float, genome: Genome, region: Interval
) -> Iterator[Piece]:
    """A part where a stretch overlaps it: on a circle, also a turn further or before."""
    if part.name != region.name:
        return
    length = genome.sequences[region.name].length
    for turn in (-length, 0, length):
        start, end = part.start + turn, part.end + turn
        if start < region.end and end > region.start:
            yield Piece(name, Interval(part.name, start, end, part.strand), thickness)


def _features(panel: Any, shown: list[Piece], region: Interval) -> None:
    """Boxes and lines: of the plus strand above, of the minus strand below."""
    level = {"+": 1.0, ".": 0.5, "-": 0.0}
    least = len(region) / 400  # narrower than a line, it would not be seen
    free = dict.fromkeys(level, -np.inf)  # from where on a name does not cover another
    for name, part, thickness in sorted(shown, key=lambda each: each.interval.start):
        wide = max(len(part), least)
        left = part.start + 0.5 - (wide - len(part)) / 2
        low = level[part.strand] + (BOX - thickness) / 2
        panel.broken_barh([(left, wide)], (low, thickness), color=STRAND[part.strand], alpha=0.8)
        at = max(left, region.start + 0.5)
        if not name or len(shown) > NAMED or at < free[part.strand]:
            continue
        free[part.strand] = at + (len(name) + 1) * len(region) * LETTER
        panel.text(at, level[part.strand] + 0.45, name, fontsize=6, clip_on=True, parse_math=False)
    panel.set_ylim(-0.1, 1.9)
    panel.set_yticks([0.2, 1.2], ["-", "+"])


def _short(name: str) -> str:
    """Of a sequence; some headers are a sentence without spaces."""
    return name if len(name) <= 80 else f"{name[:80]}..."


def named(place: Path | None, out: Path | None, region: Interval) -> Path:
    """Where a picture goes: where it was asked for, or beside the file of scores.

    Raises:
        ValueError: It has not the name of a picture.
    """
    if place is not None:
        check_picture_name(place)
        return place
    name = f"{_short(region.name)}-{region.start + 1}-{region.end}.png".replace("/", "_")
    return Path(name) if out is None else out.with_name(f"{out.stem}.{name}")
