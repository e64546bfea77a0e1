"""Task 1: for each of n vectors, find the one that is furthest from it.

One layer of full attention does it: the query is minus the vector, the keys are the vectors, and
hardmax picks the key with the smallest inner product, which for unit vectors is the furthest. A
sparse graph has too few edges to compare all pairs in a layer. Under the Orthogonal Vectors
Conjecture every graph of O~(n) edges needs Omega~(n^(1 - o(1))) layers (Zaheer et al. 2020,
Proposition 1). Two hand-built solutions come to within a constant factor of that:

    ring    vectors are handed on around a ring, r at a time: n / r layers
    hub     global tokens load one vector after the other, and all compare: n / g + 1 layers

All of them run through `longbird.attention` in float64, with weights that are matrices of zeros,
ones and a few integers. What they find is compared to the last digits, and in as many layers as
promised.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longbird.analysis.theory.vectors import ALIKE, HARD, INSTANCES, solved, unit_vectors
from longbird.analysis.theory.vectors import bits as bits
from longbird.analysis.theory.vectors import close as close
from longbird.analysis.theory.vectors import planted as planted
from longbird.core.graph import Edges, Full, Graph, as_graph
from longbird.core.graph.arguments import integer
from longbird.core.machine import check_memory
from longbird.core.operator.api import attention
from longbird.errors import InvalidValueError

# ---- Instances ----


# ---- Solutions ----


def _attend(q: Tensor, k: Tensor, v: Tensor, graph: Graph) -> Tensor:
    """Hardmax attention over [tokens, head_dim]."""
    width = max(q.shape[1], v.shape[1])
    q, k, padded = (torch.nn.functional.pad(x, (0, width - x.shape[1])) for x in (q, k, v))
    read = attention(q[None, None], k[None, None], padded[None, None], graph, scale=HARD)
    return read[0, 0, :, : v.shape[1]]


@dataclass(frozen=True)
class Weights:
    """Of one layer: what a token x asks, what it is found by, and what it hands over."""

    query: Tensor  # [head_dim, width of x]
    key: Tensor
    value: Tensor

    def __call__(self, x: Tensor, graph: Graph) -> Tensor:
        """Hardmax attention over [tokens, width]: what each token reads."""
        return _attend(x @ self.query.T, x @ self.key.T, x @ self.value.T, graph)


@dataclass(frozen=True)
class FullLayer:
    """One layer of full attention.

    A token is x = [u; 0]. With Q = [-I 0], K = [I 0] and V = [0 I] it becomes [u; furthest].
    """

    name = "full attention"

    def graph(self, n: int) -> Graph:
        """Everything sees everything."""
        return Full()

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """The tokens that hold the vectors."""
        return np.arange(n)[None]

    def takes(self, n: int) -> int:
        """Layers for n vectors."""
        return 1

    def weights(self, size: int) -> Weights:
        """Of the layer, for vectors [u; 0] of 2 size coordinates."""
        own, nothing = torch.eye(size).double(), torch.zeros(size, size).double()
        value = torch.cat([torch.cat([nothing, nothing], 1), torch.cat([own, nothing], 1)])
        return Weights(torch.cat([-own, nothing], 1), torch.cat([own, nothing], 1), value)

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """What each vector has found, after the one layer."""
        size = u.shape[1]
        x = torch.cat([u, torch.zeros_like(u)], dim=1)
        x = x + self.weights(size)(x, self.graph(len(u)))
        # A token that has lost its own vector has found nothing.
        kept = (x[:, :size] == u).all(dim=1, keepdim=True)
        yield torch.where(kept, x[:, size:], torch.nan)


@dataclass(frozen=True)
class Ring:
    """Holders and carriers: 2n tokens.

    Holder i is [u_i; the furthest so far], carrier n + i is [u_i; a candidate]. A holder sees
    itself and `reach` carriers, compares u_i with what they carry, and keeps the furthest. A
    carrier sees the one `reach` places behind it, and takes over its candidate.

    Args:
        reach: Carriers that a holder sees.
    """

    reach: int = 1

    def __post_init__(self) -> None:
        """Check the number."""
        integer(self.reach, "reach", least=1)

    @property
    def name(self) -> str:
        """For tables and pictures."""
        return f"ring, {self.reach} a layer"

    def graph(self, n: int) -> Graph:
        """The edges between 2n tokens."""
        _check_fits("reach", self.reach, n)
        i = np.arange(n)
        behind = [np.stack([i, n + (i - back) % n], 1) for back in range(self.reach)]
        handed = np.stack([n + i, n + (i - self.reach) % n], axis=1)
        return Edges(np.concatenate([np.stack([i, i], axis=1), *behind, handed]))

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """The tokens that hold the vectors: holders, and carriers."""
        return np.arange(2 * n).reshape(2, n)

    def takes(self, n: int) -> int:
        """Layers for n vectors."""
        return -(-n // self.reach)

    def weights(self, size: int) -> Weights:
        """Of every layer: the query is minus the vector, key and value are the second slot."""
        own, nothing = torch.eye(size).double(), torch.zeros(size, size).double()
        second = torch.cat([nothing, own], dim=1)
        return Weights(torch.cat([-own, nothing], dim=1), second, second.clone())

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """What each vector has found, after each layer, without end."""
        n, size = u.shape
        graph, read = self.graph(n), self.weights(size)
        x = torch.cat([u, u], dim=1).repeat(2, 1)  # [2n, 2 size]
        while True:
            # The feed-forward layer overwrites the second slot with what was read.
            x = torch.cat([x[:, :size], read(x, graph)], dim=1)
            yield x[:n, size:]


@dataclass(frozen=True)
class Hub:
    """Global tokens that load one vector after the other: tokens 0 to hubs - 1, then the vectors.

    In layer t, hub h asks for the position t hubs + h, or the last there are, which the weights of
    that layer say, and takes over the vector that is there. At the same time every token compares
    its vector with what the hubs loaded in the layer before.

    A token is [own vector; second slot; place; place^2; hub?; number of the hub; empty?; 1].

    Args:
        hubs: Global tokens.
    """

    hubs: int = 1

    def __post_init__(self) -> None:
        """Check the number."""
        integer(self.hubs, "hubs", least=1)

    @property
    def name(self) -> str:
        """For tables and pictures."""
        return f"{self.hubs} hub{'s' * (self.hubs != 1)}"

    def graph(self, n: int) -> Graph:
        """Hubs see all vectors; vectors see the hubs and themselves."""
        _check_fits("hubs", self.hubs, n)
        hub, token = np.arange(self.hubs), self.hubs + np.arange(n)
        down = np.stack(np.meshgrid(hub, token, indexing="ij"), axis=-1).reshape(-1, 2)
        return Edges(np.concatenate([down, down[:, ::-1], np.stack([token, token], axis=1)]))

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """The tokens that hold the vectors."""
        return self.hubs + np.arange(n)[None]

    def takes(self, n: int) -> int:
        """Layers for n vectors."""
        return -(-n // self.hubs) + 1

    def weights(self, size: int, first: int = 0) -> Weights:
        """Of a layer in which hub h asks for the position first + h.

        A vector's score of a candidate is minus their product. A hub's, of the place p, is
        2 w p - p^2, which is largest where p is the wanted w.
        """
        place, square, is_hub, number, empty, one = range(2 * size, 2 * size + 6)
        query, key = torch.zeros(2, size + 3, 2 * size + 6).double()
        query[:size, :size], key[:size, size : 2 * size] = -torch.eye(size), torch.eye(size)
        query[size, [is_hub, number]] = torch.tensor([2.0 * first, 2.0]).double()
        key[size, place] = 1
        query[size + 1, is_hub], key[size + 1, square] = -1, 1
        # A hub that has loaded nothing yet must not win.
        query[size + 2, one], key[size + 2, empty] = -1, 4
        return Weights(query, key, torch.eye(2 * size, 2 * size + 6).double())

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """What each vector has found, after each layer, without end."""
        n, size = u.shape
        graph, hubs = self.graph(n), self.hubs
        x = u.new_zeros(hubs + n, 2 * size + 6)
        x[hubs:, :size] = x[hubs:, size : 2 * size] = u
        x[hubs:, 2 * size] = torch.arange(n)
        x[:, 2 * size + 1] = x[:, 2 * size] ** 2
        x[:hubs, 2 * size + 2] = x[:hubs, 2 * size + 4] = 1
        x[:hubs, 2 * size + 3] = torch.arange(hubs)
        x[:, 2 * size + 5] = 1
        for layer in itertools.count():
            read = self.weights(size, min(layer * hubs, n - hubs))(x, graph)
            loaded, kept = read.split(size, dim=1)
            # The feed-forward layer keeps one half of it, by the coordinate that marks hubs.
            x[:hubs, size : 2 * size], x[hubs:, size : 2 * size] = loaded[:hubs], kept[hubs:]
            x[:, 2 * size + 4] = 0
            yield x[hubs:, size : 2 * size].clone()


def _check_fits(name: str, number: int, n: int) -> None:
    if number > n:
        raise InvalidValueError(
            f"{name} must be at most the {n} vectors that there are, received {number}"
        )


Solution = FullLayer | Ring | Hub


# ---- Measures ----


@dataclass(frozen=True)
class Outcome:
    """What one solution reached, layer by layer.

    Attributes:
        name: The solution.
        n: Vectors.
        edges: Edges of its graph, from a token to itself left out.
        accuracy: The share of vectors that have found the furthest, after each layer.
        within: The share whose furthest lies within as many hops: no solution over this graph
            can be right more often on every input.
        comparisons: Layers that any solution needs that compares one pair of vectors per edge and
            layer: n (n - 1) / edges, infinite without edges.
    """

    name: str
    n: int
    edges: int
    accuracy: tuple[float, ...]
    within: tuple[float, ...]
    comparisons: float

    @property
    def layers(self) -> int | None:
        """Layers until all have found it; None if that did not happen."""
        return next((k for k, share in enumerate(self.accuracy, start=1) if share == 1), None)


def hops(neighbours: npt.NDArray[np.bool_], most: int) -> npt.NDArray[np.int64]:
    """From each query to each key, how many layers apart; most + 1 where it is more."""
    n = len(neighbours)
    edges = torch.from_numpy(neighbours).float().to_sparse()
    distance = torch.full((n, n), most + 1)
    last = torch.eye(n, dtype=torch.bool)  # pairs at the last distance
    distance[last] = 0
    for layer in range(1, most + 1):
        last = (torch.sparse.mm(edges, last.float()) > 0) & (distance > most)
        if not last.any():
            break
        distance[last] = layer
    return distance.numpy()


def share_within(
    graph: Graph | str, u: Tensor, most: int, homes: npt.NDArray[np.int64] | None = None
) -> tuple[float, ...]:
    """The share of vectors that have a furthest one within 1, 2, ... `most` hops.

    Args:
        graph: The graph.
        u: The vectors.
        most: Hops.
        homes: Which tokens hold each vector to begin with: [copies, n]; by default token i holds
            vector i. The answer is wanted at the first of them.
    """
    n = len(u)
    homes = np.arange(n)[None] if homes is None else homes
    distance = hops(as_graph(graph).mask(int(homes.max()) + 1)[0], most)
    seen = np.min([distance[np.ix_(homes[0], copy)] for copy in homes], axis=0)
    products = u @ u.T
    furthest = (products - products.amin(dim=1, keepdim=True) < ALIKE).numpy()
    nearest = np.where(furthest, seen, most + 1).min(axis=1)
    return tuple(float((nearest <= k).mean()) for k in range(1, most + 1))


def solve(solution: Solution, u: Tensor | npt.ArrayLike, most: int | None = None) -> Outcome:
    """Runs a solution until every vector has found the furthest.

    Args:
        solution: The solution.
        u: The vectors, each of length 1: [n, size].
        most: Layers at most; by default those that the solution promises.

    Raises:
        ValueError: These are no such vectors, or the solution does not fit so few.

    Examples:
        >>> outcome = solve(Ring(), planted(32))
        >>> outcome.layers, outcome.accuracy[-2], outcome.comparisons
        (32, 0.5, 15.5)
        >>> solve(FullLayer(), planted(32)).layers
        1
    """
    u = unit_vectors(u)
    n = len(u)
    graph, homes = solution.graph(n), solution.homes(n)  # says if the solution does not fit
    _check_memory(int(homes.max()) + 1)
    most = solution.takes(n) if most is None else integer(most, "most", least=1)
    accuracy: list[float] = []
    for found in itertools.islice(solution.layers(u), most):
        accuracy.append(float(solved(u, found).double().mean()))
        if accuracy[-1] == 1:
            break
    edges = _edges(graph, int(homes.max()) + 1)
    return Outcome(
        name=solution.name,
        n=n,
        edges=edges,
        accuracy=tuple(accuracy),
        within=share_within(graph, u, len(accuracy), homes),
        comparisons=n * (n - 1) / edges if edges else math.inf,
    )


def measure(graph: Graph | str, u: Tensor | npt.ArrayLike, most: int = 8) -> Outcome:
    """What limits any solution over a graph, without one: hops and comparisons."""
    graph, u = as_graph(graph), unit_vectors(u)
    n = len(u)
    if graph.least_heads > 1:
        raise InvalidValueError(
            f"{graph!r:.80} has a graph for each of {graph.least_heads} heads, expected "
            "one graph: this task takes one head, so choose one of them"
        )
    _check_memory(n)
    edges = _edges(graph, n)
    return Outcome(
        name=f"{graph!r:.60}",
        n=n,
        edges=edges,
        accuracy=(),
        within=share_within(graph, u, most),
        comparisons=n * (n - 1) / edges if edges else math.inf,
    )


def _edges(graph: Graph, tokens: int) -> int:
    """Edges between different tokens: a token that sees itself compares nothing."""
    mask = graph.mask(tokens)[0]
    return int(mask.sum() - mask.diagonal().sum())


def _check_memory(tokens: int) -> None:
    """Products, distances and masks of all pairs have to fit."""
    check_memory(40 * tokens**2, f"all pairs of {tokens:,} tokens", "choose fewer vectors")


def experiment(
    sizes: Sequence[int] = (16, 32, 64),
    solutions: Sequence[Solution] | None = None,
    instance: str = "planted",
    seed: int = 0,
    graphs: Sequence[Graph | str] = (),
) -> list[Outcome]:
    """Runs solutions at several numbers of vectors.

    For graphs that come without a solution, what limits any solution is measured, on the same
    vectors in a random order.

    Args:
        sizes: Numbers of vectors.
        solutions: By default full attention, the ring and the hub.
        instance: "planted", "close" or "bits".
        seed: Of the vectors.
        graphs: Graphs without a solution.

    Raises:
        ValueError: There is no such instance, or no memory for so many vectors.
    """
    if instance not in INSTANCES:
        raise InvalidValueError(
            f"the instance must be one of {', '.join(INSTANCES)}, received {instance!r}"
        )
    chosen = (FullLayer(), Ring(), Hub()) if solutions is None else solutions
    outcomes: list[Outcome] = []
    _check_memory(max(sizes, default=0))
    for n in sizes:
        u = INSTANCES[instance](n, seed)
        outcomes += [solve(solution, u) for solution in chosen]
        # In any order: planted pairs are neighbours, which would make it easy for a window.
        mixed = u[torch.from_numpy(np.random.default_rng(seed).permutation(n))]
        outcomes += [measure(graph, mixed) for graph in graphs]
    return outcomes
