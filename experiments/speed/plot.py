"""Plots of time against length on logarithmic axes, with one line per contestant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

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
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    lengths = sorted({n for points in panel.lines.values() for n, _ in points})
    for (label, points), colour in zip(panel.lines.items(), cycle(_COLOURS), strict=False):
        at = [n for n, _ in points]
        low, median, high = (
            [1e3 * getattr(spread, name) for _, spread in points]
            for name in ("low", "median", "high")
        )
        mine = label == next(iter(panel.lines))
        axes.plot(at, median, "o-", color=colour, lw=2.6 if mine else 1.6, ms=4, label=label)
        axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel("tokens")
    axes.legend(frameon=False)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(FixedLocator([n for n in lengths if n & (n - 1) == 0]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_tokens))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _tokens(value: float, _: object) -> str:
    return f"{value / 1024:g}k" if value >= 1024 else f"{value:g}"
