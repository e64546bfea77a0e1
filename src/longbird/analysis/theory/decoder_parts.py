"""The graph, the layers and the coordinates of the decoder that runs Turing machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longbird.core.graph import Edges
from longbird.core.operator.api import attention

HARD = 1000.0
"""Factor of scores: exp(-1000) is 0 in float64."""


ROWS = 8192
"""Number of nodes that a feed-forward layer computes at a time, to save memory."""


Nodes = npt.NDArray[np.int64]


Name: TypeAlias = str | tuple[str, str]


def first_node(step: int) -> int:
    """Return T(step), the first node of the block of a step: its compute node."""
    return step * (step + 1) // 2


def places(nodes: Nodes) -> tuple[Nodes, Nodes]:
    """Return the step of each node, and its place in the block: 0 for the compute node."""
    steps = ((np.sqrt(8.0 * nodes + 1) - 1) // 2).astype(np.int64)
    # Corrects roots that were rounded to the wrong side of an integer.
    steps += (steps + 1) * (steps + 2) // 2 <= nodes
    steps -= steps * (steps + 1) // 2 > nodes
    return steps, nodes - steps * (steps + 1) // 2


def self_edges(nodes: Nodes) -> Nodes:
    """Return edges [edges, 2] from nodes to themselves, and from scan nodes to records."""
    _, place = places(nodes)
    scan, k = nodes[place > 0], place[place > 0]
    records = np.stack([scan, (k - 1) * k // 2], axis=1)
    return np.concatenate([np.stack([nodes, nodes], axis=1), records])


def cross_edges(nodes: Nodes, cells: int) -> Nodes:
    """Return edges [edges, 2] to the input: scan nodes see cell k - 1, compute nodes cell t."""
    step, place = places(nodes)
    cell = np.where(place > 0, place - 1, step)
    return np.stack([nodes, cell], axis=1)[cell < cells]


@dataclass(frozen=True)
class TableLayer:
    """The layer x + W relu(V x + b), with one hidden unit for each line of a table."""

    inward: Tensor  # [hidden, width]
    bias: Tensor  # [hidden]
    outward: Tensor  # [hidden, width]

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the layer to nodes [nodes, width]."""
        return torch.cat(
            [
                rows + torch.relu(rows @ self.inward.T + self.bias) @ self.outward
                for rows in x.split(ROWS)
            ]
        )


@dataclass(frozen=True)
class Attention:
    """The attention layer O attention(Q x, K y, V y) over a graph, in float64."""

    query: Tensor  # [head_dim, width]
    key: Tensor
    value: Tensor
    output: Tensor  # [head_dim, width]

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, edges: Nodes) -> Tensor:
        """Run the operator over tokens [tokens, head_dim] and the graph of these edges."""
        read = attention(q[None, None], k[None, None], v[None, None], Edges(edges), scale=HARD)
        return read[0, 0] @ self.output


class Coordinates:
    """The named coordinates of nodes; those that are passed to the next node come first."""

    def __init__(self, states: Sequence[str], symbols: Sequence[str]) -> None:
        self.state = [("state", state) for state in states]
        self.symbol = [("symbol", symbol) for symbol in symbols]
        handed_on: list[Name] = [*self.state, *self.symbol, "cell", "stayed"]
        self.handed_on = len(handed_on)
        self.names: list[Name] = [*handed_on, "compute", "one", "cell before"]
        for kind in ("written", "record", "input"):
            self.names += [(kind, symbol) for symbol in symbols]
        for kind in ("record", "input"):
            self.names += [f"{kind} cell", f"{kind} there", f"same as {kind}", f"take {kind}"]
        self.index = {name: place for place, name in enumerate(self.names)}
        self.symbols = slice(len(states), len(states) + len(symbols))

    def vector(self, weights: Mapping[Name, float]) -> Tensor:
        """Return a vector with these coordinates, and 0 elsewhere."""
        vector = torch.zeros(len(self.names), dtype=torch.float64)
        for name, weight in weights.items():
            vector[self.index[name]] += weight
        return vector

    def matrix(self, rows: Iterable[Name]) -> Tensor:
        """Return a matrix whose rows select these coordinates."""
        return torch.stack([self.vector({name: 1.0}) for name in rows])

    def feed_forward(
        self, units: Iterable[tuple[Mapping[Name, float], float, Mapping[Name, float]]]
    ) -> TableLayer:
        """Return the layer of hidden units: their input weights, biases and output weights."""
        into, bias, out = zip(*units, strict=True)
        inward, outward = torch.zeros(2, len(bias), len(self.names), dtype=torch.float64)
        for unit, (reads, adds) in enumerate(zip(into, out, strict=True)):
            inward[unit], outward[unit] = self.vector(reads), self.vector(adds)
        return TableLayer(inward, torch.tensor(bias, dtype=torch.float64), outward)


def is_zero(weights: Mapping[Name, float], name: Name) -> Iterable[Any]:
    """Yield units that add 1 if an integer is 0: relu(x + 1) - 2 relu(x) + relu(x - 1)."""
    for bias, weight in ((1, 1), (0, -2), (-1, 1)):
        yield weights, bias, {name: weight}
