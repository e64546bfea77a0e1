"""Task 1 of the BigBird paper: for each of n vectors, find the one that is furthest from it.

One layer of full attention solves it: the query is minus the vector, the keys are the vectors, and
hardmax selects the key with the smallest inner product, which for unit vectors is the furthest. A
sparse graph has too few edges to compare all pairs in one layer. Under the Orthogonal Vectors
Conjecture, every graph with O~(n) edges needs Omega~(n^(1 - o(1))) layers (Zaheer et al. 2020,
Proposition 1). Two constructed solutions come within a constant factor of that:

    ring    vectors move around a ring, r at a time: n / r layers
    hub     global tokens load one vector after the other, and all compare: n / g + 1 layers

All solutions run through `longbird.attention` in float64, with weights that are matrices of zeros,
ones and a few integers. Their results are exact, and found in the stated number of layers.
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

from longbird.analysis.theory.limits import (
    Outcome,
    check_all_pairs,
    count_edges,
    measure,
    share_within,
)
from longbird.analysis.theory.vectors import HARD, INSTANCES, solved, unit_vectors
from longbird.analysis.theory.vectors import bits as bits
from longbird.analysis.theory.vectors import close as close
from longbird.analysis.theory.vectors import planted as planted
from longbird.core.graph import Edges, Full, Graph
from longbird.core.graph.arguments import integer
from longbird.core.operator.api import attention
from longbird.errors import InvalidValueError

# ---- Solutions ----


def _attend(q: Tensor, k: Tensor, v: Tensor, graph: Graph) -> Tensor:
    """Return hardmax attention over [tokens, head_dim]."""
    width = max(q.shape[1], v.shape[1])
    q, k, padded = (torch.nn.functional.pad(x, (0, width - x.shape[1])) for x in (q, k, v))
    read = attention(q[None, None], k[None, None], padded[None, None], graph, scale=HARD)
    return read[0, 0, :, : v.shape[1]]


@dataclass(frozen=True)
class Weights:
    """The weights of one layer."""

    query: Tensor  # [head_dim, width of x]
    key: Tensor
    value: Tensor

    def __call__(self, x: Tensor, graph: Graph) -> Tensor:
        """Return what each token of [tokens, width] reads, by hardmax attention."""
        return _attend(x @ self.query.T, x @ self.key.T, x @ self.value.T, graph)


@dataclass(frozen=True)
class FullLayer:
    """One layer of full attention.

    A token is x = [u; 0]. With Q = [-I 0], K = [I 0] and V = [0 I] it becomes [u; furthest].
    """

    name = "full attention"

    def graph(self, n: int) -> Graph:
        """Return the graph in which all tokens see all tokens."""
        return Full()

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """Return the tokens that hold the vectors."""
        return np.arange(n)[None]

    def takes(self, n: int) -> int:
        """Return the number of layers for n vectors."""
        return 1

    def weights(self, size: int) -> Weights:
        """Return the weights, for tokens [u; 0] of 2 size coordinates."""
        own, nothing = torch.eye(size).double(), torch.zeros(size, size).double()
        value = torch.cat([torch.cat([nothing, nothing], 1), torch.cat([own, nothing], 1)])
        return Weights(torch.cat([-own, nothing], 1), torch.cat([own, nothing], 1), value)

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """Yield what each vector has found after the only layer."""
        size = u.shape[1]
        x = torch.cat([u, torch.zeros_like(u)], dim=1)
        x = x + self.weights(size)(x, self.graph(len(u)))
        # A token that has lost its vector has found nothing.
        kept = (x[:, :size] == u).all(dim=1, keepdim=True)
        yield torch.where(kept, x[:, size:], torch.nan)


@dataclass(frozen=True)
class Ring:
    """A ring of n holders and n carriers.

    Holder i is [u_i; the furthest so far], carrier n + i is [u_i; a candidate]. A holder sees
    itself and `reach` carriers, compares u_i with their candidates, and keeps the furthest. A
    carrier sees the carrier `reach` places behind it, and takes over its candidate.

    Args:
        reach: Number of carriers that a holder sees.
    """

    reach: int = 1

    def __post_init__(self) -> None:
        """Check the argument."""
        integer(self.reach, "reach", least=1)

    @property
    def name(self) -> str:
        """Name in tables and pictures."""
        return f"ring, {self.reach} a layer"

    def graph(self, n: int) -> Graph:
        """Return the edges between the 2n tokens."""
        _check_fits("reach", self.reach, n)
        i = np.arange(n)
        behind = [np.stack([i, n + (i - back) % n], 1) for back in range(self.reach)]
        handed = np.stack([n + i, n + (i - self.reach) % n], axis=1)
        return Edges(np.concatenate([np.stack([i, i], axis=1), *behind, handed]))

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """Return the tokens that hold the vectors: holders, and carriers."""
        return np.arange(2 * n).reshape(2, n)

    def takes(self, n: int) -> int:
        """Return the number of layers for n vectors."""
        return -(-n // self.reach)

    def weights(self, size: int) -> Weights:
        """Return the weights: the query is minus the vector, key and value are the second slot."""
        own, nothing = torch.eye(size).double(), torch.zeros(size, size).double()
        second = torch.cat([nothing, own], dim=1)
        return Weights(torch.cat([-own, nothing], dim=1), second, second.clone())

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """Yield what each vector has found after each layer, without end."""
        n, size = u.shape
        graph, read = self.graph(n), self.weights(size)
        x = torch.cat([u, u], dim=1).repeat(2, 1)  # [2n, 2 size]
        while True:
            # The feed-forward layer replaces the second slot with what was read.
            x = torch.cat([x[:, :size], read(x, graph)], dim=1)
            yield x[:n, size:]


@dataclass(frozen=True)
class Hub:
    """Global tokens that load one vector after the other: tokens 0 to hubs - 1, then the vectors.

    In layer t, hub h loads the vector at position t hubs + h (or one of the last), which the
    weights of that layer specify. At the same time, every token compares its vector with what the
    hubs loaded in the layer before.

    A token is [own vector; second slot; place; place^2; hub?; number of the hub; empty?; 1].

    Args:
        hubs: Number of global tokens.
    """

    hubs: int = 1

    def __post_init__(self) -> None:
        """Check the argument."""
        integer(self.hubs, "hubs", least=1)

    @property
    def name(self) -> str:
        """Name in tables and pictures."""
        return f"{self.hubs} hub{'s' * (self.hubs != 1)}"

    def graph(self, n: int) -> Graph:
        """Return the graph in which hubs see all vectors, and vectors see hubs and themselves."""
        _check_fits("hubs", self.hubs, n)
        hub, token = np.arange(self.hubs), self.hubs + np.arange(n)
        down = np.stack(np.meshgrid(hub, token, indexing="ij"), axis=-1).reshape(-1, 2)
        return Edges(np.concatenate([down, down[:, ::-1], np.stack([token, token], axis=1)]))

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """Return the tokens that hold the vectors."""
        return self.hubs + np.arange(n)[None]

    def takes(self, n: int) -> int:
        """Return the number of layers for n vectors."""
        return -(-n // self.hubs) + 1

    def weights(self, size: int, first: int = 0) -> Weights:
        """Return the weights of a layer in which hub h loads the position first + h.

        Between vectors and candidates, the score is minus their product. Between a hub that loads
        position w and place p, it is 2 w p - p^2, which is largest for p = w.
        """
        place, square, is_hub, number, empty, one = range(2 * size, 2 * size + 6)
        query, key = torch.zeros(2, size + 3, 2 * size + 6).double()
        query[:size, :size], key[:size, size : 2 * size] = -torch.eye(size), torch.eye(size)
        query[size, [is_hub, number]] = torch.tensor([2.0 * first, 2.0]).double()
        key[size, place] = 1
        query[size + 1, is_hub], key[size + 1, square] = -1, 1
        # A hub that has not loaded anything must not be selected.
        query[size + 2, one], key[size + 2, empty] = -1, 4
        return Weights(query, key, torch.eye(2 * size, 2 * size + 6).double())

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """Yield what each vector has found after each layer, without end."""
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
            # The feed-forward layer keeps one half, selected by the coordinate that marks hubs.
            x[:hubs, size : 2 * size], x[hubs:, size : 2 * size] = loaded[:hubs], kept[hubs:]
            x[:, 2 * size + 4] = 0
            yield x[hubs:, size : 2 * size].clone()


def _check_fits(name: str, number: int, n: int) -> None:
    if number > n:
        raise InvalidValueError(
            f"{name} must be at most the {n} vectors that there are, received {number}"
        )


Solution = FullLayer | Ring | Hub


def solve(solution: Solution, u: Tensor | npt.ArrayLike, most: int | None = None) -> Outcome:
    """Run a solution until every vector has found the furthest.

    Args:
        solution: Solution to run.
        u: Unit vectors: [n, size].
        most: Maximum number of layers; by default the number that the solution needs.

    Raises:
        ValueError: The vectors are not unit vectors, or too few for the solution.

    Examples:
        >>> outcome = solve(Ring(), planted(32))
        >>> outcome.layers, outcome.accuracy[-2], outcome.comparisons
        (32, 0.5, 15.5)
        >>> solve(FullLayer(), planted(32)).layers
        1
    """
    u = unit_vectors(u)
    n = len(u)
    graph, homes = solution.graph(n), solution.homes(n)  # raises if there are too few vectors
    check_all_pairs(int(homes.max()) + 1)
    most = solution.takes(n) if most is None else integer(most, "most", least=1)
    accuracy: list[float] = []
    for found in itertools.islice(solution.layers(u), most):
        accuracy.append(float(solved(u, found).double().mean()))
        if accuracy[-1] == 1:
            break
    edges = count_edges(graph, int(homes.max()) + 1)
    return Outcome(
        name=solution.name,
        n=n,
        edges=edges,
        accuracy=tuple(accuracy),
        within=share_within(graph, u, len(accuracy), homes),
        comparisons=n * (n - 1) / edges if edges else math.inf,
    )


def experiment(
    sizes: Sequence[int] = (16, 32, 64),
    solutions: Sequence[Solution] | None = None,
    instance: str = "planted",
    seed: int = 0,
    graphs: Sequence[Graph | str] = (),
) -> list[Outcome]:
    """Run solutions for several numbers of vectors.

    For graphs without a solution, the limits of any solution are measured on the same vectors in
    random order.

    Args:
        sizes: Numbers of vectors.
        solutions: Solutions; by default full attention, the ring and the hub.
        instance: Kind of vectors: "planted", "close" or "bits".
        seed: Seed of the vectors.
        graphs: Graphs without a solution.

    Raises:
        ValueError: The instance is unknown, or there is too little memory.
    """
    if instance not in INSTANCES:
        raise InvalidValueError(
            f"the instance must be one of {', '.join(INSTANCES)}, received {instance!r}"
        )
    chosen = (FullLayer(), Ring(), Hub()) if solutions is None else solutions
    outcomes: list[Outcome] = []
    check_all_pairs(max(sizes, default=0))
    for n in sizes:
        u = INSTANCES[instance](n, seed)
        outcomes += [solve(solution, u) for solution in chosen]
        # In random order, since planted pairs are neighbours, which would favour windows.
        mixed = u[torch.from_numpy(np.random.default_rng(seed).permutation(n))]
        outcomes += [measure(graph, mixed) for graph in graphs]
    return outcomes
