"""Time against length, log-log, one line a contestant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, pairwise
from pathlib import Path

from longbird.bench.attention import Result
from longbird.bench.timing import Spread

# Colours that readers with any colour vision tell apart (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def write(result: Result, path: Path) -> Path:
    """Draw forward beside forward and backward, with each line labelled at its end.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure = Figure(figsize=(13, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True)
    labels = {result.longbird: result.longbird}
    labels |= {peer.name: peer.short for peer in result.settings.peers}
    lengths = sorted({series.n for series in result.series})
    for axes, backward in zip(panels, (False, True), strict=True):
        ends: list[tuple[float, float, str, str]] = []
        for name, colour in zip(labels, cycle(_COLOURS), strict=False):
            points = [
                (series.n, Spread.of(series.samples[name]))
                for series in result.series
                if series.backward == backward and name in series.samples
            ]
            if not points:
                continue
            at = [n for n, _ in points]
            median = [1e3 * spread.median for _, spread in points]
            mine = name == result.longbird
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
            ends.append((at[-1], median[-1], labels[name], colour))
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title("forward and backward" if backward else "forward", loc="left")
        axes.set_xlabel("tokens")
        axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(lengths[0] * 0.85, lengths[-1] * 14)
        axes.xaxis.set_major_locator(FixedLocator([n for n in lengths if n & (n - 1) == 0]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(_tokens))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
        # All labels stand in one column at the right, where no line runs through them.
        column = lengths[-1] * 1.5
        heights = _apart([y for _, y, _, _ in ends], *axes.get_ylim())
        for (x, y, label, colour), height in zip(ends, heights, strict=True):
            axes.plot(
                [x, column], [y, height], color=colour, linewidth=0.7, linestyle=":", zorder=1
            )
            axes.text(column * 1.05, height, label, color=colour, fontsize=9.5, va="center")
    panels[0].set_ylabel("milliseconds a call (median; band: fastest to slowest)")
    where = result.environment
    figure.suptitle(
        f"{where['cpu']}, threads: {where['threads']}, {result.date}\n{result.settings.work}",
        fontsize=10,
        x=0.01,
        ha="left",
    )
    figure.savefig(path, dpi=130)
    return path


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
