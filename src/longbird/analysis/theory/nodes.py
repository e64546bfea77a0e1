"""A test of single nodes of the decoder on all possible inputs.

A run on one input uses few lines of the table and leaves the weights of the others untested. Here,
a compute node is tested with every state and symbol, and a scan node with every state, symbol,
record and cell of the input, near the head and on its cell. Outputs must agree with the table.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longbird.analysis.theory.machines import BEGIN

if TYPE_CHECKING:
    from longbird.analysis.theory.turing import Decoder, Nodes

MOST_NODES = 1 << 12
"""Maximum number of tested cases of each kind of node; if there are more, they are sampled."""
NEAR = (-2, -1, 0, 1, 2)
"""Distances in cells from the head to what a node reads; longer ones do not differ."""


class Given(NamedTuple):
    """The input or output of a node."""

    state: str
    symbol: str
    cell: int
    stayed: int


def drawn(*choices: Sequence[Any]) -> Iterator[Any]:
    """Yield all combinations, or a random sample of `MOST_NODES` if there are more.

    Examples:
        >>> list(drawn("ab", (0, 1)))
        [('a', 0), ('a', 1), ('b', 0), ('b', 1)]
    """
    if math.prod(map(len, choices)) <= MOST_NODES:
        yield from itertools.product(*choices)
        return
    draw = random.Random(0)
    orders = [draw.sample(range(len(each)), len(each)) for each in choices]
    for number in range(MOST_NODES):
        yield tuple(
            each[order[number] if number < len(order) else draw.randrange(len(each))]
            for each, order in zip(choices, orders, strict=True)
        )


def wrong_node(decoder: Decoder) -> str | None:
    """Return a description of the first node with a wrong output, or None."""
    return _wrong_compute(decoder) or _wrong_scan(decoder)


def _wrong_compute(decoder: Decoder) -> str | None:
    machine, blank = decoder.machine, decoder.machine.blank
    lines = [(q, a) for q in machine.states for a in machine.symbols] + [(BEGIN, blank)]
    # A cell of the input with each symbol at each distance; None if it is beyond the end.
    reads = [None, *itertools.product(range(len(machine.symbols)), NEAR)]
    given: list[Given] = []
    wanted: list[Given] = []
    seen: list[tuple[int, int]] = []
    # Every line once, then combinations of lines with what a node may read.
    taken = [(line, 0, None) for line in lines]
    for (q, a), stayed, read in itertools.chain(taken, drawn(lines, (0, 1), reads)):
        write, move, then = machine.transition(q, a)
        if q == BEGIN:
            write, move, then = blank, 1, machine.start
        cell = 5 if read is None else read[0] + read[1]  # to which the head moves
        symbol = blank if move else write
        if read is not None:
            seen.append((len(given), read[0]))
            if move and read[1] == 0:
                symbol = machine.symbols[read[0]]
        given.append(Given(q, a, cell - move, stayed))
        wanted.append(Given(then, symbol, cell, int(move == 0)))
    x = decoder.step(decoder.embedded(_rows(decoder, given), np.ones(len(given), np.bool_)))
    itself = np.arange(len(given)).repeat(2).reshape(-1, 2)
    return _wrong(decoder, "compute", x, x, itself, seen, given, wanted)


def _wrong_scan(decoder: Decoder) -> str | None:
    machine = decoder.machine
    lines = [(q, a) for q in machine.states for a in machine.symbols]
    first = (BEGIN, machine.blank)
    reads = [None, *itertools.product(range(len(machine.symbols)), NEAR)]
    given: list[Given] = []
    wanted: list[Given] = []
    records: list[Given] = []
    seen: list[tuple[int, int]] = []
    # Every line once as the record that is found, then combinations.
    taken = [
        (line, 0, record, 0, None) for line, record in zip(lines, [*lines[1:], first], strict=True)
    ]
    cases = drawn(lines, (0, 1), [first, *lines], NEAR, reads)
    for (q, a), stayed, record, off, read in itertools.chain(taken, cases):
        if read is not None and read[1] == off == 0:
            continue  # no record is as old as the cell of the input that the node sees
        cell = 5 if read is None else read[0] + read[1]
        symbol = a
        if read is not None:
            seen.append((len(given), read[0]))
            if read[1] == 0 and not stayed:
                symbol = machine.symbols[read[0]]
        if off == 0 and not stayed:
            symbol = machine.transition(*record).write
        given.append(Given(q, a, cell, stayed))
        wanted.append(Given(q, symbol, cell, stayed))
        records.append(Given(*record, cell - off, 0))
    nodes = np.arange(len(given))
    x = decoder.step(decoder.embedded(_rows(decoder, given), np.zeros(len(given), np.bool_)))
    recorded = decoder.step(
        decoder.embedded(_rows(decoder, records), np.ones(len(given), np.bool_))
    )
    # Each node sees itself, and the compute node of its record, which follows after all nodes.
    edges = np.concatenate([np.stack([nodes, nodes], 1), np.stack([nodes, nodes + len(nodes)], 1)])
    return _wrong(decoder, "scan", x, torch.cat([x, recorded]), edges, seen, given, wanted)


def _wrong(
    decoder: Decoder,
    kind: str,
    x: Tensor,
    tokens: Tensor,
    edges: Nodes,
    seen: list[tuple[int, int]],
    given: list[Given],
    wanted: list[Given],
) -> str | None:
    """Return a description of the first node with another output than wanted, or None.

    Args:
        decoder: Decoder of the nodes.
        kind: Kind of the nodes, for the message.
        x: Nodes after `step`.
        tokens: The same nodes, followed by the nodes that they see.
        edges: Edges from nodes to tokens.
        seen: Edges from nodes to cells of the input, which has each symbol once.
        given: Inputs of the nodes.
        wanted: Expected outputs of the nodes.
    """
    q = torch.zeros(len(tokens), len(decoder.recall.query), dtype=torch.float64)
    q[: len(x)] = x @ decoder.recall.query.T
    keys, values = tokens @ decoder.recall.key.T, tokens @ decoder.recall.value.T
    record = decoder.recall(q, keys, values, edges)[: len(x)]
    read = decoder.looked(x, decoder.memory(decoder.machine.symbols), np.array(seen))
    x = x + record + read
    for layer in ("look", "compare", "match", "choose"):
        x = x if layer == "look" else getattr(decoder, layer)(x)
        if (no_bit := decoder.no_bit(x, layer)) is not None:
            return f"a {kind} node that is given {given[no_bit[0]]} {no_bit[1]}"
    wrong = (x[:, : decoder.stream.handed_on] != _rows(decoder, wanted)).any(dim=1).nonzero()
    if not len(wrong):
        return None
    node = int(wrong[0])
    coordinates = zip(
        decoder.stream.names, x[node, : decoder.stream.handed_on].tolist(), strict=False
    )
    handed_on = {name: value for name, value in coordinates if value}
    return (
        f"a {kind} node that is given {given[node]} hands on {handed_on}, expected {wanted[node]}"
    )


def _rows(decoder: Decoder, given: Sequence[Given]) -> Tensor:
    """Return the inputs of nodes as vectors [nodes, handed_on]."""
    rows = torch.zeros(len(given), decoder.stream.handed_on, dtype=torch.float64)
    at, index = np.arange(len(given)), decoder.stream.index
    rows[at, [index["state", each.state] for each in given]] = 1
    rows[at, [index["symbol", each.symbol] for each in given]] = 1
    for name in ("cell", "stayed"):
        values = [getattr(each, name) for each in given]
        rows[:, index[name]] = torch.tensor(values, dtype=torch.float64)
    return rows
