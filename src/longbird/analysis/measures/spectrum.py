"""Eigenvalues of the normalised adjacency matrix, which determine how fast random walks mix.

N = D^-1/2 A D^-1/2 of the undirected simple graph has eigenvalues from -1 to 1, the same as the
random walk D^-1 A. The largest is 1 if there are edges. Its distance from the second largest is
the spectral gap, which is 0 if edges are in more than one component. A token without a neighbour
has a row of zeros, which adds an eigenvalue of 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded, eigh_tridiagonal, eigvalsh
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from longbird.analysis.measures.digraph import Digraph, Floats, Ints
from longbird.analysis.measures.hops import spans
from longbird.analysis.measures.paths import hops_from
from longbird.core.graph.random import uniform

# Maximum size of matrices that LAPACK decomposes, in a second or less.
MOST_DENSE = 1024
# Maximum cost of factorised bands: n * band^2 operations, and n * band numbers.
MOST_BAND_WORK = 2e10
MOST_BAND_NUMBERS = 2**26
# Maximum number of edges of graphs that are reordered to find a narrow band.
MOST_ORDERED = 2**23
CHUNK = 4096
# Residual; the error of an eigenvalue is about its square over the distance to the next.
TOLERANCE = 1e-6
LANCZOS_VECTORS = 48
MOST_RESTARTS = 16
# Below this, whether the smallest eigenvalue is -1 is decided by a test for bipartite graphs.
ALMOST_BIPARTITE = -0.999
# Number of products of Lanczos without restarts; convergence is checked after every eighth.
FEWEST_STEPS = 32
MOST_PLAIN_STEPS = 128
# Maximum number of steps along edges in all products of Lanczos with restarts.
MOST_STEPS = 2**31
# The stubs of SciPy require an integer tolerance, and do not know the arguments of operators.
_eigsh: Any = eigsh
_operator_of: Any = LinearOperator


@dataclass(frozen=True)
class Eigenvalue:
    """An eigenvalue, with an interval if Lanczos stopped before it converged."""

    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Spectrum:
    """The second largest and the smallest eigenvalue."""

    second: Eigenvalue
    smallest: Eigenvalue


def spectrum(graph: Digraph, steps: int | None = None) -> Spectrum | None:
    """Return the spectrum of an undirected graph, or None for fewer than two tokens.

    Args:
        graph: Graph, as returned by `Digraph.undirected`.
        steps: Maximum work of Lanczos; by default `MOST_STEPS`.
    """
    if graph.n < 2:
        return None
    steps = MOST_STEPS if steps is None else steps
    joined = graph.degrees > 0
    parts = len(np.unique(graph.parts[joined]))  # without isolated tokens
    if graph.n <= MOST_DENSE:
        values = eigvalsh(_dense(graph))
        second, smallest = Eigenvalue(float(values[-2])), Eigenvalue(float(values[0]))
    elif not graph.part.nnz and len(graph.lengths) <= MOST_DENSE:
        values = _of_blocks(graph)
        second, smallest = Eigenvalue(float(values[-2])), Eigenvalue(float(values[0]))
    elif not parts:
        second = smallest = Eigenvalue(0.0)
    else:
        # The smallest eigenvalue matters if it is nearly -1, which Lanczos finds quickly.
        operator, first = _operator(graph)
        start = _start(graph, first)
        products = steps // (graph.part.nnz + 16 * graph.n)
        known = Eigenvalue(1.0) if parts > 1 else _banded(graph)
        largest, smallest = _plain(operator, start, products, smallest_alone=known is not None)
        if smallest.value < ALMOST_BIPARTITE and _bipartite(graph):
            smallest = Eigenvalue(-1.0)
        if largest.interval is not None and known is None and products > MOST_PLAIN_STEPS:
            known = _restarted(operator, start, products)
        second = known or largest
    return Spectrum(second if parts <= 1 else Eigenvalue(1.0), smallest)


def _bipartite(graph: Digraph) -> bool:
    """Return whether a graph is connected and bipartite."""
    if not graph.connected:
        return False
    if graph.hubs:  # any edge besides those of one hub closes a triangle
        return graph.hubs == 1 and int(graph.degrees.sum()) == 2 * (graph.n - 1)
    half = (hops_from(graph, 0) % 2).astype(np.float64)
    across = np.rint(graph.times(half) - graph.loops * half).astype(np.int64)
    return np.array_equal(across, np.where(half > 0, 0, graph.degrees))


def _dense(graph: Digraph) -> Floats:
    """Return the normalised adjacency matrix of a small graph."""
    n = graph.n
    matrix = np.zeros((n, n))
    for position in range(n):
        matrix[position, graph.neighbours(position)] = 1.0
    np.fill_diagonal(matrix, 0.0)
    scale = _scale(graph)
    return matrix * scale[:, None] * scale


def _scale(graph: Digraph) -> Floats:
    """Return one over the root of each degree; 0 for tokens without a neighbour."""
    degree = graph.degrees.astype(np.float64)
    return np.divide(1.0, np.sqrt(degree), out=np.zeros(graph.n), where=degree > 0)


def _of_blocks(graph: Digraph) -> Floats:
    """Return all eigenvalues, with sufficient multiplicity, of a graph of full tiles.

    Vectors that are constant on each tile, and on the hubs, are mapped to such vectors by a small
    matrix. Vectors that sum to 0 on a tile only meet the loops, which the simple graph lacks.
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
    """Return the normalised adjacency matrix without its first eigenvector, and that vector."""
    scale, loops = _scale(graph), graph.loops
    first = np.sqrt(graph.degrees / max(int(graph.degrees.sum()), 1))

    def product(values: Floats) -> Floats:
        scaled = values.reshape(-1) * scale
        found = scale * (graph.times(scaled) - loops * scaled)
        return found - first * (first @ found)

    size = graph.n, graph.n
    return _operator_of(size, matvec=product, dtype=np.float64), first


def _start(graph: Digraph, first: Floats) -> Floats:
    """Return a slow wave along the tokens, as windows have, with some noise."""
    wave = np.cos(np.pi * (graph.tokens + 0.5) / graph.n)
    start = wave + 0.1 * (uniform(31, np.arange(graph.n)) - 0.5)
    return start - first * (first @ start)


def _restarted(operator: LinearOperator, start: Floats, products: int) -> Eigenvalue | None:
    """Return the largest eigenvalue by Lanczos with restarts; None if it did not converge."""
    restarts = int(np.clip(2 * products // LANCZOS_VECTORS, 1, MOST_RESTARTS))
    try:
        (value,), _ = _eigsh(
            operator, k=1, which="LA", v0=start, ncv=LANCZOS_VECTORS, tol=TOLERANCE,
            maxiter=restarts,
        )  # fmt: skip
        return Eigenvalue(float(value))
    except (ArpackNoConvergence, ArpackError):
        return None


def _plain(
    operator: LinearOperator, start: Floats, products: int, *, smallest_alone: bool
) -> tuple[Eigenvalue, Eigenvalue]:
    """Return bounds of the largest and the smallest eigenvalue by Lanczos without restarts.

    Each eigenvalue lies beyond its estimate, usually by less than the residual, which bounds the
    distance to some eigenvalue; the intervals use twice the residual. The iteration stops when
    both have converged, or the smallest with `smallest_alone`.
    """
    steps = int(np.clip(products, FEWEST_STEPS, MOST_PLAIN_STEPS)) // 8 * 8
    vectors = np.zeros((steps + 1, len(start)))
    vectors[0] = start / np.linalg.norm(start)
    diagonal: list[float] = []
    beside: list[float] = []
    values, residuals = np.zeros(1), np.zeros(1)
    for step in range(steps):
        found = np.asarray(operator @ vectors[step])
        diagonal.append(float(found @ vectors[step]))
        basis = vectors[: step + 1]
        for _ in range(2):  # a single pass is not enough in floating point
            found = found - basis.T @ (basis @ found)
        beside.append(float(np.linalg.norm(found)))
        exhausted = beside[-1] < TOLERANCE**2
        if step % 8 == 7 or exhausted:
            values, inside = eigh_tridiagonal(diagonal, beside[:-1])
            residuals = beside[-1] * np.abs(inside[-1])
            wanted = residuals[:1] if smallest_alone else residuals[[0, -1]]
            if exhausted or (wanted < TOLERANCE).all():
                break
        vectors[step + 1] = found / beside[-1]
    return _bounded(values[-1], residuals[-1], 1.0), _bounded(values[0], residuals[0], -1.0)


def _bounded(value: float, residual: float, end: float) -> Eigenvalue:
    """Return an eigenvalue at the end 1 or -1 of the spectrum, with its interval."""
    if residual < TOLERANCE:
        return Eigenvalue(float(value))
    low, high = sorted((float(value), end * min(1.0, float(end * value + 2 * residual))))
    return Eigenvalue(float(value), (low, high))


def _banded(graph: Digraph) -> Eigenvalue | None:
    """Return the second eigenvalue by inverse iteration if some order gives a narrow band.

    Windows mix slowly: their gap is about a millionth, for which Lanczos takes too long. Their
    matrix has a narrow band and is factorised, which makes its smallest eigenvalues the largest.
    """
    edges = int(graph.degrees.sum())
    band = None if graph.hubs else _band(graph, edges)
    if band is None:
        return None
    place, width = band
    n, scale = graph.n, _scale(graph)
    # The normalised Laplacian, shifted by less than its smallest eigenvalue to be invertible.
    shift = 0.01 / n**2
    lower = np.zeros((width + 1, n))
    for begin in range(0, n, CHUNK):
        row, column = graph.listed(begin, min(begin + CHUNK, n))
        i, j = place[row], place[column]
        below = i > j
        lower[(i - j)[below], j[below]] = -(scale[row] * scale[column])[below]
    lower[0] = 1.0 + shift
    try:
        factor = cholesky_banded(lower, overwrite_ab=True, lower=True, check_finite=False)
    except np.linalg.LinAlgError:  # beyond a million tokens, the shift is lost by rounding
        return None
    first = np.zeros(n)
    first[place] = np.sqrt(graph.degrees / edges)

    def inverse(values: Floats) -> Floats:
        values = values.reshape(-1)
        values = values - first * (first @ values)
        found = cho_solve_banded((factor, True), values, check_finite=False)
        return found - first * (first @ found)

    start = np.zeros(n)
    start[place] = _start(graph, np.sqrt(graph.degrees / edges))
    operator = _operator_of((n, n), matvec=inverse, dtype=np.float64)
    try:
        (value,), _ = _eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE)
    except (ArpackNoConvergence, ArpackError):
        return None
    return Eigenvalue(float(1.0 + shift - 1.0 / value))


def _band(graph: Digraph, edges: int) -> tuple[Ints, int] | None:
    """Return an order of positions with short edges, and the longest edge; None if too long."""
    n = graph.n
    here = np.arange(n)
    low, high = spans(graph)
    width = int(max((here - low).max(), (high - here).max()))
    if not _fits(n, width) and edges <= MOST_ORDERED:
        row, column = graph.listed(0, n)
        matrix = csr_array(coo_array((np.ones(len(row)), (row, column)), shape=(n, n)))
        here[reverse_cuthill_mckee(matrix, symmetric_mode=True)] = np.arange(n)
        width = int(np.abs(here[row] - here[column]).max(initial=0))
    return (here, width) if _fits(n, width) else None


def _fits(n: int, width: int) -> bool:
    return n * width**2 <= MOST_BAND_WORK and n * width <= MOST_BAND_NUMBERS
