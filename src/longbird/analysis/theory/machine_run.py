"""The result of running a Turing machine with a decoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longbird.analysis.theory.decoder_parts import (
    cross_edges,
    self_edges,
)
from longbird.analysis.theory.machines import Configuration, Machine

# Source of the symbol under the head, if it is not a step of the machine.
BLANK = -1


INPUT = -2


@dataclass(frozen=True)
class MachineRun:
    """The run of a decoder; prints as a summary.

    Attributes:
        machine: Machine that was run.
        text: Symbols of the input.
        configurations: State, symbol and cell of the decoder at each step.
        sources: For each configuration, the step that wrote the symbol under the head, or `INPUT`
            or `BLANK`.
        halted: Whether the machine halted.
        nodes: Number of decoded nodes.
        problem: First difference from the direct simulation, or None.
    """

    machine: Machine
    text: tuple[str, ...]
    configurations: tuple[Configuration, ...]
    sources: tuple[int, ...]
    halted: bool
    nodes: int
    problem: str | None

    @property
    def ok(self) -> bool:
        """Whether every step equals that of the direct simulation."""
        return self.problem is None

    @property
    def stuck(self) -> bool:
        """Whether it stopped for lack of a transition in a state that is not a halt state."""
        last = self.configurations[-1] if self.configurations else None
        named = self.machine.halts
        return self.halted and last is not None and bool(named) and last.state not in named

    @property
    def steps(self) -> int:
        """Number of steps of the machine."""
        return len(self.configurations) - 1

    @cached_property
    def edges(self) -> int:
        """Number of edges of all nodes, to nodes and to the input."""
        nodes = np.arange(self.nodes)
        return len(self_edges(nodes)) + len(cross_edges(nodes, len(self.text)))

    @cached_property
    def most_edges(self) -> int:
        """Maximum number of edges of a node."""
        nodes = np.arange(self.nodes)
        edges = np.concatenate([self_edges(nodes), cross_edges(nodes, len(self.text))])
        return int(np.bincount(edges[:, 0]).max(initial=0))

    def tapes(self) -> Iterator[dict[int, str]]:
        """Yield the tape of the decoder at each configuration, without blanks.

        It is the same dictionary each time, modified in place.
        """
        blank = self.machine.blank
        tape = {cell: symbol for cell, symbol in enumerate(self.text) if symbol != blank}
        for state, symbol, cell in self.configurations:
            yield tape
            tape[cell] = self.machine.transition(state, symbol).write
            if tape[cell] == blank:
                del tape[cell]

    def tape(self) -> dict[int, str]:
        """Return the final tape by cell, without blanks."""
        last: dict[int, str] = {}
        for tape in self.tapes():
            last = dict(tape)
        return dict(sorted(last.items()))

    def raise_if_failed(self) -> MachineRun:
        """Return the run, or raise an AssertionError that describes the difference."""
        if self.problem is not None:
            raise AssertionError(f"{self.machine.name}: {self.problem}")
        return self

    def __repr__(self) -> str:
        """Return a summary in a few lines."""
        if not self.configurations:
            return f"{self.machine.name}: FAILED  {self.problem}"
        last = self.configurations[-1]
        ended = "is stuck" if self.stuck else "halts" if self.halted else "goes on"
        lines = [
            f"{self.machine.name}: {ended} in {last.state} after {self.steps:,} steps, the head "
            f"on cell {last.cell}",
            *(
                [f"it is no halt state: the table has no line for {last.state} on {last.symbol}"]
                if self.stuck
                else []
            ),
            f"{self.nodes:,} node{'s' * (self.nodes != 1)}, {self.edges:,} "
            f"edge{'s' * (self.edges != 1)}, at most "
            f"{self.most_edges} a node",
        ]
        agreed = "every step agrees with the direct simulation"
        lines.append(agreed if self.ok else f"FAILED  {self.problem}")
        return "\n".join(lines)
