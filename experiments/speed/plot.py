"""Plots of time against length on logarithmic axes, with one line per contestant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from experiments.framework.page import digits
from experiments.speed.contest import Contest, Peer
from experiments.speed.timing import Samples, Spread

# Colours that readers with any colour vision tell apart (Okabe and Ito).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


@dataclass(frozen=True)
class Panel:
    """A pair of axes: lengths and seconds by the label of a contestant, Longbird first."""

    title: str
    lines: Mapping[str, Sequence[tuple[int, Spread]]]

    @classmethod
    def of(
        cls,
        title: str,
        series: Sequence[Contest],
        everybody: Sequence[Peer],
        seconds: Callable[[Contest], Samples] = lambda held: held.samples,
    ) -> Panel:
        """Return the panel of some comparisons."""
        taken = [(held.case.n, seconds(held)) for held in series]
        return cls(
            title,
            {
                peer.short: [(n, Spread.of(x[peer.name])) for n, x in taken if peer.name in x]
                for peer in everybody
            },
        )


def draw(rows: Sequence[Sequence[Panel]], heading: str, path: Path) -> None:
    """Draw rows of panels, each with a shared axis, into a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 1 + 4.6 * len(rows)), layout="constrained")
    width = max(len(panels) for panels in rows)
    grid = figure.subplots(len(rows), width, sharey="row", squeeze=False)
    for panels, pairs in zip(rows, grid, strict=True):
        for panel, axes in zip(panels, pairs, strict=False):
            _draw_panel(panel, axes)
        for axes in pairs[len(panels) :]:
            axes.set_axis_off()
        pairs[0].set_ylabel("milliseconds (median; band: fastest to slowest)")
    figure.suptitle(heading, fontsize=10, x=0.01, ha="left")
    figure.savefig(path, dpi=130)


def _draw_panel(panel: Panel, axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    lengths = sorted({n for points in panel.lines.values() for n, _ in points})
    axes.set_yscale("log")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    lines = [(*line, colour) for line, colour in zip(panel.lines.items(), cycle(_COLOURS))]
    (_draw_lines if len(lengths) > 1 else _draw_columns)(lines, lengths, panel.title, axes)


def _draw_lines(lines: Sequence[Any], lengths: Sequence[int], title: str, axes: Any) -> None:
    """Draw a line for each contestant."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    for i, (label, points, colour) in enumerate(lines):
        at = [n for n, _ in points]
        low, median, high = (
            [1e3 * getattr(spread, name) for _, spread in points]
            for name in ("low", "median", "high")
        )
        axes.plot(at, median, "o-", color=colour, lw=1.6 if i else 2.6, ms=4, label=label)
        axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_title(title, loc="left")
    axes.set_xlabel("tokens")
    axes.legend(frameon=False)
    axes.xaxis.set_major_locator(FixedLocator([n for n in lengths if n & (n - 1) == 0]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_tokens))


def _draw_columns(lines: Sequence[Any], lengths: Sequence[int], title: str, axes: Any) -> None:
    """Draw a column for each contestant; with one length, lines would be overlapping dots."""
    here = [line for line in lines if line[1]]
    for i, (_, [(_, spread)], colour) in enumerate(here):
        axes.plot([i, i], [1e3 * spread.low, 1e3 * spread.high], color=colour, lw=2)
        axes.plot([i], [1e3 * spread.median], "o", color=colour, ms=8)
        axes.annotate(
            digits(1e3 * spread.median), (i, 1e3 * spread.median), (10, 0),
            textcoords="offset points", va="center",
        )  # fmt: skip
    axes.set_title(f"{title}, {lengths[0]:,} tokens" if lengths else title, loc="left")
    axes.set_xticks(range(len(here)), [label.replace(" (", "\n(") for label, *_ in here])
    axes.set_xlim(-0.5, len(here) - 0.25)


def _tokens(value: float, _: object) -> str:
    return f"{value / 1024:g}k" if value >= 1024 else f"{value:g}"
