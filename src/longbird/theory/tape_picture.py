"""A picture of a decoder that runs a Turing machine: tape, head and attention over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longbird.theory.turing import INPUT, Run

# Colours that colour-blind eyes tell apart (Okabe-Ito); the blank is the lightest grey.
BLANK_COLOUR = "#f2f2f2"
COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999",
)  # fmt: skip


def draw(run: Run, path: str | Path) -> None:
    """Writes a PNG, SVG or PDF file, by the ending of its name.

    On the left is the tape, a row for each step, with the head's way over it. On the right, for
    each step, the earlier steps whose records its scan nodes read (grey), and the one whose symbol
    the head then found (coloured by the symbol).

    Raises:
        ValueError: The name has another ending.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    if Path(path).suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(
            f"received {str(path)!r} to write a picture to, expected a name that ends in .png, "
            ".svg or .pdf"
        )
    symbols = run.machine.symbols
    colours = [BLANK_COLOUR, *(COLOURS[k % len(COLOURS)] for k in range(len(symbols) - 1))]
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


def _tape_image(run: Run) -> tuple[Any, int]:
    """The number of the symbol on each cell at each step: [rows, cells], and the first cell."""
    visited = [each.cell for each in run.configurations]
    first = min(0, *visited) - 1
    last = max(len(run.text) - 1, *visited, 0) + 1
    number = {symbol: k for k, symbol in enumerate(run.machine.symbols)}
    image = np.zeros((len(visited), last - first + 1), np.int64)
    for row, tape in zip(image, run.tapes(), strict=True):
        for cell, symbol in tape.items():
            row[cell - first] = number[symbol]
    return image, first


def _draw_attention(axes: Any, run: Run, colours: list[str]) -> None:
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
