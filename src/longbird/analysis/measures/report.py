"""The measures of graphs as tables and as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from longbird.analysis.measures.digraph import Ints
from longbird.analysis.measures.small_world import SmallWorld

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from longbird.analysis.measures.analysis import Analysis, Measures


# Measures that have bounds if they are not exact; the others have 95% confidence intervals.
BOUNDED = (
    "diameter", "spectral_gap", "second_eigenvalue", "smallest_eigenvalue", "walk_gap",
    "mixing_time",
)  # fmt: skip
# Number of layers that a table lists.
LISTED = 4
# Maximum length of the name of a graph in a table.
WIDEST = 48


def measure_rows(measures: Measures) -> list[tuple[str, str, str]]:
    """Return the rows of the table: a measure, its value, and whether it is exact."""
    far = measures.reached[-1] if measures.reached else 1.0
    never = "none" if measures.walk_gap is None else "not known" if measures.walk_gap else "never"
    found = [
        ("density", "density", _number(measures.density)),
        ("edges", "edges", f"{measures.edges:,}"),
        ("keys a query sees", "out_degree", str(measures.out_degree)),
        ("queries that see a key", "in_degree", str(measures.in_degree)),
        ("global tokens", "global_tokens", f"{measures.global_tokens:,}"),
        ("cut to tokens all see", "edges_to_globals", _cut_text(measures.edges_to_globals)),
        (
            "cut from tokens seeing all",
            "edges_from_globals",
            _cut_text(measures.edges_from_globals),
        ),
        ("diameter", "diameter", _number(measures.diameter, "none: not all pairs are connected")),
        ("average path length", "average_path_length", _number(measures.average_path_length)),
        ("pairs that are connected", "connected", f"{100 * far:.6g}%"),
        ("pairs reached by layer", "reached", _layers(measures.reached, "{:.3%}")),
        ("tokens seen, mean", "receptive_field_mean", _layers(measures.receptive_field_mean)),
        ("tokens seen, fewest", "receptive_field_min", _layers(measures.receptive_field_min)),
        ("clustering", "clustering", _number(measures.clustering)),
        ("spectral gap", "spectral_gap", _number(measures.spectral_gap)),
        ("gap of the random walk", "walk_gap", _number(measures.walk_gap)),
        ("mixing time, at most", "mixing_time", _number(measures.mixing_time, never)),
        *_small_world_rows(measures.small_world, "small_world", ""),
    ]
    if measures.small_world_without_globals != measures.small_world:
        other = measures.small_world_without_globals
        found += _small_world_rows(other, "small_world_without_globals", " without hubs")
    return [(label, value, _how(measures, name)) for label, name, value in found]


def _how(measures: Measures, name: str) -> str:
    name, _, which = name.partition(".")
    if name.startswith("small_world"):
        world: SmallWorld | None = getattr(measures, name)
        return "" if world is None else _against(world, which)
    if name == "connected":
        if measures.reached_intervals is None or measures.diameter is not None:
            return "exact"
        return "95%: {:.5g}% to {:.5g}%".format(*(100 * x for x in measures.reached_intervals[-1]))
    if measures.exact(name):
        return "exact"
    if name not in measures.intervals:
        return "the gap may be 0" if name == "mixing_time" else _sampled(measures, name)
    low, high = (f"{bound:,.5g}" for bound in measures.intervals[name])
    return f"between {low} and {high}" if name in BOUNDED else f"95%: {low} to {high}"


def _sampled(measures: Measures, name: str) -> str:
    """Return the interval of a measure by layers, for the last layer that is listed."""
    assert measures.reached_intervals is not None
    if name == "receptive_field_min":
        return "of a sample"
    layer = min(LISTED, len(measures.reached)) - 1
    low, high = measures.reached_intervals[layer]
    if name == "reached":
        return f"layer {layer + 1}, 95%: {low:.3%} to {high:.3%}"
    low, high = (1 + each * (measures.n - 1) for each in (low, high))
    return f"layer {layer + 1}, 95%: {low:,.5g} to {high:,.5g}"


def as_text(analysis: Analysis) -> str:
    """Return the table of a graph and, where its heads differ, of each head."""
    title = f"{_shortened(analysis.graph)}, {analysis.n:,} tokens"
    if analysis.heads > 1:
        title += f", union of {analysis.heads} heads"
    parts = [title, _table(analysis.rows())]
    if analysis.per_head[0] is not analysis.per_head[-1]:
        heads = [(f"head {number}", head) for number, head in enumerate(analysis.per_head)]
        parts += ["", *_compared(heads, "head")]
    return "\n".join(parts)


def draw(analysis: Analysis) -> Figure:
    """Draw what has been reached, and what tokens have seen, after each layer."""
    # Importing matplotlib takes a second, which only drawing should cost.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    layer = np.arange(1, len(analysis.reached) + 1)
    for head in analysis.per_head if analysis.heads > 1 else ():
        left.plot(np.arange(1, len(head.reached) + 1), head.reached, color="silver", lw=1)
    label = "all heads together (grey: each)" if analysis.heads > 1 else None
    left.plot(layer, analysis.reached, color="#0072b2", marker=_marker(layer), label=label)
    if label:
        left.legend(frameon=False)
    left.set_xlim(0.5, len(analysis.reached) + 0.5)
    if analysis.reached_intervals is not None:
        low, high = np.array(analysis.reached_intervals).T
        left.fill_between(layer, low, high, color="#0072b2", alpha=0.3, lw=0)
    left.set(xlabel="layer", ylabel="share of pairs reached", ylim=(0, 1.05))
    right.plot(layer, analysis.receptive_field_mean, color="#0072b2", label="mean")
    right.plot(layer, analysis.receptive_field_min, color="#d55e00", ls="--", label="fewest")
    right.set(xlabel="layer", ylabel="tokens seen by a query")
    right.legend(frameon=False)
    figure.suptitle(
        f"{_shortened(analysis.graph)}\n{analysis.n:,} tokens, average path "
        f"{_number(analysis.average_path_length)}, clustering {_number(analysis.clustering)}, "
        f"spectral gap {_number(analysis.spectral_gap)}",
        fontsize=9,
    )
    return figure


def compare(analyses: Sequence[Analysis]) -> str:
    """Return a table with a row for each of several graphs.

    Examples:
        >>> from longbird.analysis.measures import analyse
        >>> from longbird.core.graph import Full, Window
        >>> graphs = {"Full": Full(), "Window(9)": Window(9)}
        >>> print(compare([analyse(graph, 100, name=name) for name, graph in graphs.items()]))
        graph      density  diameter  path  clustering  gap      sigma   omega
        Full       1        1         1     1           1.01     ~1      ~0
        Window(9)  0.181    11        4.2   0.7356      0.01722  ~1.907  ~-0.6006
        ~ from a sample, or against random graphs; `longbird graph analyse` says which
    """
    names = [each.graph for each in analyses]
    legend: list[str] = []
    if any(len(name) > WIDEST for name in names):
        legend = [f"{number}: {name}" for number, name in enumerate(names, start=1)]
        names = [str(number) for number in range(1, len(names) + 1)]
    return "\n".join([*legend, *_compared(list(zip(names, analyses, strict=True)), "graph")])


def _compared(measured: Sequence[tuple[str, Measures]], what: str) -> list[str]:
    """Return the lines of a table that has a row for each of several measures, by name."""
    rows = [[what, "density", "diameter", "path", "clustering", "gap", "sigma", "omega"]]
    inexact = False
    for name, each in measured:
        world = each.small_world
        cells = [name]
        for measure, text in (
            ("density", _number(each.density)),
            ("diameter", _number(each.diameter)),
            ("average_path_length", _number(each.average_path_length)),
            ("clustering", _number(each.clustering)),
            ("spectral_gap", _number(each.spectral_gap)),
            ("small_world", _number(world and world.sigma)),
            ("small_world", _number(world and world.omega)),
        ):
            cells.append(text if each.exact(measure) else f"~{text}")
            inexact |= not each.exact(measure)
        rows.append(cells)
    lines = _aligned(rows)
    if inexact:
        which = "; `longbird graph analyse` says which" if what == "graph" else ""
        lines.append(f"~ from a sample, or against random graphs{which}")
    return lines


def _small_world_rows(
    world: SmallWorld | None, name: str, suffix: str
) -> list[tuple[str, str, str]]:
    return [
        (f"small world sigma{suffix}", f"{name}.sigma", _number(world and world.sigma)),
        (f"small world omega{suffix}", f"{name}.omega", _number(world and world.omega)),
    ]


def _against(world: SmallWorld, which: str) -> str:
    """Return what sigma or omega is based on."""
    interval = getattr(world, f"{which}_interval")
    against = f"{world.drawn} drawn" if world.drawn else "formulas for"
    how = "" if interval is None else "95%: {:,.4g} to {:,.4g}, ".format(*interval)
    return f"{how}{'' if world.exact else 'sampled, '}against {against} random graphs"


def _shortened(name: str, most: int = 90) -> str:
    return name if len(name) <= most else f"{name[: most - 3]}..."


def _cut_text(edges: int | None) -> str:
    if edges is None:
        return "there are none"
    return "1 edge" if edges == 1 else f"{edges:,} edges"


def _number(value: float | None, missing: str = "none") -> str:
    if value is None:
        return missing
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _layers(values: Sequence[float], form: str = "{:,.5g}") -> str:
    """Return the values of the first layers and of the last."""
    shown = [form.format(value) for value in values[:LISTED]]
    if len(values) > LISTED:
        shown += ["...", f"{form.format(values[-1])} after {len(values):,} layers"]
    return ", ".join(shown) or "none"


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(_aligned(rows))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _marker(layer: Ints) -> str:
    return "o" if len(layer) <= 20 else ""
