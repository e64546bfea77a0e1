"""Figures with their intervals, one panel for each metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.framework.experiment import Experiment
from experiments.framework.intervals import Figure
from experiments.framework.predictors import Predictors, draw_predictors

REFERENCE, OTHERS = "#D55E00", "#0072B2"


def draw(
    experiment: Experiment,
    figures: Mapping[str, Mapping[str, Figure]],
    names: Sequence[str],
    predictors: Predictors | None,
    path: Path,
) -> None:
    """Draw the value and interval of each contestant, and below them what predicts them."""
    from matplotlib.figure import Figure as Canvas

    width, height = 3 + 4 * len(experiment.metrics), 1.5 + 0.4 * len(names)
    if predictors is None:
        canvas = Canvas(figsize=(width, height), layout="constrained")
        upper: Any = canvas
    else:
        more = 3.4 * -(-len(predictors.measures) // 3) + 0.5
        canvas = Canvas(figsize=(max(width, 13.2), height + more), layout="constrained")
        parts: Any = canvas.subfigures(2, 1, height_ratios=[height, more])
        upper, lower = parts
        draw_predictors(predictors, lower)
    grid = upper.subplots(1, len(experiment.metrics), sharey=True, squeeze=False)[0]
    for axes, metric in zip(grid, experiment.metrics, strict=True):
        for row, name in enumerate(names):
            found = figures[metric.name][name]
            colour = REFERENCE if name == experiment.reference else OTHERS
            axes.plot([found.low, found.high], [row, row], color=colour, lw=2)
            axes.plot([found.value], [row], "o", color=colour, ms=6)
            if metric.name in (published := experiment.published_of(name)):
                axes.plot([published[metric.name]], [row], "x", color="#888888", ms=6)
        axes.set_title(metric.name, loc="left")
        axes.grid(True, axis="x", color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].set_yticks(range(len(names)), names)
    grid[0].invert_yaxis()
    upper.suptitle(
        f"{experiment.title} (bars: 95% intervals; crosses: published)",
        fontsize=10, x=0.01, ha="left",
    )  # fmt: skip
    canvas.savefig(path, dpi=130)
