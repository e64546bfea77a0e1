"""The published attention patterns, and random graphs, with equally many edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longbird.core.graph import (
    ErdosRenyi,
    Full,
    GlobalTokens,
    Graph,
    RandomBlocks,
    WattsStrogatz,
    Window,
    bigbird,
)

DILATION = 4
REWIRED = 0.1


@dataclass(frozen=True)
class Setting:
    """The setting that a pattern is built for.

    Attributes:
        n: Number of tokens.
        edges: Edges per head and token; a multiple of 8.
        seed: Seed of random patterns.
    """

    n: int
    edges: int
    seed: int = 0


@dataclass(frozen=True)
class Pattern:
    """An attention pattern.

    Attributes:
        name: Unique name.
        about: Description of its keys.
        graph: Function from a setting to the graph.
        added: Number of added global tokens.
    """

    name: str
    about: str
    graph: Callable[[Setting], Graph]
    added: Callable[[Setting], int] = lambda setting: 0

    def whole(self, setting: Setting) -> tuple[Graph, int]:
        """Return the graph over all tokens, with added tokens first, and their number."""
        added = self.added(setting)
        graph = self.graph(setting)
        return (graph | GlobalTokens(range(added)) if added else graph), setting.n + added


def window(setting: Setting, share: float, dilation: int = 1) -> Graph:
    """Return the window with the nearest number of edges, considering both ends."""
    n, wanted = setting.n, share * setting.edges * setting.n

    def edges(radius: int) -> int:
        return (2 * radius + 1) * n - dilation * radius * (radius + 1)

    return Window(min(range(n // dilation), key=lambda r: abs(edges(r) - wanted)), dilation)


def _longformer(setting: Setting) -> Graph:
    return window(setting, 1 - 2 / setting.edges) | GlobalTokens((0,))


def _strided(setting: Setting) -> Graph:
    return window(setting, 0.5) | Window(setting.n, dilation=2 * setting.n // setting.edges)


def _window_and_random(setting: Setting) -> Graph:
    half = setting.edges / 2
    return window(setting, 0.5) | ErdosRenyi(half / (setting.n - half), setting.seed)


SPARSE = (
    Pattern(
        "sparse window",
        "as many keys on each side",
        lambda setting: window(setting, 1),
    ),
    Pattern(
        "dilated window",
        f"every {DILATION}th token on each side, and so {DILATION} times as far; tokens of "
        "different remainders never meet",
        lambda setting: window(setting, 1, DILATION),
    ),
    Pattern("Longformer", "a window, and the first token global", _longformer),
    Pattern(
        "BigBird-ITC",
        "a window of 3 blocks, a random block in each head, and the first and last block global",
        lambda setting: bigbird(block=setting.edges // 8, random=1, seed=setting.seed),
    ),
    Pattern(
        "BigBird-ETC",
        "half of the edges a window, half those of added, learned global tokens",
        lambda setting: window(setting, 0.5),
        added=lambda setting: setting.edges // 4,
    ),
    Pattern(
        "strided Sparse Transformer",
        "half of the edges a window, half those to every s-th token from each, on both sides (the "
        "paper's is causal)",
        _strided,
    ),
    Pattern(
        "random",
        "each key with the same probability, in all heads the same (Erdos-Renyi)",
        lambda setting: ErdosRenyi(setting.edges / setting.n, setting.seed),
    ),
    Pattern(
        "random blocks",
        "8 random blocks of keys for each block of queries, in each head others",
        lambda setting: RandomBlocks(8, setting.edges // 8, setting.seed),
    ),
    Pattern("window + random", "half a window, half as in random", _window_and_random),
    Pattern(
        "small world",
        f"a ring of neighbours, of which a share of {REWIRED:g} is rewired (Watts-Strogatz)",
        lambda setting: WattsStrogatz(setting.edges, REWIRED, setting.seed),
    ),
)
"""Those that have the same number of edges."""

FULL = Pattern("full", "every token sees all: the ceiling", lambda setting: Full())
ALONE = Pattern("itself alone", "every token sees itself: the floor", lambda setting: Window(0))


def within(pattern: Pattern, setting: Setting, heads: int, hops: int) -> npt.NDArray[np.bool_]:
    """Return which tokens can receive information from which others after some layers, [n, n]."""
    graph, tokens = pattern.whole(setting)
    step = graph.mask(tokens, heads=heads).any(0) | np.eye(tokens, dtype=bool)
    step = step.astype(np.float32)
    reached = step
    for _ in range(hops - 1):
        reached = (reached @ step > 0).astype(np.float32)
    added = tokens - setting.n
    return reached[added:, added:] > 0


def by_distance(reached: npt.NDArray[np.bool_], bands: int = 32) -> npt.NDArray[np.float64]:
    """Return the share of pairs of tokens that are connected, in bands of distance.

    Examples:
        >>> near = within(Pattern("w", "", lambda s: Window(2)), Setting(16, 8), heads=1, hops=2)
        >>> by_distance(near, bands=4).round(2).tolist()  # 0 to 3 tokens away, 4 to 7, ...
        [1.0, 0.29, 0.0, 0.0]
    """
    n = len(reached)
    band = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) * bands // n
    return np.bincount(band.ravel(), reached.ravel(), bands) / np.bincount(band.ravel())


def draw_reach(setting: Setting, heads: int, hops: int, path: str | Path) -> None:
    """Draw what each pattern connects after some layers by distance, with a panel for each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    grid = figure.subplots(2, -(-len(SPARSE) // 2), sharex=True, sharey=True)
    for axes, pattern in zip(grid.flat, SPARSE, strict=False):
        shares = by_distance(within(pattern, setting, heads, hops))
        axes.stairs(100 * shares, np.linspace(0, setting.n, len(shares) + 1), fill=True)
        axes.set_title(pattern.name, loc="left", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("tokens between query and key", fontsize=9)
    figure.supylabel(f"% within {hops} hops", fontsize=9)
    figure.savefig(path, dpi=130)
