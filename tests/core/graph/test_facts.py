"""What pieces state about themselves, against their rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import longbird as lb
from longbird.core.graph import Graph, Reach
from longbird.core.graph.facts import false_facts

LENGTHS = [1, 65, 300, 1000, 3000]


@dataclass(frozen=True)
class Stated(Graph):
    """Causal, `width` back and the first `first` tokens; with facts that may be wrong."""

    width: int = 20
    first: int = 0
    behind: int = 20
    front: int = 0
    sinks: int = 0

    streams = True

    def edge(self, i, j, n):
        return (i >= j) & ((i - j <= self.width) | (j < self.first))

    def reach(self, n):
        return Reach(self.behind, self.front, self.sinks)


@dataclass(frozen=True)
class StatedSpans(Graph):
    """Keys up to 20 away, whose spans go `side` away; those of tiles of 64 on one side."""

    side: int
    above: int = 20

    def edge(self, i, j, n):
        return abs(i - j) <= 20

    def spans(self, first, last, n):
        small = last - first < 32
        return first - np.where(small, 20, self.side), last + np.where(small, 20, self.above)


@dataclass(frozen=True)
class StatedPeriod(Graph):
    """Blocks of 64 and a period."""

    stated: int
    guard: int = 0

    def __post_init__(self):
        self._set(period=self.stated)
        super().__post_init__()

    def edge(self, i, j, n):
        same = i // 64 == j // 64 + 1
        return same & (j >= 0) if self.guard else same


@dataclass(frozen=True)
class UsesLength(Graph):
    """Streams, so it says; but it looks at the length."""

    how: str

    streams = True

    def edge(self, i, j, n):
        seen = (i >= j) & (i - j < 9)
        return {
            "last": seen | (j == n - 1),
            "half": seen & (2 * j >= n - 2),
            "parity": seen & ((j + n) % 2 == 0),
            "far": seen & (n < 1_000_000),
            "not at all": seen,
        }[self.how]


@dataclass(frozen=True)
class StatedReachOfLength(Graph):
    """A reach that is right for short sequences alone, and a decoder asks for the longest."""

    streams = True

    def edge(self, i, j, n):
        return (i >= j) & (i - j < 40)

    def reach(self, n):
        return Reach(40 if n < 100_000 else 10, 0)


@dataclass(frozen=True)
class StatedTiles(Graph):
    """Causal, in so many tiles."""

    share: float

    def edge(self, i, j, n):
        return i >= j

    def tile_count(self, n, size):
        rows = -(-n // size)
        return self.share * rows * (rows + 1) / 2


@dataclass(frozen=True)
class Around(Graph):
    """Another graph, with the reach that it should have."""

    inside: Graph

    def edge(self, i, j, n):
        return self.inside.edge(i, j, n)


def facts(graph: Graph, n: int, heads: int = 1) -> list[str]:
    return [found.fact for found in false_facts(graph, n, heads)]


@pytest.mark.parametrize("n", [100, 300, 1000, 3000, 9000])
@pytest.mark.parametrize(
    ("graph", "fact"),
    [
        (Stated(behind=5), "reach"),
        (Stated(behind=19), "reach"),
        (Stated(first=4, sinks=3), "reach"),
        (Stated(first=1), "reach"),
        (StatedReachOfLength(), "reach"),
        (StatedSpans(3, 3), "spans"),
        (StatedSpans(20, 19), "spans"),
        (StatedSpans(19), "spans"),
        (StatedPeriod(1), "period"),
        (StatedPeriod(63), "period"),
        (StatedPeriod(64, guard=1), "period"),
        *((UsesLength(how), "streams") for how in ("last", "half", "parity", "far")),
    ],
    ids=repr,
)
def test_false_facts_are_found(graph, fact, n):
    (found,) = false_facts(graph, n)
    assert found.fact == fact
    assert repr(graph) in str(found)
    assert "query" in str(found)
    assert "key" in str(found)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(
    "graph",
    [
        Stated(),
        Stated(behind=99, front=7, sinks=3),
        Stated(first=4, sinks=4),
        StatedSpans(20),
        StatedSpans(10_000),
        StatedPeriod(64),
        StatedPeriod(128),
        UsesLength("not at all"),
        StatedTiles(1.0),
        StatedTiles(40.0),
    ],
    ids=repr,
)
def test_true_facts_pass(graph, n):
    assert facts(graph, n) == []


def test_a_tile_count_that_is_far_too_low():
    assert facts(StatedTiles(0.1), 1000) == ["tile_count"]
    assert facts(StatedTiles(0.9), 1000) == []


def test_the_witness_is_an_edge_beyond_the_fact():
    (found,) = false_facts(Stated(behind=5), 64)
    assert "reach(64) is Reach(behind=5, ahead=0, sinks=0), but query 6 sees key 0" in str(found)


def test_sinks_do_not_excuse_a_key_that_is_ahead():
    """A decoder has not read it yet, and intersections rely on it."""

    @dataclass(frozen=True)
    class SinksAhead(Graph):
        def edge(self, i, j, n):
            return (j < 4) | (i == j)

        def reach(self, n):
            return Reach(0, 0, 4)

    (found,) = false_facts(SinksAhead(), 50)
    assert "query 0 sees key 1" in found.reason


@pytest.mark.parametrize(
    "graph",
    [
        lb.Window(30) | Stated(behind=5),
        (lb.Window(3) | Stated(behind=5)) & lb.Causal(),
        lb.PerHead([lb.Full(), Stated(behind=5)]),
        lb.ByLength({10: lb.Full()}, otherwise=Stated(behind=5)),
        lb.RandomBlocks(1, block=16, avoid=Stated(behind=5)),
        Around(Stated(behind=5)) & lb.Causal(),
    ],
    ids=repr,
)
def test_pieces_inside_others(graph):
    found = false_facts(graph, 100, heads=2)
    assert [(each.piece, each.fact) for each in found] == [(Stated(behind=5), "reach")]


BUILT_IN = [
    lb.Full(),
    lb.Causal(),
    lb.Window(0),
    lb.Window(5),
    lb.Window(700),
    lb.Window(3, dilation=7),
    lb.Window(9, dilation=200),
    lb.BlockWindow(1, block=1),
    lb.BlockWindow(3, block=64),
    lb.BlockWindow(5, block=20),
    lb.GlobalTokens([]),
    lb.GlobalTokens([0]),
    lb.GlobalBlocks(1, 1, 16),
    lb.GlobalBlocks(2, 0, 10),
    lb.GlobalBlocks(0, 0, 10),
    lb.RandomBlocks(0),
    lb.RandomBlocks(3, block=7),
    lb.ErdosRenyi(0.01),
    lb.ErdosRenyi(1e-7),
    lb.WattsStrogatz(6, 0.3),
    lb.LegacyBigBird("google", full_up_to=1000),
    lb.Edges([(0, 0), (9, 2), (3, 50), (1999, 4)], clip=True),
    lb.Edges([(i, (i - 1) // 2) for i in range(1, 200)], clip=True),
    lb.bigbird(),
    lb.bigbird(block=16, window=5, random=2) & lb.Causal(),
    lb.longformer(64) | lb.GlobalTokens([0]),
    lb.longformer(64, dilation=3) & lb.Causal(),
]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("graph", BUILT_IN, ids=repr)
def test_what_built_in_pieces_state_is_true(graph, n):
    assert [str(found) for found in false_facts(graph, n, heads=2)] == []


@pytest.mark.parametrize("n", [300, 1000, 3000])
@pytest.mark.parametrize(
    "graph", [lb.GlobalTokens([3, 200, -1, -7]), lb.Edges([(0, 3), (250, 7), (2, 299)])], ids=repr
)
def test_pieces_with_positions(graph, n):
    assert [str(found) for found in false_facts(graph, n)] == []


def test_a_length_that_a_rule_refuses_is_left_out():
    @dataclass(frozen=True)
    class Table(Graph):
        streams = True

        def edge(self, i, j, n):
            return (np.arange(500) % 3 == 0)[abs(i - j)] & (i >= j)

    assert facts(Table(), 300) == []
