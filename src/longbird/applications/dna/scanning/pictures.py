"""Pictures of a region of a genome: known labels above the scores of a model."""

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
COLOURS = {"+": BLUE, "-": RED, ".": GREY}
MAXIMUM_NAMED = 40
"""Maximum number of features whose names are shown."""
LINE, EXON, BOX = 0.06, 0.2, 0.4
"""Thickness of introns, untranslated exons and other parts of features."""
UNTRANSLATED = ("exon", "five_prime_UTR", "three_prime_UTR", "UTR", "5'UTR", "3'UTR")
"""Kinds of parts of genes that are drawn thinner than translated parts."""
LETTER = 1 / 175
"""Width of a letter of a name, as a share of the width of a panel."""
MAXIMUM_POINTS = 4000
"""Maximum number of points of a line; of neighbours beyond it, the highest is shown."""


class Scores(NamedTuple):
    """Scores of the bins of a region."""

    starts: np.ndarray
    ends: np.ndarray
    values: np.ndarray
    """[bins, channels]."""
    channels: tuple[str, ...]
    label: str
    threshold: float


class Shape(NamedTuple):
    """A part of a feature, or the line from its first part to its last."""

    name: str
    """Name of the feature, for its first shape only."""
    interval: Interval
    thickness: float


class Labels(NamedTuple):
    """The content of a label file in a region."""

    title: str
    values: np.ndarray | None
    """Values of a signal, [bases]."""
    shapes: list[Shape]
    """Shapes of the features in the region."""


def parse_region(text: str, genome: Genome) -> Interval:
    """Parse the region to draw: the name of a sequence, or a place such as chr1:1-5000.

    On a circular sequence of 5,000 bases, p:4801-200 and p:4801-5200 cross the origin.
    """
    place = PLACE.fullmatch(text)
    if place and text not in genome.sequences and genome.contig(place[1]).circular:
        contig = genome.contig(place[1])
        first, last = (int(place[each].replace(",", "")) for each in (2, 3))
        end = last + contig.length * (last < first)
        if 1 <= first <= contig.length and last >= 1 and end - first < contig.length:
            return Interval(contig.name, first - 1, end, "+")
    regions = stretches(text, genome)
    if len(regions) != 1:
        raise InvalidValueError(
            option="plot", expected="one region, such as chr1:1-5000", received=text
        )
    return regions[0]


def read_labels(file: Path, genome: Genome, region: Interval) -> Labels:
    """Read what a label file has in a region; raise if it does not match the genome."""
    if is_signal(str(file)):
        return Labels(file.name, open_signal(file, genome).values(region), [])
    features = read_features(file, genome)
    if not is_bed(file):  # annotations describe whole sequences as features, which is no position
        features = [
            each
            for each in features
            if not all(is_whole(part, genome) for part in each.parts or (each.interval,))
        ]
    return Labels(file.name, None, _shapes(features, genome, region))


def draw(
    region: Interval, length: int, scores: Scores, labels: Sequence[Labels], file: Path
) -> None:
    """Draw a region of a sequence of this length, with its scores and known labels."""
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
            _features(panel, own.shapes, region)
        panel.set_title(own.title, loc="left", fontsize=9, parse_math=False)
    for number, panel in enumerate(panels[len(labels) :]):
        _scores(panel, scores, number, stranded)
    panels[-1].set_xlim(region.start + 0.5, region.end + 0.5)
    panels[-1].set_xlabel(f"base of {_shortened(region.name)}", parse_math=False)
    panels[-1].xaxis.set_major_formatter(lambda at, _: f"{(at - 1) % length + 1:.10g}")
    if region.end > length:
        for panel in panels:
            panel.axvline(length + 0.5, color=GREY, linewidth=0.6)
    figure.savefig(file, dpi=150)


def _scores(panel: Any, scores: Scores, channel: int, stranded: bool) -> None:
    """Draw one channel, or both strands: plus upwards and minus downwards."""
    middles = (scores.starts + scores.ends - 1) / 2
    if stranded:
        _line(panel, middles, scores.values[:, 0], BLUE, "plus strand")
        _line(panel, middles, -scores.values[:, 1], RED, "minus strand, downwards")
        panel.set_ylim(-1.02, 1.02)
        panel.set_yticks([-1, 0, 1], ["1", "0", "1"])
        panel.axhline(-scores.threshold, color=GREY, linewidth=0.6, linestyle=":")
        position = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
        panel.legend(fontsize=7, ncols=2, frameon=False, **position)
    else:
        _line(panel, middles, scores.values[:, channel], BLUE)
        panel.set_ylim(-0.02, 1.02)
    panel.axhline(scores.threshold, color=GREY, linewidth=0.6, linestyle=":")
    name = scores.label if stranded else scores.channels[channel]
    panel.set_title(f"score: {name}", loc="left", fontsize=9, parse_math=False)


def _line(panel: Any, places: np.ndarray, values: np.ndarray, colour: str, name: str = "") -> None:
    """Draw a line over bases, which are counted from 1 in pictures."""
    joined = -(-len(values) // MAXIMUM_POINTS)
    if joined > 1:
        rest = (0, -len(values) % joined)
        groups = np.pad(values, rest, constant_values=np.nan).reshape(-1, joined)
        highest = np.nan_to_num(np.abs(groups), nan=-1.0).argmax(1)
        rows = np.arange(len(groups))
        values, places = groups[rows, highest], np.pad(places, rest).reshape(-1, joined)
        places = places[rows, highest]
    panel.fill_between(places + 1, values, step="mid", color=colour, alpha=0.35, linewidth=0)
    panel.step(places + 1, values, where="mid", color=colour, linewidth=0.8, label=name or None)


def _shapes(features: list[Feature], genome: Genome, region: Interval) -> list[Shape]:
    """Return the shapes of features that a region overlaps.

    Genes are lines on which their exons are boxes, as in genome browsers: a feature is a line if
    another is a part of it (Parent in GFF3, the same locus_tag in GenBank).
    """
    genes = {each.id for each in features if each.kind == "gene" and each.id}
    others = {each.id for each in features if each.kind != "gene"}
    names = {each.id for each in features}
    have_parts = {name for each in features for name in _parents(each)}
    shapes: list[Shape] = []
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
            shapes += _in_region(Shape(name, part, own_thickness), genome, region)
            name = ""
    return shapes


def _parents(feature: Feature) -> list[str]:
    return [name for name in feature.attributes.get("Parent", "").split(",") if name]


def _in_region(shape: Shape, genome: Genome, region: Interval) -> Iterator[Shape]:
    """Yield a shape where a region overlaps it, also beyond the origin of a circular sequence."""
    part = shape.interval
    if part.name != region.name:
        return
    length = genome.sequences[region.name].length
    for turn in (-length, 0, length):
        start, end = part.start + turn, part.end + turn
        if start < region.end and end > region.start:
            yield shape._replace(interval=Interval(part.name, start, end, part.strand))


def _features(panel: Any, shapes: list[Shape], region: Interval) -> None:
    """Draw boxes and lines, the plus strand above the minus strand."""
    level = {"+": 1.0, ".": 0.5, "-": 0.0}
    minimum_width = len(region) / 400  # narrower boxes would be invisible
    free = dict.fromkeys(level, -np.inf)  # where the next name does not cover another
    for name, part, thickness in sorted(shapes, key=lambda each: each.interval.start):
        width = max(len(part), minimum_width)
        left = part.start + 0.5 - (width - len(part)) / 2
        low = level[part.strand] + (BOX - thickness) / 2
        panel.broken_barh([(left, width)], (low, thickness), color=COLOURS[part.strand], alpha=0.8)
        at = max(left, region.start + 0.5)
        if not name or len(shapes) > MAXIMUM_NAMED or at < free[part.strand]:
            continue
        free[part.strand] = at + (len(name) + 1) * len(region) * LETTER
        panel.text(at, level[part.strand] + 0.45, name, fontsize=6, clip_on=True, parse_math=False)
    panel.set_ylim(-0.1, 1.9)
    panel.set_yticks([0.2, 1.2], ["-", "+"])


def _shortened(name: str) -> str:
    """Shorten the name of a sequence, which may be a whole sentence."""
    return name if len(name) <= 80 else f"{name[:80]}..."


def picture_path(picture: Path | None, out: Path | None, region: Interval) -> Path:
    """Return the file of a picture: as given, or else beside the file of scores.

    Raises:
        InvalidValueError: The ending is not that of a picture.
    """
    if picture is not None:
        check_picture_name(picture)
        return picture
    name = f"{_shortened(region.name)}-{region.start + 1}-{region.end}.png".replace("/", "_")
    return Path(name) if out is None else out.with_name(f"{out.stem}.{name}")
