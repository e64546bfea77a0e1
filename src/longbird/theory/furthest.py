"""Task 1: for each of n vectors, find the one that is furthest from it.

One layer of full attention does it: the query is minus the vector, the keys are the vectors, and
hardmax picks the key with the smallest inner product, which for unit vectors is the furthest. A
sparse graph has too few edges to compare all pairs in a layer. Under the Orthogonal Vectors
Conjecture every graph of O~(n) edges needs Omega~(n^(1 - o(1))) layers (Zaheer et al. 2020,
Proposition 1). Two hand-built solutions come to within a constant factor of that:

    ring    vectors are handed on around a ring, r at a time: n / r layers
    hub     global tokens load one vector after the other, and all compare: n / g + 1 layers

All of them run through `longbird.attention` in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longbird.graph import Edges, Full, Graph, as_graph
from longbird.graph.arguments import integer
from longbird.ops.api import attention

HARD = 1e9
"""What scores are multiplied by: one that is lower by a millionth has weight 0 in float64."""
ALIKE = 1e-9
"""Inner products that differ by less are the same."""


# ---- Instances ----


def _size(n: int) -> int:
    """About log2(n)^2, as a power of 4, so that 1 / sqrt(size) is exact."""
    return 4 ** max(2, math.ceil(math.log2(max(2.0, math.log2(n) ** 2)) / 2))


def planted(n: int, seed: int = 0) -> Tensor:
    """Unit vectors [n, size] in pairs: vector i + 1 is minus vector i, for even i.

    Each pair is neighbours on the ring, the one behind the other, which is what the ring comes to
    last. The coordinates are plus or minus a power of two: all products are exact.
    """
    integer(n, "n", least=2)
    size = _size(n)
    generator = np.random.default_rng(seed)
    signs: dict[bytes, npt.NDArray[np.int64]] = {}
    while len(signs) < -(-n // 2):
        drawn = generator.choice([-1, 1], size)
        signs.setdefault((drawn * drawn[0]).tobytes(), drawn)  # one of two opposite vectors
    half = torch.from_numpy(np.stack(list(signs.values()))).double() / math.sqrt(size)
    return torch.stack([half, -half], dim=1).reshape(-1, size)[:n]


def bits(n: int, seed: int = 0) -> Tensor:
    """Random bits, normalised, so sparse that about one pair is orthogonal: [n, size].

    To tell whether there is such a pair at all is the problem of the conjecture.
    """
    integer(n, "n", least=2)
    size = _size(n)
    # (1 - p^2)^size = 1 / n^2
    density = math.sqrt(1 - n ** (-2 / size))
    generator = np.random.default_rng(seed)
    drawn = generator.random((n, size)) < density
    empty = ~drawn.any(axis=1)
    drawn[empty, generator.integers(size, size=int(empty.sum()))] = True
    return torch.nn.functional.normalize(torch.from_numpy(drawn).double(), dim=1)


INSTANCES: dict[str, Callable[[int, int], Tensor]] = {"planted": planted, "bits": bits}


def solved(u: Tensor, found: Tensor) -> Tensor:
    """For which vectors the found one is furthest: bool [n].

    Where several are equally far, hardmax gives their mean, whose inner product is the same.
    """
    return ((u * found).sum(dim=1) - (u @ u.T).amin(dim=1)).abs() < ALIKE


# ---- Solutions ----


def _attend(q: Tensor, k: Tensor, v: Tensor, graph: Graph) -> Tensor:
    """Hardmax attention over [tokens, head_dim]."""
    width = max(q.shape[1], v.shape[1])
    q, k, padded = (torch.nn.functional.pad(x, (0, width - x.shape[1])) for x in (q, k, v))
    read = attention(q[None, None], k[None, None], padded[None, None], graph, scale=HARD)
    return read[0, 0, :, : v.shape[1]]


@dataclass(frozen=True)
class FullLayer:
    """One layer of full attention.

    A token is x = [u; 0]. With Q = [-I 0], K = [I 0] and V = [0; I] it becomes [u; furthest].
    """

    name = "full attention"

    def graph(self, n: int) -> Graph:
        """Everything sees everything."""
        return Full()

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """The tokens that hold the vectors."""
        return np.arange(n)[None]

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """What each vector has found, after the one layer."""
        size = u.shape[1]
        eye, none = torch.eye(size, dtype=u.dtype), torch.zeros(size, size, dtype=u.dtype)
        query, key = torch.cat([-eye, none], dim=1), torch.cat([eye, none], dim=1)
        x = torch.cat([u, torch.zeros_like(u)], dim=1)
        value = torch.cat([none, eye])  # [2 size, size]
        x = x + _attend(x @ query.T, x @ key.T, x @ key.T, Full()) @ value.T
        yield x[:, size:]


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

    @property
    def name(self) -> str:
        """For tables and pictures."""
        return f"ring, {self.reach} a layer"

    def graph(self, n: int) -> Graph:
        """The edges between 2n tokens."""
        i = np.arange(n)
        behind = [np.stack([i, n + (i - back) % n], 1) for back in range(min(self.reach, n))]
        handed = np.stack([n + i, n + (i - self.reach) % n], axis=1)
        return Edges(np.concatenate([np.stack([i, i], axis=1), *behind, handed]))

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """The tokens that hold the vectors: holders, and carriers."""
        return np.arange(2 * n).reshape(2, n)

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """What each vector has found, after each layer, without end."""
        n, size = u.shape
        graph = self.graph(n)
        x = torch.cat([u, u], dim=1).repeat(2, 1)  # [2n, 2 size]
        while True:
            own, second = x.split(size, dim=1)
            # The query is minus the vector, key and value are the second slot, which the
            # feed-forward layer then overwrites with what was read.
            x = torch.cat([own, _attend(-own, second, second, graph)], dim=1)
            yield x[:n, size:]


@dataclass(frozen=True)
class Hub:
    """Global tokens that load one vector after the other: tokens 0 to hubs - 1, then the vectors.

    In layer t, hub h asks for the position t hubs + h, which the weights of that layer say, and
    takes over the vector that is there. At the same time every token compares its vector with what
    the hubs loaded in the layer before.

    Args:
        hubs: Global tokens.
    """

    hubs: int = 1

    @property
    def name(self) -> str:
        """For tables and pictures."""
        return f"{self.hubs} hub{'s' * (self.hubs != 1)}"

    def graph(self, n: int) -> Graph:
        """Hubs see all vectors; vectors see the hubs and themselves."""
        hub, token = np.arange(self.hubs), self.hubs + np.arange(n)
        down = np.stack(np.meshgrid(hub, token, indexing="ij"), axis=-1).reshape(-1, 2)
        return Edges(np.concatenate([down, down[:, ::-1], np.stack([token, token], axis=1)]))

    def homes(self, n: int) -> npt.NDArray[np.int64]:
        """The tokens that hold the vectors."""
        return self.hubs + np.arange(n)[None]

    def layers(self, u: Tensor) -> Iterator[Tensor]:
        """What each vector has found, after each layer, without end."""
        n, size = u.shape
        graph, hubs = self.graph(n), self.hubs
        nothing = u.new_zeros(hubs, size)
        own, second = torch.cat([nothing, u]), torch.cat([nothing, u])
        is_hub = (torch.arange(hubs + n) < hubs)[:, None].double()
        place = torch.cat([u.new_zeros(hubs), torch.arange(n).double()])[:, None]
        empty = is_hub.clone()  # a hub that has loaded nothing yet must not win
        layer = 0
        while True:
            wanted = torch.zeros(hubs + n, 1, dtype=u.dtype)
            wanted[:hubs, 0] = (layer * hubs + torch.arange(hubs)) % n
            # A vector: minus its inner product with a candidate. A hub: 2 w p - p^2, which is
            # largest where the place p is the wanted w.
            query = torch.cat([-own, 2 * wanted * is_hub, -is_hub, is_hub - 1], dim=1)
            key = torch.cat([second, place, place**2, 4 * empty], dim=1)
            read = _attend(query, key, torch.cat([own, second], dim=1), graph)
            # The feed-forward layer keeps one half of it, by the coordinate that marks hubs.
            loaded, kept = read.split(size, dim=1)
            second = torch.where(is_hub > 0, loaded, kept)
            empty = torch.zeros_like(empty)
            layer += 1
            yield second[hubs:]


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
        comparisons: Layers that any solution needs which compares whole vectors, one for each
            edge: n (n - 1) / edges.
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


def solve(solution: Solution, u: Tensor, most: int | None = None) -> Outcome:
    """Runs a solution until every vector has found the furthest, or for `most` layers.

    Examples:
        >>> outcome = solve(Ring(), planted(32))
        >>> outcome.layers, outcome.accuracy[-2], outcome.comparisons
        (32, 0.5, 15.5)
        >>> solve(FullLayer(), planted(32)).layers
        1
    """
    n = len(u)
    most = 2 * n + 2 if most is None else most
    accuracy: list[float] = []
    for found in solution.layers(u):
        accuracy.append(float(solved(u, found).double().mean()))
        if accuracy[-1] == 1 or len(accuracy) == most:
            break
    graph, homes = solution.graph(n), solution.homes(n)
    edges = _edges(graph, int(homes.max()) + 1)
    return Outcome(
        name=solution.name,
        n=n,
        edges=edges,
        accuracy=tuple(accuracy),
        within=share_within(graph, u, len(accuracy), homes),
        comparisons=n * (n - 1) / edges,
    )


def measure(graph: Graph | str, u: Tensor, most: int = 8) -> Outcome:
    """What limits any solution over a graph, without one: hops and comparisons."""
    graph, n = as_graph(graph), len(u)
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
        instance: "planted" or "bits".
        seed: Of the vectors.
        graphs: Graphs without a solution.

    Raises:
        ValueError: There is no such instance.
    """
    if instance not in INSTANCES:
        raise ValueError(
            f"the instance must be one of {', '.join(INSTANCES)}, received {instance!r}"
        )
    chosen = (FullLayer(), Ring(), Hub()) if solutions is None else solutions
    outcomes: list[Outcome] = []
    for n in sizes:
        u = INSTANCES[instance](n, seed)
        outcomes += [solve(solution, u) for solution in chosen]
        # In any order: planted pairs are neighbours, which would make it easy for a window.
        mixed = u[torch.from_numpy(np.random.default_rng(seed).permutation(n))]
        outcomes += [measure(graph, mixed) for graph in graphs]
    return outcomes
