"""Pictures of the demonstrations: the tape of a machine, codes of tokens, furthest vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from longbird.analysis.theory.limits import Outcome
from longbird.analysis.theory.turing import INPUT, MachineRun
from longbird.analysis.theory.universality import Report
from longbird.files.paths import check_picture

# Colours that can be distinguished by the colour-blind (Okabe-Ito).
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#f0e442", "#999999")
WARNING = "#d55e00"
PALE = "#f2f2f2"


def draw_run(run: MachineRun, path: str | Path) -> None:
    """Draw a run into a PNG, SVG or PDF file, according to the extension of its name.

    The left panel shows the tape, a row for each step, with the path of the head. The right panel
    shows for each step the earlier steps whose records its scan nodes read (grey), and the step
    whose symbol the head then found (in the colour of the symbol).

    Raises:
        ValueError: The name has another extension.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    check_picture(path)
    symbols = run.machine.symbols
    colours = [PALE, *(COLOURS[k % len(COLOURS)] for k in range(len(symbols) - 1))]
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    tape, first = _tape_image(run)
    rows, cells = tape.shape
    left.imshow(
        tape,
        cmap=ListedColormap(colours),
        vmin=-0.5,
        vmax=len(symbols) - 0.5,
        extent=(first - 0.5, first + cells - 0.5, rows - 0.5, -0.5),
        aspect="auto",
        interpolation="nearest",
    )
    head = [each.cell for each in run.configurations]
    left.plot(head, range(rows), color="black", lw=1, marker="o", ms=min(3, 120 / rows))
    left.set(xlabel="cell", ylabel="step", title="tape, and where the head is")
    _draw_attention(right, run, colours)
    patches = [
        Patch(facecolor=colour, edgecolor="silver", label=f"{symbol} (blank)" * (not k) or symbol)
        for k, (symbol, colour) in enumerate(zip(symbols, colours, strict=True))
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=8, frameon=False)
    figure.suptitle(str(run).splitlines()[0] + f"; {run.nodes:,} nodes", fontsize=10)
    figure.savefig(path, dpi=130)


def _tape_image(run: MachineRun) -> tuple[Any, int]:
    """Return the number of the symbol on each cell at each step, and the first cell."""
    visited = [each.cell for each in run.configurations]
    first = min([0, *visited]) - 1
    last = max([0, len(run.text) - 1, *visited]) + 1
    number = {symbol: k for k, symbol in enumerate(run.machine.symbols)}
    image = np.zeros((len(visited), last - first + 1), np.int64)
    for row, tape in zip(image, run.tapes(), strict=True):
        for cell, symbol in tape.items():
            row[cell - first] = number[symbol]
    return image, first


def _draw_attention(axes: Any, run: MachineRun, colours: list[str]) -> None:
    steps = len(run.configurations)
    axes.fill([-0.5, steps - 0.5, -0.5], [-0.5, steps - 0.5, steps - 0.5], color="#e6e6e6", lw=0)
    number = {symbol: k for k, symbol in enumerate(run.machine.symbols)}
    found = [
        (source if source >= 0 else -1, step, number[each.symbol])
        for step, (source, each) in enumerate(zip(run.sources, run.configurations, strict=True))
        if source >= 0 or source == INPUT
    ]
    if found:
        source, step, symbol = np.array(found).T
        axes.scatter(
            source,
            step,
            c=[colours[k] for k in symbol],
            s=max(4, 600 / steps),
            edgecolors="black",
            linewidths=0.4,
            zorder=3,
        )
    axes.set(
        xlim=(-1.5, steps - 0.5),
        ylim=(steps - 0.5, -0.5),
        xlabel="step that wrote the symbol (-1: the input)",
        ylabel="step",
        title="attention: records read (grey), and the last write",
    )


def draw_codes(reports: Sequence[Report], path: str | Path) -> None:
    """Draw a panel for each report into a PNG, SVG or PDF file, according to its extension.

    The x axis has the sequences in lexicographic order. A dot is a token; its height is the rank
    of its code among all codes. Dots with the same code as another are ringed.

    Raises:
        ValueError: The name has another extension.
    """
    from matplotlib.figure import Figure

    check_picture(path)
    figure = Figure(figsize=(1 + 5 * len(reports), 4.8), layout="constrained")
    panels = figure.subplots(1, len(reports), squeeze=False)[0]
    labels: dict[str, Any] = {}
    for axes, report in zip(panels, reports, strict=True):
        owners = Counter(code for result in report.results.values() for code in result.codes)
        rank = {code: place for place, code in enumerate(sorted(owners), start=1)}
        for token in range(report.construction.n):
            codes = [result.codes[token] for result in report.results.values()]
            heights = [rank[code] for code in codes]
            colour = COLOURS[token % len(COLOURS)]
            axes.scatter(
                range(len(codes)), heights, s=14, color=colour, label=f"token {token + 1}"
            )
        shared = [
            (place, rank[code])
            for place, result in enumerate(report.results.values())
            for code in result.codes
            if owners[code] > 1
        ]
        if shared:
            axes.scatter(
                *zip(*shared, strict=True),
                s=70,
                facecolors="none",
                edgecolors=WARNING,
                label="the same code as another",
            )
        star = "no star" if report.centre is None else f"star around position {report.centre}"
        total = sum(owners.values())
        axes.set_title(
            f"{report.graph!r:.60}\n{star}: {report.distinct} codes for {total} tokens", fontsize=9
        )
        axes.set(xlabel="sequence, in lexicographic order", ylabel="code, by rank")
        axes.spines[["top", "right"]].set_visible(False)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            labels.setdefault(label, handle)
    figure.legend(
        labels.values(), labels, loc="outside lower center", ncols=6, frameon=False, fontsize=8
    )
    figure.savefig(path, dpi=130)


def draw_furthest(outcomes: Sequence[Outcome], path: str | Path) -> None:
    """Draw outcomes into a PNG, SVG or PDF file, according to the extension of its name.

    The left panel shows for the largest n the share of vectors that have found the furthest after
    each layer and, dashed, the share whose furthest is within as many hops. The right panel shows
    the layers by n, dotted the lower bound n (n - 1) / edges, and grey n, the order of the bound
    in the paper.

    Raises:
        ValueError: The name has another extension.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    check_picture(path)
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = dict.fromkeys(outcome.name for outcome in outcomes)
    every = sorted({outcome.n for outcome in outcomes})
    largest, alone = every[-1], len(every) == 1  # a line takes two points
    lines: list[Line2D] = []
    for name, colour in zip(names, cycle((COLOURS[0], WARNING, *COLOURS[2:])), strict=False):
        own = [outcome for outcome in outcomes if outcome.name == name]
        for outcome in own:
            if outcome.n == largest:
                _draw_layers(left, outcome, colour)
        sizes = [outcome.n for outcome in own]
        bounds = [outcome.comparisons for outcome in own]
        right.plot(sizes, bounds, "D:" if alone else ":", ms=4, color=colour, mfc="none")
        done = [(outcome.n, outcome.layers) for outcome in own if outcome.layers]
        if done:
            right.plot(*zip(*done, strict=True), "o-", ms=4, color=colour)
        lines.append(Line2D([], [], color=colour, label=name))
    label = "n, the order of the paper's bound"
    marker = "s" if alone else ""
    (order,) = right.plot(every, every, marker, color="#bbbbbb", lw=5, zorder=0, label=label)
    lines.append(order)
    left.set(xlabel="layers", ylabel="share of vectors")
    left.set_title(f"{largest} vectors: furthest found, and (dashed) within hops", fontsize=10)
    left.set_xscale("log", base=2)
    right.set(xlabel="vectors", ylabel="layers")
    bound = "diamonds" if alone else "dotted"
    right.set_title(f"layers until all have found it, and ({bound}) n(n-1)/edges", fontsize=10)
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    figure.legend(handles=lines, loc="outside lower center", ncols=4, frameon=False)
    for axes in (left, right):
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def _draw_layers(axes: Any, outcome: Outcome, colour: str) -> None:
    layers = range(1, len(outcome.within) + 1)
    axes.plot(layers, outcome.within, "--", color=colour)
    if outcome.accuracy:
        axes.plot(layers, outcome.accuracy, "o-", ms=3, color=colour)
