"""A picture of Task 1: accuracy layer by layer, and layers against the number of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from longbird.theory.furthest import Outcome

# Colours that colour-blind eyes tell apart (Okabe-Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def draw(outcomes: Sequence[Outcome], path: str | Path) -> None:
    """Writes a PNG, SVG or PDF file, by the ending of its name.

    On the left, at the largest n, the share of vectors that have found the furthest after each
    layer; dashed, the share whose furthest is within as many hops. On the right, layers against n;
    dotted, the lower bound n (n - 1) / edges.

    Raises:
        ValueError: The name has another ending.
    """
    from matplotlib.figure import Figure

    if Path(path).suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(
            f"received {str(path)!r} to write a picture to, expected a name that ends in .png, "
            ".svg or .pdf"
        )
    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = dict.fromkeys(outcome.name for outcome in outcomes)
    largest = max(outcome.n for outcome in outcomes)
    for name, colour in zip(names, cycle(COLOURS), strict=False):
        own = [outcome for outcome in outcomes if outcome.name == name]
        for outcome in own:
            if outcome.n == largest:
                _draw_layers(left, outcome, colour)
        sizes = [outcome.n for outcome in own]
        bounds = [outcome.comparisons for outcome in own]
        right.plot(sizes, bounds, ":", color=colour, label=f"{name}: n(n-1)/edges")
        done = [(outcome.n, outcome.layers) for outcome in own if outcome.layers]
        if done:
            right.plot(*zip(*done, strict=True), "o-", color=colour, label=name)
    left.set(xlabel="layers", ylabel="share of vectors", title=f"{largest} vectors")
    left.set_xscale("log", base=2)
    right.set(xlabel="vectors", ylabel="layers", title="layers until all have found the furthest")
    right.set_xscale("log", base=2)
    right.set_yscale("log", base=2)
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def _draw_layers(axes: Any, outcome: Outcome, colour: str) -> None:
    layers = range(1, len(outcome.within) + 1)
    axes.plot(layers, outcome.within, "--", color=colour, label=f"{outcome.name}: within hops")
    if outcome.accuracy:
        axes.plot(layers, outcome.accuracy, "o-", ms=3, color=colour, label=outcome.name)
