"""Time against length, log-log, one line a contestant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

from longbird.bench.attention import Result
from longbird.bench.timing import Spread

# Colours that readers with any colour vision tell apart (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


@dataclass(frozen=True)
class Panel:
    """One pair of axes: for each contestant's label, lengths and seconds. The first is ours."""

    title: str
    lines: Mapping[str, Sequence[tuple[int, Spread]]]


def write(result: Result, path: Path) -> Path:
    """Draw forward beside forward and backward, with each line labelled at its end.

    Raises:
        ImportError: matplotlib is not installed.
    """
    labels = {result.longbird: result.longbird}
    labels |= {peer.name: peer.short for peer in result.settings.peers}
    panels = [
        Panel(
            "forward and backward" if backward else "forward",
            {
                label: [
                    (series.n, Spread.of(series.samples[name]))
                    for series in result.series
                    if series.backward == backward and name in series.samples
                ]
                for name, label in labels.items()
            },
        )
        for backward in (False, True)
    ]
    where = result.environment
    heading = f"{where['cpu']}, threads: {where['threads']}, {result.date}\n{result.settings.work}"
    return draw([panels], heading, "milliseconds a call", path)


def draw(rows: Sequence[Sequence[Panel]], heading: str, unit: str, path: Path) -> Path:
    """Draw panels, whose rows share an axis, into a file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 1 + 4.6 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(rows), len(rows[0]), sharey="row", squeeze=False)
    for panels, pairs in zip(rows, grid, strict=True):
        for panel, axes in zip(panels, pairs, strict=True):
            _draw_panel(panel, axes)
        pairs[0].set_ylabel(f"{unit} (median; band: fastest to slowest)")
    figure.suptitle(heading, fontsize=10, x=0.01, ha="left")
    figure.savefig(path, dpi=130)
    return path


def _draw_panel(panel: Panel, axes: Any) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ends: list[tuple[float, float, str, str]] = []
    lengths = sorted({n for points in panel.lines.values() for n, _ in points})
    for (label, points), colour in zip(panel.lines.items(), cycle(_COLOURS), strict=False):
        if not points:
            continue
        at = [n for n, _ in points]
        median = [1e3 * spread.median for _, spread in points]
        mine = label == next(iter(panel.lines))
        axes.plot(
            at,
            median,
            color=colour,
            linewidth=2.6 if mine else 1.6,
            marker="o",
            markersize=4,
            zorder=3 if mine else 2,
        )
        axes.fill_between(
            at,
            [1e3 * spread.low for _, spread in points],
            [1e3 * spread.high for _, spread in points],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
        ends.append((at[-1], median[-1], label, colour))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel("tokens")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    # The labels take a quarter of the width, however many lengths there are.
    first, last = lengths[0] * 0.85, lengths[-1] * 1.15
    reach = max(2.0, last / first)
    axes.set_xlim(first, last * reach**0.4)
    axes.xaxis.set_major_locator(FixedLocator([n for n in lengths if n & (n - 1) == 0]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_tokens))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    # All labels stand in one column at the right, where no line runs through them.
    column = last * reach**0.05
    heights = _apart([y for _, y, _, _ in ends], *axes.get_ylim())
    for (x, y, label, colour), height in zip(ends, heights, strict=True):
        axes.plot([x, column], [y, height], color=colour, linewidth=0.7, linestyle=":", zorder=1)
        axes.text(column * reach**0.01, height, label, color=colour, fontsize=9.5, va="center")


def _tokens(value: float, _: object) -> str:
    return f"{value / 1024:g}k" if value >= 1024 else f"{value:g}"


def _apart(heights: Sequence[float], bottom: float, top: float) -> list[float]:
    """Heights of labels on a logarithmic axis, pushed apart where they would lie on each other."""
    line = (top / bottom) ** 0.05
    ascending = sorted(range(len(heights)), key=lambda each: heights[each])
    places = list(heights)
    for below, above in pairwise(ascending):
        places[above] = max(places[above], places[below] * line)
    for above, below in pairwise(reversed(ascending)):
        places[above] = min(places[above], top)
        places[below] = min(places[below], places[above] / line)
    return places
