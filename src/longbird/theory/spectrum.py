"""Eigenvalues of the normalised adjacency matrix, which say how quickly a random walk forgets.

N = D^-1/2 A D^-1/2 of the undirected simple graph has eigenvalues from -1 to 1, the same as the
random walk D^-1 A. The largest is 1; how far the second is from it is the spectral gap. It is 0
where the graph is not connected; a token without a neighbour is a part of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded, eigh_tridiagonal, eigvalsh
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from longbird.graph.random import uniform
from longbird.layout.tiles import ranges
from longbird.theory.digraph import Digraph, Floats, Ints
from longbird.theory.hops import components

# Matrices that LAPACK decomposes as a whole: a second or less.
MOST_DENSE = 1024
# Bands that are factorised: n * band^2 operations, and n * band numbers.
MOST_BAND_WORK = 2e10
MOST_BAND_NUMBERS = 2**26
MOST_LISTED = 2**24
# A residual; the error of an eigenvalue is about its square over the distance to the next.
TOLERANCE = 1e-6
LANCZOS_VECTORS = 48
MOST_RESTARTS = 16
PLAIN_STEPS = 128
_eigsh: Any = eigsh  # its stubs ask for an integer tolerance


@dataclass(frozen=True)
class Eigenvalue:
    """An eigenvalue, and between what it lies if Lanczos stopped before it had converged."""

    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Spectrum:
    """The ends of the spectrum below the largest eigenvalue, which is 1."""

    second: Eigenvalue
    smallest: Eigenvalue


def spectrum(graph: Digraph) -> Spectrum | None:
    """Second largest and smallest eigenvalue of an undirected graph; None of fewer than 2 tokens.

    See `Digraph.undirected`.
    """
    if graph.n < 2:
        return None
    connected = components(graph) == 1
    if graph.n <= MOST_DENSE:
        values = eigvalsh(_dense(graph))
        second, smallest = Eigenvalue(float(values[-2])), Eigenvalue(float(values[0]))
    elif not graph.part.nnz and len(graph.lengths) < MOST_DENSE + 1:
        values = _of_blocks(graph)
        second, smallest = Eigenvalue(float(values[-2])), Eigenvalue(float(values[0]))
    else:
        # A smallest eigenvalue of nearly -1 is what matters, and that Lanczos finds quickly.
        smallest = _lanczos(graph, "SA")
        second = Eigenvalue(1.0)
        if connected:
            second = _banded(graph) or _lanczos(graph, "LA")
    return Spectrum(second if connected else Eigenvalue(1.0), smallest)


def _dense(graph: Digraph) -> Floats:
    """The normalised adjacency matrix itself; of small graphs alone."""
    n = graph.n
    matrix = np.zeros((n, n))
    for position in range(n):
        matrix[position, graph.neighbours(position)] = 1.0
    np.fill_diagonal(matrix, 0.0)
    scale = _scale(graph)
    return matrix * scale[:, None] * scale


def _scale(graph: Digraph) -> Floats:
    """One over the root of each degree; 0 for tokens without a neighbour."""
    degree = graph.degrees.astype(np.float64)
    return np.divide(1.0, np.sqrt(degree), out=np.zeros(graph.n), where=degree > 0)


def _of_blocks(graph: Digraph) -> Floats:
    """All eigenvalues, each at least as often as it takes, where every tile is full.

    Vectors that are constant on each tile, and on the hubs, are mapped to such vectors: a small
    matrix. Those that sum to 0 on a tile only meet the loops, which the simple graph has not.
    """
    loop = (graph.full.diagonal() > 0).astype(np.float64)
    length = graph.lengths.astype(np.float64)
    matrix = graph.full.toarray()
    if graph.hubs:
        matrix = np.pad(matrix, (0, 1), constant_values=1.0)
        loop, length = np.append(loop, 1.0), np.append(length, graph.hubs)
    degree = matrix @ length - loop
    root = np.sqrt(length / np.where(degree > 0, degree, np.inf))
    matrix = matrix * root[:, None] * root
    inside = -loop / np.where(degree > 0, degree, np.inf)
    matrix += np.diag(inside)
    return np.sort(np.concatenate([eigvalsh(matrix), inside[length > 1]]))


def _operator(graph: Digraph) -> tuple[LinearOperator, Floats]:
    """The normalised adjacency matrix without its first eigenvector, and that vector."""
    scale, loops = _scale(graph), graph.loops
    first = np.sqrt(graph.degrees / max(int(graph.degrees.sum()), 1))

    def product(values: Floats) -> Floats:
        scaled = values.reshape(-1) * scale
        found = scale * (graph.times(scaled) - loops * scaled)
        return found - first * (first @ found)

    size = graph.n, graph.n
    return LinearOperator(size, matvec=product, dtype=np.float64), first  # type: ignore[call-arg]


def _start(graph: Digraph, first: Floats) -> Floats:
    """A slow wave along the tokens, which is nearly what a window has, and some noise."""
    wave = np.cos(np.pi * (graph.tokens + 0.5) / graph.n)
    start = wave + 0.1 * (uniform(31, np.arange(graph.n)) - 0.5)
    return start - first * (first @ start)


def _lanczos(graph: Digraph, end: str) -> Eigenvalue:
    operator, first = _operator(graph)
    start = _start(graph, first)
    try:
        (value,), _ = _eigsh(
            operator, k=1, which=end, v0=start, ncv=LANCZOS_VECTORS, maxiter=MOST_RESTARTS,
            tol=TOLERANCE,
        )  # fmt: skip
        return Eigenvalue(float(value))
    except (ArpackNoConvergence, ArpackError):
        return _bounded(operator, start, end)


def _bounded(operator: LinearOperator, start: Floats, end: str) -> Eigenvalue:
    """What plain Lanczos knows: the extreme eigenvalue is beyond that of the space it searched.

    How far beyond, the residual tells, if the start has anything of the right vector at all.
    """
    sign = 1.0 if end == "LA" else -1.0
    vectors = [start / np.linalg.norm(start)]
    diagonal: list[float] = []
    beside: list[float] = []
    for _ in range(PLAIN_STEPS):
        found = np.asarray(operator @ vectors[-1])
        diagonal.append(float(found @ vectors[-1]))
        basis = np.array(vectors)
        for _ in range(2):  # once is not enough in floating point
            found = found - basis.T @ (basis @ found)
        beside.append(float(np.linalg.norm(found)))
        vectors.append(found / beside[-1])
    values, inside = eigh_tridiagonal(diagonal, beside[:-1])
    place = -1 if end == "LA" else 0
    value = float(values[place])
    residual = beside[-1] * abs(float(inside[-1, place]))
    edges = sorted((value, sign * min(1.0, sign * value + residual)))
    return Eigenvalue(value, (edges[0], edges[1]))


def _banded(graph: Digraph) -> Eigenvalue | None:
    """By inverse iteration, where all edges are between tokens that are near in some order.

    Windows mix slowly: their gap is a millionth, and Lanczos would take forever. A matrix that has
    a narrow band is factorised instead, and its smallest eigenvalues become the largest.
    """
    edges = int(graph.degrees.sum())
    if graph.hubs or edges > MOST_LISTED * 4:
        return None
    row, column = _listed(graph)
    band = _band(graph, row, column)
    if band is None:
        return None
    place, width = band
    n, scale = graph.n, _scale(graph)
    i, j = place[row], place[column]
    below = i >= j
    # Normalised Laplacian, moved by less than its smallest eigenvalue so that it has an inverse.
    shift = 0.01 / n**2
    lower = np.zeros((width + 1, n))
    lower[(i - j)[below], j[below]] = -(scale[row] * scale[column])[below]
    lower[0] = 1.0 + shift
    factor = cholesky_banded(lower, overwrite_ab=True, lower=True, check_finite=False)
    first = np.zeros(n)
    first[place] = np.sqrt(graph.degrees / edges)

    def inverse(values: Floats) -> Floats:
        values = values.reshape(-1)
        values = values - first * (first @ values)
        found = cho_solve_banded((factor, True), values, check_finite=False)
        return found - first * (first @ found)

    start = np.zeros(n)
    start[place] = _start(graph, np.sqrt(graph.degrees / edges))
    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)  # type: ignore[call-arg]
    try:
        (value,), _ = _eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE)
    except (ArpackNoConvergence, ArpackError):
        return None
    return Eigenvalue(float(1.0 + shift - 1.0 / value))


def _listed(graph: Digraph) -> tuple[Ints, Ints]:
    """All edges of a graph without hubs, one by one, without loops."""
    degree = np.diff(graph.full.indptr)[graph.tile]
    start = graph.full.indptr[:-1][graph.tile].astype(np.int64)
    tile = graph.full.indices[ranges(start, degree)]
    row = np.repeat(np.repeat(np.arange(graph.n), degree), graph.lengths[tile])
    column = ranges(graph.starts[tile], graph.lengths[tile])
    part = graph.part.tocoo()
    row = np.concatenate([row, part.coords[0]])
    column = np.concatenate([column, part.coords[1]])
    row, column = row.astype(np.int64), column.astype(np.int64)
    other = row != column
    return row[other], column[other]


def _band(graph: Digraph, row: Ints, column: Ints) -> tuple[Ints, int] | None:
    """A place for each position so that edges are short, and the longest; None if too long."""
    n = graph.n
    here = np.arange(n)
    width = int(np.abs(row - column).max(initial=0))
    if not _fits(n, width):
        matrix = csr_array(coo_array((np.ones(len(row)), (row, column)), shape=(n, n)))
        order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
        here = np.empty(n, np.int64)
        here[order] = np.arange(n)
        width = int(np.abs(here[row] - here[column]).max(initial=0))
    return (here, width) if _fits(n, width) else None


def _fits(n: int, width: int) -> bool:
    return n * width**2 <= MOST_BAND_WORK and n * width <= MOST_BAND_NUMBERS
