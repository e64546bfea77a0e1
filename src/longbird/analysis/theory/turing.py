"""A sparse decoder that runs a Turing machine: constructed weights, hardmax, three edges a node.

The decoder generates nodes one after the other. Step t of the machine is a block of t + 1 nodes: a
compute node, which executes the step, and t scan nodes, which find the symbol on the cell to which
the head has moved. Block t begins at node T(t) = t (t + 1) / 2.

    compute node T(t)        applies the table: new state, written symbol, movement of the head
    scan node T(t) + k       reads what compute node T(k - 1) wrote, and where; if that is the
                             cell of the head, it is the symbol found so far

Records are read from the oldest on, so that the last write wins. The input is read in the same
way: the node reads cell k - 1 by cross-attention (a compute node cell t), always before the first
record of that cell, because the head cannot be there earlier. A node has at most two edges to
nodes, one of them to itself, and one to the input.

All values of nodes are integers: one-hot vectors of state and symbol, the cell of the head, and a
bit for whether the head stayed. float64 represents integers exactly, and scores that differ by one
differ by `HARD` after scaling, where exp is 0 in float64: softmax is exactly hardmax.

The idea is that of Zaheer et al. 2020 (appendix B), after Pérez et al. 2019.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longbird.analysis.theory.decoder_parts import (
    Attention,
    Coordinates,
    Name,
    Nodes,
    cross_edges,
    first_node,
    is_zero,
    places,
    self_edges,
)
from longbird.analysis.theory.machine_run import BLANK, INPUT, MachineRun
from longbird.analysis.theory.machines import BEGIN, Configuration, Machine, Transition
from longbird.analysis.theory.nodes import wrong_node
from longbird.core.graph.arguments import integer
from longbird.core.machine import check_memory

MOST_STEPS = 100_000
"""Maximum number of steps: they take five billion nodes, more than fit into memory."""
AT_ONCE = 1 << 17
"""Maximum number of nodes in one call of the operator."""
CELLS = ("cell", "cell before", "record cell", "input cell")
"""Coordinates that can be any integer; all others are 0 or 1."""


# ---- The graph ----


# ---- Layers ----


class Decoder:
    """The decoder that runs a machine.

    A node passes through six layers: `step` (the table), `recall` (attention to nodes), `look`
    (attention to the input), `compare`, `match` and `choose`.

    Args:
        machine: Machine to run.

    Examples:
        >>> run = Decoder(Machine.load("increment")).run("1011")
        >>> run.ok, run.halted, len(run.configurations) - 1, run.nodes
        (True, True, 8, 45)
        >>> "".join(run.tape().values())
        '1100'
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        states, symbols = (*machine.states, BEGIN), machine.symbols
        self.stream = stream = Coordinates(states, symbols)
        lines, width = len(states) * len(symbols), len(stream.names)
        check_memory(
            3 * 8 * lines * width,
            f"the weights for {lines:,} lines of a table, of {width:,} each way,",
            "choose a machine with fewer states",
        )
        self.step = stream.feed_forward(self._step_units())
        self.recall = Attention(
            query=self._heads(["one"]),
            key=self._heads(["compute"]),
            value=self._heads([*(("written", a) for a in symbols), "cell before", "compute"]),
            output=self._heads([*(("record", a) for a in symbols), "record cell", "record there"]),
        )
        # Each query has one key, so nothing is selected, and queries and keys are 0.
        head_dim = len(symbols) + 2
        self.look = Attention(
            query=self._heads([]),
            key=torch.zeros(head_dim, head_dim, dtype=torch.float64),
            value=torch.eye(head_dim, dtype=torch.float64),
            output=self._heads([*(("input", a) for a in symbols), "input cell", "input there"]),
        )
        self.compare = stream.feed_forward(
            unit
            for kind in ("record", "input")
            for unit in is_zero({f"{kind} cell": 1, "cell": -1}, f"same as {kind}")
        )
        self.match = stream.feed_forward(
            ({f"same as {kind}": 1, f"{kind} there": 1, "stayed": -1}, -1, {f"take {kind}": 1})
            for kind in ("record", "input")
        )
        self.choose = stream.feed_forward(
            ({(source, a): 1, f"take {kind}": 1}, -1, {("symbol", a): sign})
            for kind in ("record", "input")
            for a in symbols
            for source, sign in ((kind, 1), ("symbol", -1))
        )

    def _step_units(
        self,
    ) -> Iterable[tuple[Mapping[Name, float], float, Mapping[Name, float]]]:
        """Yield a unit for each line of the table, which is active for one state and symbol."""
        blank = self.machine.blank
        table = {
            (q, a): self.machine.transition(q, a)
            for q in self.machine.states
            for a in self.machine.symbols
        } | {(BEGIN, blank): Transition(blank, 1, self.machine.start)}
        for (q, a), then in table.items():
            added: Counter[Name] = Counter()
            added["state", q] -= 1
            added["state", then.state] += 1
            added["symbol", a] -= 1
            added["symbol", blank if then.move else then.write] += 1
            added["written", then.write] += 1
            added["cell"] += then.move
            added["stayed"] += then.move == 0
            yield {("state", q): 1, ("symbol", a): 1, "compute": 1}, -2, added
        yield {"stayed": 1, "compute": 1}, -1, {"stayed": -1}
        # The cell that the head leaves, c = relu(c) - relu(-c).
        yield {"cell": 1}, 0, {"cell before": 1}
        yield {"cell": -1}, 0, {"cell before": -1}

    def _heads(self, names: Sequence[Name]) -> Tensor:
        """Return a matrix [head_dim, width] that selects coordinates, padded with zeros."""
        head_dim = len(self.machine.symbols) + 2
        rows = torch.zeros(head_dim, len(self.stream.names), dtype=torch.float64)
        if names:
            rows[: len(names)] = self.stream.matrix(names)
        return rows

    def weights(self) -> dict[str, Tensor]:
        """Return all weights by name."""
        layers = ("step", "recall", "look", "compare", "match", "choose")
        return {
            f"{layer}.{name}": weight
            for layer in layers
            for name, weight in vars(getattr(self, layer)).items()
        }

    # Layers over nodes.

    def memory(self, symbols: Sequence[str]) -> Tensor:
        """Return the encoded input, with one-hot symbol, cell and 1: [cells, symbols + 2]."""
        rows = torch.zeros(len(symbols), len(self.machine.symbols) + 2, dtype=torch.float64)
        for cell, symbol in enumerate(symbols):
            rows[cell, self.machine.symbols.index(symbol)] = 1
            rows[cell, -2:] = torch.tensor([cell, 1.0])
        return rows

    def forward(self, y: Tensor, memory: Tensor) -> Iterator[tuple[str, Tensor]]:
        """Compute all nodes 0, 1, ... at once from their inputs [nodes, handed_on].

        Yields:
            Name of each layer and the coordinates of the nodes after it, [nodes, width]; the first
            coordinates after the last layer are the inputs of the next nodes.
        """
        nodes = np.arange(len(y))
        x = self.step(self.embedded(y, places(nodes)[1] == 0))
        yield "step", x
        keys, values = x @ self.recall.key.T, x @ self.recall.value.T
        x = torch.cat(
            [
                self._attended(rows, part, keys, values, memory)
                for rows, part in zip(
                    x.split(AT_ONCE),
                    np.split(nodes, range(AT_ONCE, len(nodes), AT_ONCE)),
                    strict=True,
                )
            ]
        )
        yield "look", x
        for name, layer in (
            ("compare", self.compare),
            ("match", self.match),
            ("choose", self.choose),
        ):
            x = layer(x)
            yield name, x

    def embedded(self, y: Tensor, compute: npt.NDArray[np.bool_]) -> Tensor:
        """Return nodes before their first layer, from their inputs and whether they compute."""
        x = y.new_zeros(len(y), len(self.stream.names))
        x[:, : self.stream.handed_on] = y
        x[:, self.stream.index["compute"]] = torch.from_numpy(compute).double()
        x[:, self.stream.index["one"]] = 1
        return x

    def _attended(
        self, x: Tensor, nodes: Nodes, keys: Tensor, values: Tensor, memory: Tensor
    ) -> Tensor:
        """Apply both attentions to consecutive nodes, with keys and values of all nodes so far."""
        # Only nodes that see or are seen, like the cache of a decoder.
        edges = self_edges(nodes)
        tokens = np.union1d(nodes, edges[:, 1])
        k, v = keys[tokens], values[tokens]
        at = np.searchsorted(tokens, nodes)
        q = torch.zeros_like(k)
        q[at] = x @ self.recall.query.T
        record = self.recall(q, k, v, np.searchsorted(tokens, edges))[at]
        read = cross_edges(nodes, len(memory)) - np.array([nodes[0], 0])
        return x + record + self.looked(x, memory, read)

    def looked(self, x: Tensor, memory: Tensor, edges: Nodes) -> Tensor:
        """Return what nodes [nodes, width] read of the input over edges from nodes to cells."""
        # The cells of the input, followed by the nodes.
        q = torch.cat([torch.zeros_like(memory), x @ self.look.query.T])
        k, v = torch.zeros_like(q), torch.zeros_like(q)
        k[: len(memory)], v[: len(memory)] = memory @ self.look.key.T, memory @ self.look.value.T
        return self.look(q, k, v, edges + np.array([len(memory), 0]))[len(memory) :]

    # Decoding.

    def run(
        self,
        text: str | Sequence[str] | None = None,
        steps: int = 447,
        *,
        at_once: bool = True,
    ) -> MachineRun:
        """Decode node after node until the machine halts, and compare every step.

        Args:
            text: Input; by default that of the machine.
            steps: Maximum number of steps; t steps take (t + 1) (t + 2) / 2 nodes.
            at_once: Whether to also compute all nodes at once over the whole graph and compare,
                and to `check` nodes on all other inputs.

        Returns:
            Run, which states whether every step equals that of the direct simulation.

        Raises:
            ValueError: The input has an unknown symbol, or the nodes do not fit into memory.
        """
        symbols = self.machine.read(text)
        # If the machine halts earlier, its nodes take less memory.
        steps = min(integer(steps, "steps"), MOST_STEPS)
        steps = sum(1 for _ in self.machine.simulate(symbols, steps)) - 1
        self._check_memory(steps)
        memory, handed_on = self.memory(symbols), self.stream.handed_on
        nodes = first_node(steps + 1)
        keys, values = torch.zeros(2, nodes, len(self.recall.key), dtype=torch.float64).unbind()
        given = self.stream.vector({("state", BEGIN): 1, ("symbol", self.machine.blank): 1})
        given = given[:handed_on]
        given[self.stream.index["cell"]] = -1
        blocks, found, sources = [given[None]], list[Configuration](), list[int]()
        problem, halted = None, False
        for step, expected in enumerate(self.machine.simulate(symbols, steps)):
            outputs, source = self._block(step, given, keys, values, memory)
            given = outputs[-1]
            blocks.append(outputs)
            here = self._configuration(given)
            if here is None or here != expected:
                problem = (
                    f"after step {step}, node {first_node(step + 1)} has "
                    f"{here or given.tolist()}, and the simulation {expected}"
                )
                break
            found.append(here)
            sources.append(source)
            halted = here[:2] not in self.machine.table
        y = torch.cat(blocks)
        if problem is None and at_once:
            problem = self._difference(y, memory) or self.check()
        return MachineRun(
            machine=self.machine,
            text=symbols,
            configurations=tuple(found),
            sources=tuple(sources),
            halted=halted,
            nodes=len(y) - 1,
            problem=problem,
        )

    def _block(
        self, step: int, given: Tensor, keys: Tensor, values: Tensor, memory: Tensor
    ) -> tuple[Tensor, int]:
        """Return the outputs of the nodes of a step, and the source of its symbol.

        Up to `choose`, scan nodes depend only on the compute node and are computed together. Then
        the symbol is passed from node to node.
        """
        nodes = np.arange(first_node(step), first_node(step + 1))
        symbols, index = self.stream.symbols, self.stream.index
        y = given.repeat(len(nodes), 1)
        compute = places(nodes)[1] == 0
        y[1:] = self.step(self.embedded(y[:1], compute[:1]))[:, : self.stream.handed_on]
        y[1:, symbols] = 0
        x = self.step(self.embedded(y, compute))
        block = slice(int(nodes[0]), int(nodes[-1]) + 1)
        keys[block], values[block] = x @ self.recall.key.T, x @ self.recall.value.T
        x = self._attended(x, nodes, keys, values, memory)
        x = self.match(self.compare(x))
        for place in range(len(nodes)):
            if place:
                x[place, symbols] = x[place - 1, symbols]
            x[place] = self.choose(x[place : place + 1])[0]
        record, read = (
            np.flatnonzero(x[:, index[f"take {kind}"]].numpy()) for kind in ("record", "input")
        )
        source = BLANK
        if x[0, index["stayed"]]:
            source = step - 1
        elif len(record):
            # Node k has record k - 1, and the first record is the blank of BEGIN.
            source = int(record[-1]) - 2
        elif len(read):
            source = INPUT
        return x[:, : self.stream.handed_on], source

    def _configuration(self, y: Tensor) -> Configuration | None:
        """Return the input of a compute node, or None if state or symbol is not one-hot."""
        states, symbols = self.machine.states, self.machine.symbols
        state, symbol = y[: len(states) + 1], y[self.stream.symbols]
        cell = float(y[self.stream.index["cell"]])
        if not (_is_one_hot(state[:-1]) and state[-1] == 0 and _is_one_hot(symbol)):
            return None
        if not cell.is_integer():
            return None
        return Configuration(states[int(state.argmax())], symbols[int(symbol.argmax())], int(cell))

    def _difference(self, y: Tensor, memory: Tensor) -> str | None:
        """Return where the outputs of all nodes, computed at once, differ; None if nowhere.

        No node sees a later one. So if every node outputs the input of the next, the nodes are
        those that decoding one by one gives. Coordinates other than cells have to be 0 or 1.
        """
        x = y
        for layer, x in self.forward(y[:-1], memory):
            if (wrong := self.no_bit(x, layer)) is not None:
                return f"node {wrong[0]} {wrong[1]}"
        wrong = (x[:, : self.stream.handed_on] != y[1:]).any(dim=1).nonzero()
        if len(wrong):
            return f"node {int(wrong[0])} hands on something else when all nodes run at once"
        return None

    def no_bit(self, x: Tensor, layer: str) -> tuple[int, str] | None:
        """Return the first node with another value than 0 or 1 in a bit, and a description."""
        bits = [place for name, place in self.stream.index.items() if name not in CELLS]
        wrong = ((x[:, bits] != 0) & (x[:, bits] != 1)).nonzero()
        if not len(wrong):
            return None
        node, bit = int(wrong[0, 0]), bits[int(wrong[0, 1])]
        return node, (
            f"has {float(x[node, bit]):g} for {self.stream.names[bit]} after the layer {layer!r}, "
            "expected 0 or 1"
        )

    def check(self) -> str | None:
        """Return what a node does wrong on any input that it can have; None if nothing.

        A run on one input uses few lines of the table and leaves the weights of the others
        untested: `longbird.analysis.theory.nodes` tests them all.
        """
        return wrong_node(self)

    def _check_memory(self, steps: int) -> None:
        nodes = first_node(steps + 1)
        # Several copies of the coordinates of all nodes, and the tiles of a call: about one for
        # each node, with 16 x 16 scores, keys and values.
        tile = 8 * 16 * (4 * 16 + 3 * len(self.recall.key))
        needed = 8 * 6 * len(self.stream.names) * nodes + tile * min(nodes, AT_ONCE)
        what = f"{steps:,} steps take {nodes:,} nodes, which"
        check_memory(needed, what, "choose fewer steps")


def _is_one_hot(vector: Tensor) -> bool:
    return bool(((vector == 0) | (vector == 1)).all() and vector.sum() == 1)
