"""The measures of a graph at a length, as `Graph.analyse` returns them."""

from __future__ import annotations

import dataclasses
import io
from dataclasses import dataclass
from math import ceil, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longbird.analysis.measures.clustering import cluster
from longbird.analysis.measures.digraph import Digraph, Ints, head_of, union_of
from longbird.analysis.measures.hops import MOST_STEPS, count_hops
from longbird.analysis.measures.report import as_text, draw, measure_rows
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

# A random walk has mixed when its distribution is this close to its limit, in total variation.
MIXED = 0.25
# Memory of degrees, orders and a few vectors, before any edge is listed.
BYTES_PER_TOKEN = 200
MOST_HEADS = 1 << 16


@dataclass(frozen=True)
class Degrees:
    """Minimum, mean and maximum of a number of edges over all tokens."""

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
        n: Number of tokens.
        edges: Number of edges, including those of tokens to themselves; an edge that a multiset
            counts twice is one edge.
        density: Share of the n x n pairs that are edges.
        out_degree: Number of keys that a query sees.
        in_degree: Number of queries that see a key.
        diameter: Maximum number of hops between two tokens; None if some pair is not connected. In
            a sample, the maximum that was found.
        average_path_length: Mean number of hops over connected ordered pairs; None if there are
            none.
        reached: Share of ordered pairs within 1, 2, ... hops, until there are no new pairs.
        receptive_field_mean: Mean number of tokens that a query has seen after 1, 2, ... layers,
            including its own.
        receptive_field_min: Minimum of the same over queries, or over those of a sample.
        clustering: Average clustering coefficient.
        spectral_gap: 1 minus the second largest eigenvalue of D^-1/2 A D^-1/2, in which a token
            without a neighbour has a row of zeros. It is 0 if edges are in more than one
            component, and None for fewer than two tokens.
        second_eigenvalue: Second largest eigenvalue.
        smallest_eigenvalue: Smallest eigenvalue; -1 if the graph is bipartite.
        walk_gap: 1 minus the largest absolute value of all eigenvalues but the first: the gap of
            the random walk, which converges only if this is above 0. It is 0 if the graph is not
            connected.
        mixing_time: Upper bound of the steps after which the random walk is within 1/4 of its
            limit in total variation: ln(4 / smallest probability) / walk_gap, with the lower end
            of the interval of the gap; None if it never is, or that end is 0.
        global_tokens: Number of tokens that see all others and are seen by all others.
        edges_to_globals: Smallest number of edges whose removal separates a token from all tokens
            that everyone sees; None if there are no such tokens, or no others.
        edges_from_globals: Smallest number of edges whose removal separates a token from all
            tokens that see everyone.
        small_world: Comparison with random graphs and lattices of the same degree; None if the
            graph is not connected.
        small_world_without_globals: The same without the tokens that are joined to all others,
            which alone force short paths.
        intervals: Intervals of the numbers that are not exact, by name: with 95% confidence, or
            bounds for the diameter and what is derived from eigenvalues.
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
        """Return whether a measure is exact, by its name.

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
            return getattr(self, name) is None  # otherwise it depends on random graphs
        if name == "mixing_time":  # it has no upper bound if the gap may be 0
            name = "walk_gap"
        return name not in self.intervals

    def as_json(self) -> dict[str, Any]:
        """Return all measures as dictionaries, lists and numbers."""
        return dataclasses.asdict(self)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the rows of the table: a measure, its value, and whether it is exact."""
        return measure_rows(self)


@dataclass(frozen=True)
class Analysis(Measures):
    """The measures of a graph at a length: of the union of its heads, and of each head.

    The attributes that are inherited from `Measures` are those of the union of all heads. An
    analysis prints as a table, `save` draws it, and notebooks show the drawing.

    Attributes:
        graph: Expression or name of the graph.
        heads: Number of heads.
        per_head: Measures of each head.

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
        return as_text(self)

    def figure(self) -> Figure:
        """Draw what has been reached, and what tokens have seen, after each layer."""
        return draw(self)

    def save(self, path: str | Path) -> None:
        """Write the drawing to a PNG, SVG or PDF file, according to the extension of its name."""
        check_picture(path)
        self.figure().savefig(path, dpi=160)

    def _repr_svg_(self) -> str:
        text = io.StringIO()
        self.figure().savefig(text, format="svg")
        return text.getvalue()


def analyse(graph: Graph, n: int, heads: int = 1, *, name: str | None = None) -> Analysis:
    """Measure a graph as `Graph.analyse` documents; `name` replaces its expression in tables."""
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
    """Return the measures of one digraph.

    Args:
        graph: Any digraph.
        effort: Share of the usual work above which a sample is taken instead; smaller if there are
            many digraphs.
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
    """Return the measures of the spectrum of an undirected graph, and add their intervals."""
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
        # By the lower end of the gap: a smaller gap takes longer.
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
    """Return the smallest number of edges that separate a token from the global ones.

    Each edge of a token leads to a global token or to one that has an edge to a global token, and
    no two of these paths share an edge. So exactly the edges of the token have to be removed.
    """
    if not is_global.any() or is_global.all():
        return None
    return int(degree[~is_global].min())


def _degrees(degree: Ints) -> Degrees:
    if not len(degree):
        return Degrees(0, 0.0, 0)
    return Degrees(int(degree.min()), float(degree.mean()), int(degree.max()))
