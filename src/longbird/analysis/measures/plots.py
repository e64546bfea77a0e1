"""Plots that reproduce the statements of papers about attention graphs.

Each function measures one plot, mostly over the length of the sequence. Dashed curves are the laws
that a paper states, or that follow from it. `draw_all`, which `longbird graph plots` runs, draws
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt, log, pi, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from longbird.analysis.measures.clustering import cluster
from longbird.analysis.measures.digraph import Digraph, union_of
from longbird.analysis.measures.hops import Hops, count_hops
from longbird.analysis.measures.small_world import EULER, lattice_clustering
from longbird.analysis.measures.spectrum import spectrum
from longbird.core.graph import (
    BlockWindow,
    Causal,
    ErdosRenyi,
    GlobalTokens,
    Graph,
    RandomBlocks,
    WattsStrogatz,
    Window,
    bigbird,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = (128, 256, 512, 1024, 2048, 4096)
RADIUS = 8

# Colours that can be distinguished by the colour-blind (Okabe-Ito), and markers.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9")
MARKS = "os^Dv*"


@dataclass(frozen=True)
class Plot:
    """The curves of one plot.

    Attributes:
        title: Title of the plot.
        x_label: Label of the x axis.
        y_label: Label of the y axis.
        curves: Measured points by name; a y of None is undefined and not drawn.
        laws: Points of stated laws by name.
        logarithmic: Logarithmic axes: "x", "xy" or "".
        source: Papers that state the laws.
    """

    title: str
    x_label: str
    y_label: str
    curves: dict[str, list[tuple[float, float | None]]]
    laws: dict[str, list[tuple[float, float]]]
    logarithmic: str
    source: str

    def figure(self) -> Figure:
        """Return the plot as a figure of matplotlib."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 5), layout="constrained")
        axes = figure.add_subplot()
        for number, (name, points) in enumerate(self.curves.items()):
            some = [(x, y) for x, y in points if y is not None]
            label = name if some else f"{name}: never"
            x, y = zip(*some, strict=True) if some else ((), ())
            axes.plot(x, y, color=COLOURS[number % 6], marker=MARKS[number % 6], label=label)
        for name, points in self.laws.items():
            x, y = zip(*points, strict=True)
            axes.plot(x, y, color="black", ls="--", lw=1, label=name)
        if "x" in self.logarithmic:
            axes.set_xscale("log")
            if self.x_label == "tokens":
                ticks = [x for x, _ in next(iter(self.curves.values()))]
                axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
                axes.minorticks_off()
        if "y" in self.logarithmic:
            axes.set_yscale("log")
        axes.set(xlabel=self.x_label, ylabel=self.y_label)
        axes.set_title(f"{self.title}\n{self.source}", fontsize=9)
        axes.legend(frameon=False, fontsize=8)
        return figure

    def as_json(self) -> dict[str, object]:
        """Return the points of the curves."""
        return {"title": self.title, "curves": self.curves, "laws": self.laws}


def path_lengths(lengths: Sequence[int] = LENGTHS) -> Plot:
    """Measure path lengths, which grow as log n in random graphs and linearly in windows."""
    degree = 2 * RADIUS
    graphs: dict[str, Callable[[int], Graph]] = {
        f"window, radius {RADIUS}": lambda _n: Window(RADIUS),
        f"random, {degree} keys": lambda n: ErdosRenyi(degree / n),
        "window and 2 random keys": lambda n: Window(RADIUS) | ErdosRenyi(2 / n),
    }
    return Plot(
        "Average path length",
        "tokens",
        "hops",
        {
            name: [(n, _hops(graph(n), n).average) for n in lengths]
            for name, graph in graphs.items()
        },
        {
            "n / 3r + 1/2": [(n, n / (3 * RADIUS) + 0.5) for n in lengths],
            "(ln n - 0.577) / ln k + 1/2": [
                (n, (log(n) - EULER) / log(degree) + 0.5) for n in lengths
            ],
        },
        "xy",
        "Zaheer et al. 2020; Fronczak et al. 2004",
    )


def clustering(lengths: Sequence[int] = LENGTHS) -> Plot:
    """Measure clustering, which does not depend on the length and decreases with rewiring."""
    k = 2 * RADIUS
    rewired = {"none rewired": 0.0, "1% rewired": 0.01, "10% rewired": 0.1, "all rewired": 1.0}
    return Plot(
        f"Clustering of a ring with {k} neighbours",
        "tokens",
        "clustering coefficient",
        {
            name: [
                (n, cluster(union_of(WattsStrogatz(k, beta).layout(n)).undirected).value)
                for n in lengths
            ]
            for name, beta in rewired.items()
        },
        {
            "3 (k - 2) / 4 (k - 1)": [(n, lattice_clustering(n, k)) for n in lengths],
            **{
                f"the same, {name}": [
                    (n, lattice_clustering(n, k) * _left(rewired[name])) for n in lengths
                ]
                for name in ("1% rewired", "10% rewired")
            },
            "degree / n": [(n, 2 * k / n) for n in lengths],
        },
        "x",
        "Watts and Strogatz 1998; Barrat and Weigt 2000",
    )


def _left(beta: float) -> float:
    """Return the share of the clustering of a ring that remains after rewiring.

    Here, each direction of an edge is rewired separately. A pair of neighbours then stays one with
    probability q = 1 - beta^2, and a token has k (q + 2 beta) neighbours: of C(0), the share q^3 /
    (q + 2 beta)^2 is left. Where whole edges are rewired, it is (1 - beta)^3.
    """
    q = 1 - beta**2
    return q**3 / (q + 2 * beta) ** 2


def rewiring(n: int = 1000, k: int = 16) -> Plot:
    """Measure rewiring, by which paths shorten earlier than clustering decreases."""
    betas = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0]
    clustering: list[tuple[float, float | None]] = []
    length: list[tuple[float, float | None]] = []
    first = (1.0, 1.0)
    for beta in betas:
        undirected = union_of(WattsStrogatz(k, beta).layout(n)).undirected
        found = cluster(undirected).value, count_hops(undirected).average or 0.0
        if not beta:
            first = found
            continue
        clustering.append((beta, found[0] / first[0]))
        length.append((beta, found[1] / first[1]))
    return Plot(
        f"A ring of {n:,} tokens with {k} neighbours, rewired",
        "probability beta of rewiring",
        "relative to the ring",
        {"clustering": clustering, "average path length": length},
        {"q^3 / (q + 2 beta)^2, q = 1 - beta^2": [(beta, _left(beta)) for beta in betas[1:]]},
        "x",
        "Watts and Strogatz 1998; Barrat and Weigt 2000",
    )


def spectral_gaps(lengths: Sequence[int] = LENGTHS) -> Plot:
    """Measure spectral gaps, which random edges keep from vanishing as sequences grow.

    In a window, the slowest wave is cos(pi x / n): a step of d tokens turns it by pi d / n, which
    takes (pi d / n)^2 / 2 from its eigenvalue, and the mean of d^2 is (r + 1) (2r + 1) / 6.
    """
    degree = 2 * RADIUS
    steps = (RADIUS + 1) * (2 * RADIUS + 1) / 6
    graphs: dict[str, Callable[[int], Graph]] = {
        f"window, radius {RADIUS}": lambda _n: Window(RADIUS),
        "window and 2 random keys": lambda n: Window(RADIUS) | ErdosRenyi(2 / n),
        # Either direction joins two tokens, so keys are half of the degree.
        f"random, {degree} neighbours": lambda n: ErdosRenyi(degree / 2 / n),
    }
    return Plot(
        "Gap between the first and the second eigenvalue",
        "tokens",
        "spectral gap",
        {
            name: [(n, 1 - _second(union_of(graph(n).layout(n)).undirected)) for n in lengths]
            for name, graph in graphs.items()
        },
        {
            "(pi / n)^2 (r + 1) (2r + 1) / 12": [(n, (pi / n) ** 2 * steps / 2) for n in lengths],
            "1 - 2 / sqrt(degree)": [(n, 1 - 2 / sqrt(degree)) for n in lengths],
        },
        "xy",
        "Zaheer et al. 2020; Chung, Lu and Vu 2003",
    )


def second_eigenvalues(n: int = 1024, degrees: Sequence[int] = (4, 8, 16, 32, 64, 128)) -> Plot:
    """Measure second eigenvalues, which random edges reduce to about 2 / sqrt(degree)."""
    graphs: dict[str, Callable[[int], Graph]] = {
        "window": lambda degree: Window(degree // 2),
        # Either direction joins two tokens, so keys are half of the degree.
        "half window, half random": lambda degree: (
            Window(degree // 4) | ErdosRenyi(degree / 4 / n)
        ),
        "random": lambda degree: ErdosRenyi(degree / 2 / n),
    }
    curves: dict[str, list[tuple[float, float | None]]] = {}
    for name, graph in graphs.items():
        curves[name] = []
        for degree in degrees:
            undirected = union_of(graph(degree).layout(n)).undirected
            curves[name].append((float(undirected.degrees.mean()), _second(undirected)))
    return Plot(
        f"Second eigenvalue of the normalised adjacency, {n:,} tokens",
        "mean degree",
        "second eigenvalue",
        curves,
        {"2 / sqrt(degree)": [(degree, 2 / sqrt(degree)) for degree in degrees]},
        "xy",
        "Zaheer et al. 2020; Chung, Lu and Vu 2003",
    )


def global_token(lengths: Sequence[int] = LENGTHS) -> Plot:
    """Measure diameters, which one global token reduces to two hops."""
    graphs: dict[str, Graph] = {
        f"window, radius {RADIUS}": Window(RADIUS),
        "the same and a global token": Window(RADIUS) | GlobalTokens([0]),
        "the same without the window": GlobalTokens([0]),
    }
    return Plot(
        "Two hops with a global token",
        "tokens",
        "diameter, in hops",
        {name: [(n, _hops(graph, n).diameter) for n in lengths] for name, graph in graphs.items()},
        {"(n - 1) / r": [(n, (n - 1) / RADIUS) for n in lengths]},
        "xy",
        "Zaheer et al. 2020",
    )


def published(n: int) -> dict[str, tuple[Graph, int]]:
    """Return published patterns with similar numbers of keys, and their number of tokens."""
    window = BlockWindow(3, 16)
    stride = max(2, isqrt(n))
    extra = window | RandomBlocks(1, 16) | GlobalTokens(range(2))
    strided = (Window(stride) | Window(n, dilation=stride)) & Causal()
    return {
        "sparse window": (Window(24), n),
        "dilated window": (Window(24, dilation=4), n),
        "Longformer": (Window(24) | GlobalTokens([0]), n),
        "BigBird-ITC": (bigbird(block=16, random=1), n),
        "BigBird-ETC": (extra, n + 2),
        "strided Sparse Transformer (causal)": (strided, n),
    }


def layers_until_seen(lengths: Sequence[int] = LENGTHS) -> Plot:
    """Measure how many layers it takes until every token has seen all (earlier) tokens."""
    curves: dict[str, list[tuple[float, float | None]]] = {}
    for n in lengths:
        for name, (graph, tokens) in published(n).items():
            found = _hops(graph, tokens)
            pairs = tokens * (tokens - 1) / (2 if "causal" in name else 1)
            layers = float(len(found.within)) if found.within[-1] == pairs else None
            curves.setdefault(name, []).append((n, layers))
    return Plot(
        "Layers until every token has seen every other",
        "tokens",
        "layers",
        curves,
        {},
        "xy",
        "Child et al. 2019; Beltagy et al. 2020; Zaheer et al. 2020",
    )


PLOTS: dict[str, Callable[[], Plot]] = {
    "paths": path_lengths,
    "clustering": clustering,
    "rewiring": rewiring,
    "gaps": spectral_gaps,
    "eigenvalues": second_eigenvalues,
    "global": global_token,
    "layers": layers_until_seen,
}


def draw_all(folder: str | Path, ending: str = "png") -> list[Path]:
    """Measure all plots, draw them into a folder, and return the files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for name, measure in PLOTS.items():
        files.append(folder / f"{name}.{ending}")
        measure().figure().savefig(files[-1], dpi=160)
    return files


def _hops(graph: Graph, n: int) -> Hops:
    return count_hops(union_of(graph.layout(n)))


def _second(undirected: Digraph) -> float:
    found = spectrum(undirected)
    assert found is not None  # these graphs have edges
    return found.second.value
