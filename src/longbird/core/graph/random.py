"""Random patterns, drawn by a generator that is a pure function of the seed and the position.

Nothing here reads or writes random state: a draw is a hash of its keys. A graph is therefore the
same on every machine, in every process and with every version of NumPy, and any row can be drawn
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longbird.core.graph.arguments import MOST_SEED, integer, probability, tile_for
from longbird.core.graph.base import Graph
from longbird.core.graph.edges import EdgeList
from longbird.core.graph.expression import as_graph
from longbird.core.graph.reach import Reach
from longbird.errors import InvalidTypeError, InvalidValueError

Codes = npt.NDArray[np.int64]


def draw(*keys: Any) -> npt.NDArray[np.uint64]:
    """Return 64 random bits for each combination of integer keys, which broadcast.

    Each key is absorbed by the finalizer of SplitMix64 [1].

    References:
        [1] G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
            OOPSLA 2014.

    Examples:
        >>> draw(0, 1, range(3))
        array([4964578127960768432, 5067554077270220563, 6768782832058643234],
              dtype=uint64)
    """
    state = np.zeros(1, np.uint64)
    for key in keys:
        state = (state ^ np.asarray(key).astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state


def below(bound: Any, *keys: Any) -> npt.NDArray[np.int64]:
    """Return a random integer from 0 to `bound - 1` for each combination of the keys."""
    bits = draw(*keys) >> np.uint64(32)
    return (bits * np.asarray(bound).astype(np.uint64) >> np.uint64(32)).astype(np.int64)


def uniform(*keys: Any) -> npt.NDArray[np.float64]:
    """Return a random number in [0, 1) for each combination of the keys."""
    return (draw(*keys) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True)
class RandomBlocks(Graph):
    """Every block of queries attends to `count` random blocks of keys, drawn for each head.

    The blocks are distinct and uniform over the whole sequence. Each draw is keyed by (seed,
    head, query block). Drawing takes O(heads * blocks * count).

    Args:
        count: Number of key blocks for each query block; fewer if fewer are left.
        block: Number of tokens in a block; the last block may have fewer.
        seed: Seed, an integer of at least 0.
        avoid: Graph whose blocks are not drawn: the pairs of blocks that it covers completely.
            BigBird does not draw what its window and global blocks cover.

    Examples:
        >>> RandomBlocks(count=1, block=2).mask(6)[0].astype(int)
        array([[0, 0, 1, 1, 0, 0],
               [0, 0, 1, 1, 0, 0],
               [1, 1, 0, 0, 0, 0],
               [1, 1, 0, 0, 0, 0],
               [0, 0, 0, 0, 1, 1],
               [0, 0, 0, 0, 1, 1]])

    See Also:
        `longbird.bigbird`: the pattern of the paper, with `avoid` set.
    """

    count: int = 3
    block: int = 64
    seed: int = 0
    avoid: Graph | None = None

    kind = "random"
    advice = "leave it out (of bigbird: random=0, and global_last=0)"

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            count=integer(self.count, "RandomBlocks count"),
            block=integer(self.block, "RandomBlocks block", least=1),
            seed=integer(self.seed, "RandomBlocks seed", most=MOST_SEED),
        )
        if self.avoid is not None:
            if not isinstance(self.avoid, (Graph, str)):
                raise InvalidTypeError(
                    f"RandomBlocks avoid must be a graph or None, received {self.avoid!r} "
                    f"({type(self.avoid).__name__})"
                )
            self._set(avoid=as_graph(self.avoid))
        drawn = self.count > 0
        self._set(per_head=drawn, streams=not drawn, tile_size=tile_for(self.block))
        super().__post_init__()

    def reach(self, n: int) -> Reach:
        """Return no limits, or an empty reach if nothing is drawn, as in `bigbird(random=0)`."""
        return Reach() if self.count else Reach(0, 0)

    def tile_count(self, n: int, size: int) -> float:
        """Return the tiles of the drawn blocks in all rows."""
        rows = -(-n // size)
        across = 1 if self.block <= size else self.block / size
        return rows * min(rows, self.count * across * max(1, size / self.block))

    def sees(self, i: Any, j: Any, head: Any) -> Any:
        """Return False: a decoder only accepts this piece if nothing is drawn."""
        return (i < j) & (i > j)

    def drawn(self, blocks: int, heads: int, rows: range, covered: Codes) -> Codes:
        """Draw the key blocks of the query blocks `rows`, out of `blocks` blocks.

        Args:
            blocks: Number of blocks in the sequence.
            heads: Number of heads.
            rows: Query blocks to draw for.
            covered: Blocks not to draw, as sorted codes `(head * len(rows) + row) * blocks +
                column`, where row counts from the beginning of `rows`.

        Returns:
            Drawn blocks, as sorted codes of the same form.
        """
        lines = heads * len(rows)
        covered_line = covered // blocks
        covered_start = np.searchsorted(covered_line, np.arange(lines + 1))
        free = blocks - np.diff(covered_start)

        # Floyd's algorithm: `count` distinct ranks among the free blocks of each line. A line
        # with fewer free blocks skips the first steps, and so draws all of them.
        keys = (np.arange(heads)[:, None], np.asarray(rows)[None, :])
        stream = draw(self.seed, *keys).reshape(lines)
        count = min(self.count, blocks)
        ranks = np.full((lines, count), -1)
        for step in range(count):
            most = free - count + step
            rank = below(np.maximum(most + 1, 1), stream, step)
            taken = (ranks[:, :step] == rank[:, None]).any(axis=1)
            ranks[:, step] = np.where(taken, most, rank)
            ranks[most < 0, step] = -1
        ranks.sort(axis=1)
        line, slot = np.nonzero(ranks >= 0)
        rank = ranks[line, slot]

        # The free block of a rank is the rank plus the number of covered blocks before it.
        # `column - k` free blocks precede the k-th covered block of a line.
        in_front = covered % blocks - (np.arange(len(covered)) - covered_start[covered_line])
        before = np.searchsorted(
            covered_line * (blocks + 1) + in_front, line * (blocks + 1) + rank, side="right"
        )
        return line * blocks + rank + (before - covered_start[line])

    def edge_counts(self, n: int, heads: int) -> npt.NDArray[Any]:
        """Return which keys are in a block that was drawn for the block of the query."""
        blocks = -(-n // self.block)
        block_of_token = np.arange(n) // self.block
        covered = np.zeros((heads, blocks, blocks), bool)
        if self.avoid is not None:
            avoided = np.broadcast_to(self.avoid.edge_counts(n, heads) > 0, (heads, n, n))
            starts = np.arange(0, n, self.block)
            covered = np.logical_and.reduceat(avoided, starts, axis=1)
            covered = np.logical_and.reduceat(covered, starts, axis=2)
        drawn = np.zeros((heads, blocks, blocks), bool)
        drawn.flat[self.drawn(blocks, heads, range(blocks), np.flatnonzero(covered))] = True
        return drawn[:, block_of_token[:, None], block_of_token[None, :]]


@dataclass(frozen=True)
class ErdosRenyi(EdgeList):
    """Every query attends to every key with probability `p`, independently, itself included.

    All heads have the same edges. Runs in O(edges) expected time by skipping over the
    geometrically distributed gaps between edges [2].

    Args:
        p: Probability of each edge.
        seed: Seed, an integer of at least 0.

    Examples:
        >>> int(ErdosRenyi(0.25, seed=1).mask(100).sum())
        2459

    References:
        - [1] P. Erdős, A. Rényi, "On random graphs I", Publ. Math. Debrecen 6, 1959.
        - [2] V. Batagelj, U. Brandes, "Efficient generation of large random networks",
          Phys. Rev. E 71, 036113, 2005.
    """

    p: float
    seed: int = 0

    kind = "random"

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            p=probability(self.p, "ErdosRenyi p"),
            seed=integer(self.seed, "ErdosRenyi seed", most=MOST_SEED),
        )
        super().__post_init__()

    def tile_count(self, n: int, size: int) -> float:
        """Return the expected number of edges, limited to the number of all tiles."""
        return min(self.p * n * n, float(-(-n // size)) ** 2)

    def edges(self, n: int) -> npt.NDArray[np.int64]:
        """Return the edges over `n` tokens, sorted: int64 [edges, 2]."""
        end = n * n
        if self.p == 1.0:
            return np.stack(np.divmod(np.arange(end), max(n, 1)), axis=1)
        codes, drawn, last = [np.zeros(0, np.int64)], 0, -1
        while self.p > 0.0 and last < end:
            chunk = int((end - last) * self.p + 4 * (end * self.p) ** 0.5) + 16
            chance = uniform(self.seed, np.arange(drawn, drawn + chunk))
            with np.errstate(over="ignore"):
                gaps = np.floor(np.log1p(-chance) / np.log1p(-self.p))
            found = last + np.cumsum(np.minimum(gaps, end).astype(np.int64) + 1)
            drawn += chunk
            beyond = np.flatnonzero((found >= end) | (found < 0))
            found, last = (found[: beyond[0]], end) if len(beyond) else (found, int(found[-1]))
            codes.append(found)
        return np.stack(np.divmod(np.concatenate(codes), max(n, 1)), axis=1)


@dataclass(frozen=True)
class WattsStrogatz(EdgeList):
    """A small world: every query attends to itself and to `k` ring neighbours, some rewired.

    Query `i` starts with the keys up to `k / 2` before and after it on a ring. Each of these
    edges is then rewired with probability `beta` to a uniform key that the query does not have
    yet. Each query has exactly `k + 1` keys, or all if there are no more tokens. All heads have
    the same edges. Runs in O(n k + rewired edges * k).

    Args:
        k: Number of ring neighbours of each query, an even number.
        beta: Probability of rewiring an edge.
        seed: Seed, an integer of at least 0.

    Examples:
        >>> WattsStrogatz(k=2, beta=0.0).mask(5)[0].astype(int)
        array([[1, 1, 0, 0, 1],
               [1, 1, 1, 0, 0],
               [0, 1, 1, 1, 0],
               [0, 0, 1, 1, 1],
               [1, 0, 0, 1, 1]])

    References:
        [1] D. J. Watts, S. H. Strogatz, "Collective dynamics of small-world networks",
            Nature 393, 1998.
    """

    k: int
    beta: float
    seed: int = 0

    kind = "random"

    def __post_init__(self) -> None:
        """Check the arguments."""
        self._set(
            k=integer(self.k, "WattsStrogatz k"),
            beta=probability(self.beta, "WattsStrogatz beta"),
            seed=integer(self.seed, "WattsStrogatz seed", most=MOST_SEED),
        )
        if self.k % 2:
            raise InvalidValueError(
                f"WattsStrogatz k must be even (half on each side), received {self.k}"
            )
        super().__post_init__()

    def tile_count(self, n: int, size: int) -> float:
        """Return at most one tile for each rewired edge, besides those of the ring."""
        rows = -(-n // size)
        rewired = self.beta * size * self.k
        return rows * min(rows, 2 + self.k / size + rewired)

    def edges(self, n: int) -> npt.NDArray[np.int64]:
        """Return the edges over `n` tokens, sorted: int64 [edges, 2]."""
        if n <= self.k + 1:
            return np.stack(np.divmod(np.arange(n * n), max(n, 1)), axis=1)
        queries = np.arange(n)
        ring = np.arange(-(self.k // 2), self.k // 2 + 1)
        keys = (queries[:, None] + ring) % n
        for slot in np.flatnonzero(ring):
            rewired = np.flatnonzero(uniform(self.seed, queries, slot, 0) < self.beta)
            rank = below(n - self.k - 1, self.seed, rewired, slot, 1)
            keys[rewired, slot] = _missing_key(keys[rewired], rank)
        keys.sort(axis=1)
        return np.stack([np.repeat(queries, self.k + 1), keys.reshape(-1)], axis=1)


def _missing_key(keys: npt.NDArray[np.int64], rank: npt.NDArray[np.int64]) -> Codes:
    """Return for each row the key of the given rank among those that are not in `keys`."""
    # The least solution of key = rank + (number of keys of the row up to key), found from below.
    found = rank
    while True:
        higher = rank + (keys <= found[:, None]).sum(axis=1)
        if np.array_equal(higher, found):
            return found
        found = higher
