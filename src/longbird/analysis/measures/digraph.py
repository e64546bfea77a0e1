"""A digraph over n tokens in the form that measures need, made from a layout; never n x n.

There are three kinds of edges. A *full tile* is one entry for all pairs of two groups of
neighbouring tokens. The edges of partial tiles are listed one by one. A *hub*, a token that sees
all others and is seen by all, is only counted, because its edges are known.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from longbird.core.layout.layout import Layout
from longbird.core.layout.tiles import ranges, split, unpack
from longbird.core.machine import check_memory, many

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Memory for listing and sorting an edge, and for its matrix, transposed and undirected.
BYTES_PER_EDGE = 100
# Number of edges that are listed at a time.
CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Digraph:
    """A digraph whose tokens are ordered such that hubs come last.

    All members use *positions* in this order; `tokens` maps them to tokens. The m tokens that are
    not hubs are ordered by tiles.

    Attributes:
        tokens: Token at each position: int64 [n].
        starts: First position of each non-empty tile, and m: int64 [tiles + 1].
        full: Matrix with a 1 if every token of a tile sees every token of another: [tiles, tiles].
        part: Matrix with a 1 for each edge that is not in a full tile: [m, m].
        hub_loops: Whether each hub sees itself: bool [hubs].
        symmetric: Whether every edge is known to exist in both directions.
    """

    tokens: Ints
    starts: Ints
    full: csr_array
    part: csr_array
    hub_loops: Flags
    symmetric: bool = False

    @property
    def n(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    @property
    def hubs(self) -> int:
        """Number of tokens that see all others and are seen by all."""
        return len(self.hub_loops)

    @property
    def ordinary(self) -> int:
        """Number of tokens that are not hubs."""
        return int(self.starts[-1])

    @cached_property
    def lengths(self) -> Ints:
        """Number of tokens in each tile."""
        return np.diff(self.starts)

    @cached_property
    def tile(self) -> Ints:
        """Tile of each token that is not a hub."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @cached_property
    def places(self) -> Ints:
        """Position of each token."""
        places = np.empty(self.n, np.int64)
        places[self.tokens] = np.arange(self.n)
        return places

    @cached_property
    def loops(self) -> Flags:
        """Whether the token at each position sees itself: bool [n]."""
        inside = (self.full.diagonal() > 0)[self.tile] | (self.part.diagonal() > 0)
        return np.concatenate([inside, self.hub_loops])

    @cached_property
    def degrees(self) -> Ints:
        """Number of others that the token at each position sees: int64 [n]."""
        return np.rint(self.times(np.ones(self.n))).astype(np.int64) - self.loops

    @cached_property
    def seen_by(self) -> Ints:
        """Number of others that see the token at each position: int64 [n]."""
        if self.symmetric:
            return self.degrees
        found = np.full(self.n, self.n - 1 if self.hubs else 0)
        if self.ordinary:
            by_tiles = np.rint(self.full.T @ self.lengths.astype(np.float64)).astype(np.int64)
            listed = np.bincount(self.part.indices, minlength=self.ordinary)
            inside = by_tiles[self.tile] + listed - self.loops[: self.ordinary]
            found[: self.ordinary] = inside + self.hubs
        return found

    @property
    def edges(self) -> int:
        """Number of edges, including those of tokens to themselves."""
        return int(self.degrees.sum() + self.loops.sum())

    def times(self, values: Floats) -> Floats:
        """Return the product of the adjacency matrix and a vector [n]."""
        ordinary, hub = values[: self.ordinary], values[self.ordinary :]
        found = np.empty(self.n)
        if self.ordinary:
            of_tile = self.full @ np.add.reduceat(ordinary, self.starts[:-1])
            found[: self.ordinary] = of_tile[self.tile] + self.part @ ordinary + hub.sum()
        found[self.ordinary :] = values.sum() - np.where(self.hub_loops, 0.0, hub)
        return found

    def neighbours(self, position: int) -> Ints:
        """Return the positions that one position sees, ascending."""
        if position >= self.ordinary:
            every = np.arange(self.n)
            return every if self.loops[position] else np.delete(every, position)
        tiles = self.full.indices[slice(*self.full.indptr[self.tile[position] :][:2])]
        listed = self.part.indices[slice(*self.part.indptr[position:][:2])]
        found = [ranges(self.starts[tiles], self.lengths[tiles]), listed.astype(np.int64)]
        return np.append(np.sort(np.concatenate(found)), np.arange(self.ordinary, self.n))

    def listed(self, begin: int, end: int) -> tuple[Ints, Ints]:
        """List the edges (i, j) of tokens begin to end - 1 with any tokens that are not hubs."""
        tile = self.tile[begin:end]
        tiles = np.diff(self.full.indptr)[tile].astype(np.int64)
        seen = self.full.indices[ranges(self.full.indptr[tile].astype(np.int64), tiles)]
        from_tiles = np.repeat(np.repeat(np.arange(begin, end), tiles), self.lengths[seen])
        pointers = self.part.indptr[begin : end + 1]
        from_part = np.repeat(np.arange(begin, end), np.diff(pointers))
        to_part = self.part.indices[pointers[0] : pointers[-1]]
        i = np.concatenate([from_tiles, from_part])
        j = np.concatenate([ranges(self.starts[seen], self.lengths[seen]), to_part])
        return i, j.astype(np.int64)

    def has(self, i: Ints, j: Ints) -> Flags:
        """Return whether there are edges between pairs of positions."""
        found = (i >= self.ordinary) | (j >= self.ordinary)
        same = found & (i == j)
        found[same] = self.loops[i[same]]
        rest = np.flatnonzero((i < self.ordinary) & (j < self.ordinary))
        i, j = i[rest], j[rest]
        tiles = len(self.lengths)
        found[rest] = _among(self.tile[i] * tiles + self.tile[j], self._full_codes)
        found[rest] |= _among(i * self.ordinary + j, self._part_codes)
        return found

    @cached_property
    def _full_codes(self) -> Ints:
        return _codes(self.full)

    @cached_property
    def _part_codes(self) -> Ints:
        return _codes(self.part)

    @cached_property
    def arcs(self) -> tuple[csr_array, int]:
        """Sparse matrix for searches along edges between tokens without hubs, and arcs per hop.

        Its first m nodes are the tokens. Full tiles are not listed: a token has an arc to a node
        for its tile, which has arcs to nodes of the tiles it sees, which have arcs to the tokens.
        Since that takes three arcs, so does an edge of `part`, over two nodes of its key.
        """
        if not self.full.nnz:
            return self.part, 1
        m, tiles = self.ordinary, len(self.lengths)
        token = np.arange(m)
        seeing, seen, far, near = (at + m for at in (0, tiles, 2 * tiles, 2 * tiles + m))
        full, part = self.full.tocoo(), self.part.tocoo()
        ends = [
            (token, seeing + self.tile),
            (seeing + full.coords[0], seen + full.coords[1]),
            (seen + self.tile, token),
            (part.coords[0], far + part.coords[1]),
            (far + token, near + token),
            (near + token, token),
        ]
        i, j = (np.concatenate(side).astype(np.int32) for side in zip(*ends, strict=True))
        size = near + m
        return csr_array(coo_array((np.ones(len(i)), (i, j)), shape=(size, size))), 3

    @cached_property
    def parts(self) -> Ints:
        """Number of the strongly connected component of each position."""
        if self.hubs or not self.n:
            return np.zeros(self.n, np.int64)
        _, label = connected_components(self.arcs[0], directed=True, connection="strong")
        return np.unique(label[: self.n], return_inverse=True)[1].reshape(-1)

    @property
    def connected(self) -> bool:
        """Whether every token can reach every other; False without tokens."""
        return bool(self.n) and not self.parts.any()

    @cached_property
    def transposed(self) -> Digraph:
        """The digraph with reversed edges."""
        if self.symmetric:
            return self
        full, part = csr_array(self.full.T), csr_array(self.part.T)
        return Digraph(self.tokens, self.starts, full, part, self.hub_loops)

    @cached_property
    def undirected(self) -> Digraph:
        """The digraph with an edge in both directions if there is one in either.

        It keeps loops, which full tiles contain; counts of neighbours exclude them.
        """
        turned = self.transposed
        full, part = self.full.maximum(turned.full), self.part.maximum(turned.part)
        if full.nnz == self.full.nnz and part.nnz == self.part.nnz:
            return dataclasses.replace(self, symmetric=True)
        codes = _codes(csr_array(full)), _codes(csr_array(part))
        return _built(self.tokens, self.starts, *codes, self.hub_loops, symmetric=True)

    @cached_property
    def without_hubs(self) -> Digraph:
        """The digraph over the m tokens that are not hubs."""
        if not self.hubs:
            return self
        tokens = np.argsort(np.argsort(self.tokens[: self.ordinary]))
        none = np.zeros(0, bool)
        return Digraph(tokens, self.starts, self.full, self.part, none, self.symmetric)


def union_of(layout: Layout) -> Digraph:
    """Return the digraph with the edges of all heads."""
    check_edges(layout)
    different = len(layout.row_ptr)
    if different == 1:
        return head_of(layout, 0)
    found = zip(*(_entries(layout, head) for head in range(different)), strict=True)
    full, part = (_distinct(np.concatenate(codes)) for codes in found)
    return _of_layout(layout, full, part)


def head_of(layout: Layout, head: int) -> Digraph:
    """Return the digraph of one of the `len(layout.row_ptr)` heads that differ.

    It is not cached, because many heads take less memory if they are measured one by one. Callers
    check the memory with `check_edges`.
    """
    return _of_layout(layout, *_entries(layout, head))


def undirected_of(n: int, i: Ints, j: Ints) -> Digraph:
    """Return the undirected graph over n tokens with an edge for each pair (i, j)."""
    codes = _distinct(np.concatenate([i * n + j, j * n + i]))
    none, starts = np.zeros(0, np.int64), np.array([0, n])
    return _built(np.arange(n), starts, none, codes, np.zeros(0, bool), symmetric=True)


def _of_layout(layout: Layout, full: Ints, part: Ints) -> Digraph:
    tokens, starts, hubs = _order(layout)
    return _built(tokens, starts, full, part, np.ones(hubs, bool))


def _order(layout: Layout) -> tuple[Ints, Ints, int]:
    """Return tokens by tiles with global ones last, the starts of tiles, and the global count.

    Tiles may be empty.
    """
    tiling = layout.keys
    order = np.arange(tiling.tokens) if tiling.order is None else tiling.order.astype(np.int64)
    is_global = np.isin(order, layout.global_tokens)
    kept = np.append(0, np.cumsum(~is_global))
    tokens = np.concatenate([order[~is_global], order[is_global]])
    return tokens, kept[tiling.starts], len(layout.global_tokens)


def _entries(layout: Layout, head: int) -> tuple[Ints, Ints]:
    """Return the sorted codes of the full tiles of a head, and of the edges of partial tiles."""
    tiling, pointers = layout.keys, layout.row_ptr[head]
    entries = slice(int(pointers[0]), int(pointers[-1]))
    rows = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))
    columns, ids = layout.columns[entries].astype(np.int64), layout.mask_ids[entries]
    full = _distinct(rows[ids < 0] * tiling.count + columns[ids < 0])

    # Maps positions of the layout to those of the tokens that are not global.
    n = tiling.tokens
    order = np.arange(n) if tiling.order is None else tiling.order
    is_global = np.isin(order, layout.global_tokens)
    place, m = np.cumsum(~is_global) - 1, n - int(is_global.sum())

    # The edges of each mask are listed once, then those of each tile that has it.
    rows, columns, ids = rows[ids >= 0], columns[ids >= 0], ids[ids >= 0]
    mask, key, query = np.nonzero(unpack(layout.masks, layout.size))
    key, query = key.astype(np.int16), query.astype(np.int16)
    count = np.bincount(mask, minlength=len(layout.masks))
    del mask
    start, ends = np.cumsum(count) - count, np.cumsum(count[ids])
    found: list[Ints] = []
    begin = 0
    while begin < len(ids):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        row, column, id_ = rows[begin:end], columns[begin:end], ids[begin:end]
        at = ranges(start[id_], count[id_])
        entry = np.repeat(np.arange(len(id_)), count[id_])
        inside = query[at] < tiling.lengths[row][entry]
        inside &= key[at] < tiling.lengths[column][entry]
        at, entry = at[inside], entry[inside]
        i = tiling.starts[row].astype(np.int64)[entry] + query[at]
        j = tiling.starts[column].astype(np.int64)[entry] + key[at]
        kept = ~(is_global[i] | is_global[j])
        found.append(place[i[kept]] * m + place[j[kept]])
        begin = end
    return full, _distinct(np.concatenate([np.zeros(0, np.int64), *found]))


def check_edges(layout: Layout) -> None:
    """Raise a ValueError if there is not enough memory to list the edges of all heads."""
    inside = np.bitwise_count(layout.masks).sum(axis=(1, 2), dtype=np.int64)
    edges = int(inside[layout.mask_ids[layout.mask_ids >= 0]].sum())
    check_memory(
        edges * BYTES_PER_EDGE,
        f"the graph has {many(edges)} edges in tiles that are filled in part; measuring them",
        "choose fewer tokens",
    )


def _built(
    tokens: Ints, starts: Ints, full: Ints, part: Ints, hub_loops: Flags, symmetric: bool = False
) -> Digraph:
    """Return the digraph of sorted codes, after finding further hubs."""
    graph = _made(tokens, starts, full, part, hub_loops, symmetric)
    others = graph.n - 1
    m = graph.ordinary
    hub = (graph.degrees[:m] == others) & (graph.seen_by[:m] == others)
    if not hub.any():
        return graph
    loops = np.concatenate([graph.loops[:m][hub], hub_loops])
    tokens = np.concatenate([tokens[:m][~hub], tokens[:m][hub], tokens[m:]])
    kept = np.append(0, np.cumsum(~hub))
    i, j = split(graph._part_codes, max(m, 1))
    stays = ~(hub[i] | hub[j])
    part = kept[i[stays]] * kept[-1] + kept[j[stays]]
    return _made(tokens, kept[graph.starts], graph._full_codes, part, loops, symmetric)


def _made(
    tokens: Ints, starts: Ints, full: Ints, part: Ints, hub_loops: Flags, symmetric: bool
) -> Digraph:
    """Return the digraph without empty tiles and duplicate edges, after finding full tiles."""
    m, tiles = int(starts[-1]), len(starts) - 1
    lengths = np.diff(starts)
    if not lengths.all():
        number = np.append(0, np.cumsum(lengths > 0))
        row, column = split(full, max(tiles, 1))
        stays = (lengths[row] > 0) & (lengths[column] > 0)
        full = number[row[stays]] * number[-1] + number[column[stays]]
        starts = np.append(starts[:-1][lengths > 0], m)
        tiles, lengths = len(starts) - 1, lengths[lengths > 0]
    tile = np.repeat(np.arange(tiles), lengths)
    listed = _matrix(part, m)
    # Number of listed edges of each tile.
    row, column = np.repeat(tile, np.diff(listed.indptr)), tile[listed.indices]
    count = csr_array(coo_array((listed.data, (row, column)), shape=(tiles, tiles)))
    code, count = _codes(count), count.data
    del row, column
    whole = code[count == lengths[code // max(tiles, 1)] * lengths[code % max(tiles, 1)]]
    full = _distinct(np.concatenate([full, whole]))
    if _among(code, full).any():
        i, j = split(part, max(m, 1))
        part = part[~_among(tile[i] * tiles + tile[j], full)]
        listed = _matrix(part, m)
    return Digraph(tokens, starts, _matrix(full, tiles), listed, hub_loops, symmetric)


def _matrix(codes: Ints, size: int) -> csr_array:
    """Return the matrix with a 1 for each of the sorted codes `row * size + column`."""
    pointers = np.searchsorted(codes, np.arange(size + 1) * size)
    columns = (codes % max(size, 1)).astype(np.int32)
    return csr_array((np.ones(len(codes)), columns, pointers.astype(np.int32)), shape=(size, size))


def _distinct(codes: Ints) -> Ints:
    """Return the codes sorted and each once, much faster than NumPy's unique."""
    codes.sort()
    first = np.ones(len(codes), bool)
    np.not_equal(codes[1:], codes[:-1], out=first[1:])
    return codes if first.all() else codes[first]


def _codes(matrix: csr_array) -> Ints:
    """Return the sorted codes `row * size + column` of the entries."""
    matrix.sort_indices()
    size = len(matrix.indptr) - 1
    return np.repeat(np.arange(size), np.diff(matrix.indptr)) * size + matrix.indices


def _among(wanted: Ints, codes: Ints) -> Any:
    """Return which of the wanted codes are among sorted ones."""
    if not len(codes):
        return np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return codes[at] == wanted
