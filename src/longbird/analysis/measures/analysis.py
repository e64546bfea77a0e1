"""What `graph.analyse(n)` gives: the measures of a graph at a length, as a table and a picture."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longbird.analysis.measures.clustering import cluster
from longbird.analysis.measures.digraph import Digraph, Ints, head_of, union_of
from longbird.analysis.measures.hops import MOST_STEPS, count_hops
from longbird.analysis.measures.small_world import SmallWorld, small_world
from longbird.analysis.measures.spectrum import MOST_STEPS as MOST_LANCZOS_STEPS
from longbird.analysis.measures.spectrum import spectrum
from longbird.core.graph.arguments import integer
from longbird.core.graph.base import Graph
from longbird.core.machine import check_memory
from longbird.errors import InvalidValueError
from longbird.files.paths import check_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A random walk has mixed when its place is this near to its limit, in total variation.
MIXED = 0.25
# Measures that are bounded where they are not exact; the others have 95% confidence.
BOUNDED = (
    "diameter", "spectral_gap", "second_eigenvalue", "smallest_eigenvalue", "walk_gap",
    "mixing_time",
)  # fmt: skip
# What degrees, orders and a few vectors take, before any edge is listed.
BYTES_PER_TOKEN = 200
MOST_HEADS = 1 << 16
# Layers that a table lists.
LISTED = 4
# Letters of a graph that a table has room for.
WIDEST = 48


@dataclass(frozen=True)
class Degrees:
    """The fewest, the mean and the most of a number of edges over all tokens."""

    fewest: int
    mean: float
    most: int

    def __str__(self) -> str:
        return f"{self.fewest:,} to {self.most:,}, mean {self.mean:,.4g}"


@dataclass(frozen=True)
class Measures:
    """The measures of one digraph: one head, or the union of all heads.

    Hops follow the edges, from a query to a key, and count for all ordered pairs of different
    tokens. Clustering, eigenvalues and the small world are those of the undirected simple graph:
    an edge where either token sees the other, none from a token to itself.

    Attributes:
        n: Tokens.
        edges: Edges, those of tokens to themselves included; an edge that a multiset counts twice
            is one edge here.
        density: Edges in proportion to n x n.
        out_degree: Keys that a query sees, itself included where it does.
        in_degree: Queries that see a key.
        diameter: The most hops between two tokens; None if some pair is not connected. From a
            sample, the most that was seen.
        average_path_length: Mean hops over the ordered pairs that are connected; None if none is.
        reached: The share of ordered pairs within 1, 2, ... hops, until there are no new ones.
        receptive_field_mean: The tokens that a query has seen after 1, 2, ... layers, its own
            included, in the mean.
        receptive_field_min: The same for the query that has seen fewest; from a sample, of those
            in it.
        clustering: The average clustering coefficient.
        spectral_gap: 1 - the second largest eigenvalue of D^-1/2 A D^-1/2, where a token without a
            neighbour has a row of zeros. It is 0 if edges are in more than one part. None of fewer
            than two tokens.
        second_eigenvalue: The second largest eigenvalue.
        smallest_eigenvalue: The smallest eigenvalue: -1 if the graph is bipartite.
        walk_gap: 1 - the largest absolute value of all eigenvalues but the first: the gap of the
            random walk, which forgets where it began only if this is above 0. It is 0 if the graph
            is not connected, also if a token has no neighbour.
        mixing_time: Steps after which the random walk is within 1/4 of its limit in total
            variation, at most: ln(4 / smallest probability) / walk_gap, by the lower end of the
            gap's interval if it has one; None if it never is, or that end is 0.
        global_tokens: How many tokens see all others and are seen by all others.
        edges_to_globals: The fewest edges that cut a token off from all tokens that everyone sees,
            so that it cannot read from them over any number of hops; None without such tokens, or
            if all are.
        edges_from_globals: The fewest edges that cut a token off from all tokens that see
            everyone.
        small_world: Compared with random graphs and lattices of the same degree; None if it is not
            connected.
        small_world_without_globals: The same without the tokens that are joined to all others,
            which alone force short paths.
        intervals: For each number that is not exact, by its name, between what it is: with 95%
            confidence, or by a bound if it is the diameter or from eigenvalues.
        reached_intervals: 95% confidence intervals of `reached`; None if it is exact.
    """

    n: int
    edges: int
    density: float
    out_degree: Degrees
    in_degree: Degrees
    diameter: int | None
    average_path_length: float | None
    reached: tuple[float, ...]
    receptive_field_mean: tuple[float, ...]
    receptive_field_min: tuple[int, ...]
    clustering: float
    spectral_gap: float | None
    second_eigenvalue: float | None
    smallest_eigenvalue: float | None
    walk_gap: float | None
    mixing_time: int | None
    global_tokens: int
    edges_to_globals: int | None
    edges_from_globals: int | None
    small_world: SmallWorld | None
    small_world_without_globals: SmallWorld | None
    intervals: dict[str, tuple[float, float]]
    reached_intervals: tuple[tuple[float, float], ...] | None

    def exact(self, name: str) -> bool:
        """Whether a measure is exact, by its name.

        Examples:
            >>> from longbird.core.graph import Window
            >>> Window(8).analyse(1000).exact("diameter")
            True
        """
        measures = [
            each.name
            for each in dataclasses.fields(Measures)
            if not each.name.endswith("intervals")
        ]
        if name not in measures:
            raise InvalidValueError(
                f"there is no measure called {name!r:.80}; expected one of {', '.join(measures)}"
            )
        if name.startswith(("receptive", "reached")):
            return self.reached_intervals is None
        if name.startswith("small_world"):
            return getattr(self, name) is None  # otherwise it rests on random graphs
        if name == "mixing_time":  # which has no upper bound if the gap may be 0
            name = "walk_gap"
        return name not in self.intervals

    def as_json(self) -> dict[str, Any]:
        """All of it as dictionaries, lists and numbers."""
        return dataclasses.asdict(self)

    def rows(self) -> list[tuple[str, str, str]]:
        """What the table has: the measure, its value, and whether it is exact."""
        far = self.reached[-1] if self.reached else 1.0
        never = "none" if self.walk_gap is None else "not known" if self.walk_gap else "never"
        found = [
            ("density", "density", _number(self.density)),
            ("edges", "edges", f"{self.edges:,}"),
            ("keys a query sees", "out_degree", str(self.out_degree)),
            ("queries that see a key", "in_degree", str(self.in_degree)),
            ("global tokens", "global_tokens", f"{self.global_tokens:,}"),
            ("cut to tokens all see", "edges_to_globals", _cut_text(self.edges_to_globals)),
            (
                "cut from tokens seeing all",
                "edges_from_globals",
                _cut_text(self.edges_from_globals),
            ),
            ("diameter", "diameter", _number(self.diameter, "none: not all pairs are connected")),
            ("average path length", "average_path_length", _number(self.average_path_length)),
            ("pairs that are connected", "connected", f"{100 * far:.6g}%"),
            ("pairs reached by layer", "reached", _layers(self.reached, "{:.3%}")),
            ("tokens seen, mean", "receptive_field_mean", _layers(self.receptive_field_mean)),
            ("tokens seen, fewest", "receptive_field_min", _layers(self.receptive_field_min)),
            ("clustering", "clustering", _number(self.clustering)),
            ("spectral gap", "spectral_gap", _number(self.spectral_gap)),
            ("gap of the random walk", "walk_gap", _number(self.walk_gap)),
            ("mixing time, at most", "mixing_time", _number(self.mixing_time, never)),
            *_small_world_rows(self.small_world, "small_world", ""),
        ]
        if self.small_world_without_globals != self.small_world:
            other = self.small_world_without_globals
            found += _small_world_rows(other, "small_world_without_globals", " without hubs")
        return [(label, value, self._how(name)) for label, name, value in found]

    def _how(self, name: str) -> str:
        name, _, which = name.partition(".")
        if name.startswith("small_world"):
            world: SmallWorld | None = getattr(self, name)
            return "" if world is None else _against(world, which)
        if name == "connected":
            if self.reached_intervals is None or self.diameter is not None:
                return "exact"
            return "95%: {:.5g}% to {:.5g}%".format(*(100 * x for x in self.reached_intervals[-1]))
        if self.exact(name):
            return "exact"
        if name not in self.intervals:
            return "the gap may be 0" if name == "mixing_time" else self._sampled(name)
        low, high = (f"{bound:,.5g}" for bound in self.intervals[name])
        return f"between {low} and {high}" if name in BOUNDED else f"95%: {low} to {high}"

    def _sampled(self, name: str) -> str:
        """Of what is counted layer by layer: the interval of the last layer that is listed."""
        assert self.reached_intervals is not None
        if name == "receptive_field_min":
            return "of a sample"
        layer = min(LISTED, len(self.reached)) - 1
        low, high = self.reached_intervals[layer]
        if name == "reached":
            return f"layer {layer + 1}, 95%: {low:.3%} to {high:.3%}"
        low, high = (1 + each * (self.n - 1) for each in (low, high))
        return f"layer {layer + 1}, 95%: {low:,.5g} to {high:,.5g}"


@dataclass(frozen=True)
class Analysis(Measures):
    """A graph at a length, measured: the union of its heads, and each head.

    The attributes besides these are those of `Measures`, of the union of all heads. It prints as a
    table, `save` draws it, and a notebook shows the drawing.

    Attributes:
        graph: What was measured, as it is written.
        heads: Number of heads.
        per_head: The measures of each head.

    Examples:
        >>> from longbird.core.graph import Window
        >>> a = Window(8).analyse(256)
        >>> a.diameter, round(a.average_path_length, 3), len(a.reached)
        (32, 11.151, 32)
    """

    graph: str
    heads: int
    per_head: tuple[Measures, ...]

    def __str__(self) -> str:
        title = f"{_shortened(self.graph)}, {self.n:,} tokens"
        if self.heads > 1:
            title += f", union of {self.heads} heads"
        parts = [title, _table(self.rows())]
        if self.per_head[0] is not self.per_head[-1]:
            heads = [(f"head {number}", head) for number, head in enumerate(self.per_head)]
            parts += ["", *_compared(heads, "head")]
        return "\n".join(parts)

    def figure(self) -> Figure:
        """The drawing: what has been reached, and what tokens have seen, after each layer."""
        # Loading matplotlib takes a second that only those who draw should wait.
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        layer = np.arange(1, len(self.reached) + 1)
        for head in self.per_head if self.heads > 1 else ():
            left.plot(np.arange(1, len(head.reached) + 1), head.reached, color="silver", lw=1)
        label = "all heads together (grey: each)" if self.heads > 1 else None
        left.plot(layer, self.reached, color="#0072b2", marker=_marker(layer), label=label)
        if label:
            left.legend(frameon=False)
        left.set_xlim(0.5, len(self.reached) + 0.5)
        if self.reached_intervals is not None:
            low, high = np.array(self.reached_intervals).T
            left.fill_between(layer, low, high, color="#0072b2", alpha=0.3, lw=0)
        left.set(xlabel="layer", ylabel="share of pairs reached", ylim=(0, 1.05))
        right.plot(layer, self.receptive_field_mean, color="#0072b2", label="mean")
        right.plot(layer, self.receptive_field_min, color="#d55e00", ls="--", label="fewest")
        right.set(xlabel="layer", ylabel="tokens seen by a query")
        right.legend(frameon=False)
        figure.suptitle(
            f"{_shortened(self.graph)}\n{self.n:,} tokens, average path "
            f"{_number(self.average_path_length)}, clustering {_number(self.clustering)}, "
            f"spectral gap {_number(self.spectral_gap)}",
            fontsize=9,
        )
        return figure

    def save(self, path: str | Path) -> None:
        """Writes the drawing to a PNG, SVG or PDF file, by the ending of its name."""
        check_picture(path)
        self.figure().savefig(path, dpi=160)

    def _repr_svg_(self) -> str:
        text = io.StringIO()
        self.figure().savefig(text, format="svg")
        return text.getvalue()


def analyse(graph: Graph, n: int, heads: int = 1, *, name: str | None = None) -> Analysis:
    """What `graph.analyse` does; `name` is what to call the graph, by default as it is written."""
    n, heads = integer(n, "n"), integer(heads, "heads", least=1, most=MOST_HEADS)
    check_memory(n * BYTES_PER_TOKEN, f"measuring {n:,} tokens", "choose fewer tokens")
    layout = graph.layout(n, heads)
    different = len(layout.row_ptr)
    effort = 1 / (1 + different) if different > 1 else 1.0
    union = measure(union_of(layout), effort)
    per_head = (union,) * heads
    if different > 1:
        per_head = tuple(measure(head_of(layout, head), effort) for head in range(heads))
    fields = {field.name: getattr(union, field.name) for field in dataclasses.fields(Measures)}
    return Analysis(**fields, graph=name or repr(graph), heads=heads, per_head=per_head)


def measure(graph: Digraph, effort: float = 1.0) -> Measures:
    """The measures of one digraph.

    Args:
        graph: Any digraph.
        effort: The share of the usual work after which a sample is taken instead; less for each
            where there are many.
    """
    n, undirected = graph.n, graph.undirected
    steps = int(effort * MOST_STEPS)
    hops = count_hops(graph, steps)
    both_ways = hops if undirected.edges == graph.edges else count_hops(undirected, steps)
    clustering = cluster(undirected, effort)
    intervals: dict[str, tuple[float, float]] = {}
    if hops.average_interval is not None:
        intervals["average_path_length"] = hops.average_interval
    if hops.diameter is not None and hops.most is not None and hops.diameter < hops.most:
        intervals["diameter"] = float(hops.diameter), float(hops.most)
    if clustering.interval is not None:
        intervals["clustering"] = clustering.interval
    share = hops.within / max(n * (n - 1), 1)
    outside = hops.reached_intervals
    world = without = small_world(undirected, clustering, both_ways)
    if undirected.hubs:
        rest = undirected.without_hubs
        without = small_world(rest, cluster(rest, effort), count_hops(rest, steps))
    seen, seeing = graph.seen_by, graph.degrees
    return Measures(
        n=n,
        edges=graph.edges,
        density=graph.edges / max(n * n, 1),
        out_degree=_degrees(seeing + graph.loops),
        in_degree=_degrees(seen + graph.loops),
        diameter=hops.diameter,
        average_path_length=hops.average,
        reached=tuple(share.tolist()),
        receptive_field_mean=tuple((1 + share * (n - 1)).tolist()),
        receptive_field_min=tuple(hops.fewest.tolist()),
        clustering=clustering.value,
        **_eigenvalues(undirected, int(effort * MOST_LANCZOS_STEPS), intervals),
        global_tokens=graph.hubs,
        edges_to_globals=_cut(seeing, seen == n - 1),
        edges_from_globals=_cut(seen, seeing == n - 1),
        small_world=world,
        small_world_without_globals=without,
        intervals=intervals,
        reached_intervals=tuple(outside) if outside is not None else None,
    )


def _eigenvalues(
    graph: Digraph, steps: int, intervals: dict[str, tuple[float, float]]
) -> dict[str, Any]:
    """The measures from the spectrum of an undirected graph; adds their intervals."""
    found = spectrum(graph, steps)
    if found is None:
        names = "spectral_gap", "second_eigenvalue", "smallest_eigenvalue", "walk_gap"
        return {**dict.fromkeys(names), "mixing_time": None}
    second, smallest = found.second, found.smallest
    largest = max(abs(second.value), abs(smallest.value))
    gap, walk = max(0.0, 1.0 - second.value), max(0.0, 1.0 - largest)
    walk = 0.0 if walk < 1e-12 or not graph.connected else walk
    if second.interval is not None:
        low, high = second.interval
        intervals["second_eigenvalue"] = low, high
        intervals["spectral_gap"] = 1.0 - high, 1.0 - low
    if smallest.interval is not None:
        intervals["smallest_eigenvalue"] = smallest.interval
    ends = [each.interval or (each.value, each.value) for each in (second, smallest)]
    bounds = [sorted(map(abs, end)) for end in ends]
    most, least = (1.0 - max(bound[k] for bound in bounds) for k in (0, 1))
    mixing = None
    if walk > 0:
        away = log(graph.degrees.sum() / graph.degrees.min() / MIXED)
        # Not by the gap that was found: one that is smaller takes longer.
        mixing = ceil(away / least) if least > 0 else None
        if least < most:
            intervals["walk_gap"] = least, most
        if 0 < least < most:
            intervals["mixing_time"] = ceil(away / most), ceil(away / least)
    return {
        "spectral_gap": gap,
        "second_eigenvalue": second.value,
        "smallest_eigenvalue": smallest.value,
        "walk_gap": walk,
        "mixing_time": mixing,
    }


def _cut(degree: Ints, is_global: Any) -> int | None:
    """The fewest edges between a token and the global ones.

    Each edge of a token leads to a global token or to one that has an edge to a global token, and
    no two of these paths share an edge. So all edges of the token have to be cut, and no others.
    """
    if not is_global.any() or is_global.all():
        return None
    return int(degree[~is_global].min())


def _degrees(degree: Ints) -> Degrees:
    if not len(degree):
        return Degrees(0, 0.0, 0)
    return Degrees(int(degree.min()), float(degree.mean()), int(degree.max()))


# Text.


def compare(analyses: Sequence[Analysis]) -> str:
    """Several graphs beside each other, a row for each, as text.

    Examples:
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
    """The lines of a table that has a row for each of several, by name."""
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
    """What sigma or omega rests on."""
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
    """The first layers and the last."""
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
