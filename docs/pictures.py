"""Draw the pictures of the README: run `python docs/pictures.py` after the data has changed.

`docs/bigbird.png` shows the BigBird graph. `docs/speed.png` shows the time of one call of
attention, as recorded in the results of an experiment.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import longbird as lb
from longbird.analysis.drawing import picture

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "experiments" / "results" / "attention_amd-epyc-avx512_2026-11-16.json"
LENGTH = 4096

# Colours that readers with any colour vision can tell apart (Okabe and Ito).
CONTESTANTS = {
    "Hugging Face BigBird core": ("Hugging Face BigBird", "#CC79A7"),
    "dense SDPA": ("dense attention (SDPA)", "#D55E00"),
    "compiled FlexAttention": ("FlexAttention", "#009E73"),
    "longbird native": ("Longbird", "#0072B2"),
}


def main() -> None:
    """Draw both pictures."""
    picture(lb.bigbird(), LENGTH, name="BigBird").save(DOCS / "bigbird.png")
    draw_speed(json.loads(RESULTS.read_text())).savefig(DOCS / "speed.png", dpi=130)


def medians(results: dict[str, Any], *, backward: bool) -> dict[str, dict[int, float]]:
    """Return the median milliseconds of each contestant by the number of tokens."""
    times: dict[str, dict[int, float]] = {name: {} for name in CONTESTANTS}
    for contest in results["contests"]:
        case = contest["case"]
        if case["pattern"] != "bigbird" or case["backward"] != backward:
            continue
        for name in CONTESTANTS.keys() & contest["samples"].keys():
            # A later contest at the same length measures something else; keep the first.
            times[name].setdefault(case["n"], 1e3 * statistics.median(contest["samples"][name]))
    return {name: by_length for name, by_length in times.items() if by_length}


def draw_speed(results: dict[str, Any]) -> Figure:
    """Draw the forward pass at all lengths, and the backward pass at the one that was measured."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    lines, bars = figure.subplots(1, 2, width_ratios=(3, 2))
    draw_lines(lines, medians(results, backward=False))
    draw_bars(bars, medians(results, backward=True))
    environment = results["environment"]
    figure.supxlabel(
        f"{environment['cpu']}, {environment['threads']} threads, float32, "
        f"12 heads of 64 channels, {results['date']}",
        fontsize=9,
        color="#555555",
    )
    return figure


def draw_lines(axes: Any, times: dict[str, dict[int, float]]) -> None:
    """Draw time against length, with the name of each contestant at the end of its line."""
    for name, by_length in times.items():
        label, colour = CONTESTANTS[name]
        lengths, milliseconds = list(by_length), list(by_length.values())
        width = 2.8 if name == "longbird native" else 1.6
        axes.plot(lengths, milliseconds, "o-", color=colour, lw=width, ms=4)
        above = name == "Hugging Face BigBird core"
        axes.annotate(
            label,
            (lengths[-1], milliseconds[-1]),
            xytext=(0, 7) if above else (7, -3),
            textcoords="offset points",
            ha="center" if above else "left",
            color=colour,
            fontweight="bold" if name == "longbird native" else "normal",
        )
    ticks = sorted({length for by_length in times.values() for length in by_length})
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="milliseconds per call (median)")
    axes.set_xlim(ticks[0] / 1.3, ticks[-1] * 7)
    axes.set_title("Forward", loc="left")
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.tick_params(axis="x", labelsize=8)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def draw_bars(axes: Any, times: dict[str, dict[int, float]]) -> None:
    """Draw one bar for each contestant at the one length that all of them were measured at."""
    names = [name for name in times if LENGTH in times[name]]
    for row, name in enumerate(reversed(names)):
        label, colour = CONTESTANTS[name]
        bar = axes.barh(row, times[name][LENGTH], color=colour, height=0.6)
        axes.bar_label(bar, fmt="{:,.0f} ms", padding=4)
        axes.text(0, row + 0.36, label, va="bottom", color=colour)
    axes.set_title(f"Forward and backward, {LENGTH:,} tokens", loc="left")
    axes.set_xlim(0, 1.2 * max(times[name][LENGTH] for name in names))
    axes.set_ylim(-0.5, len(names) - 0.2)
    axes.set_axis_off()


if __name__ == "__main__":
    main()
