"""Instances of the furthest-vector task, and the check of their solutions."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import nnls
from torch import Tensor

from longbird.core.graph.arguments import integer
from longbird.errors import InvalidTypeError, InvalidValueError

HARD = 1e9
"""Factor of scores: a score that is lower by a millionth has weight 0 in float64."""
ALIKE = 746 / HARD
"""Difference below which inner products are equal: both keys have a positive weight."""
MEAN = 1e-9
"""Maximum error of a mean of several vectors."""
ROUNDING = 1e-12
"""Maximum error of one vector, which is a mean if it was read twice."""
UNIT = 1e-6
"""Maximum error of the length of a unit vector, for float32."""
CLOSE = 2.0**-20
"""Difference between the furthest of `close` and the next: 1000 after scaling."""


def _size(n: int) -> int:
    """Return about log2(n)^2, as a power of 4, so that 1 / sqrt(size) is exact."""
    return 4 ** max(2, math.ceil(math.log2(max(2.0, math.log2(n) ** 2)) / 2))


def planted(n: int, seed: int = 0) -> Tensor:
    """Return unit vectors [n, size] in pairs: i + 1 is minus i except in one coordinate.

    That coordinate is random, so that a token cannot know its answer without reading it. The two
    vectors of a pair are neighbours on the ring such that the ring compares them last. Coordinates
    are plus or minus a power of two, so that all products are exact.
    """
    integer(n, "n", least=2)
    size = _size(n)
    generator = np.random.default_rng(seed)
    pairs, made = np.empty((n + 1, size)), 0
    while made < n:
        drawn = generator.choice([-1.0, 1.0], size)
        if (np.abs(pairs[:made] @ drawn) <= size / 2).all():  # others are far from opposite
            pairs[made], pairs[made + 1] = drawn, -drawn
            pairs[made + 1, generator.integers(size)] *= -1
            made += 2
    return torch.from_numpy(pairs[:n]) / math.sqrt(size)


def close(n: int, seed: int = 0) -> Tensor:
    """Return random unit vectors [n, size], for a third of which the choice is close.

    Of three vectors, the second is the furthest from the first, and the third is closer by a
    millionth. Almost any weight that changes by a hundredth makes one of them choose wrongly.
    """
    integer(n, "n", least=2)
    size = _size(n)
    generator = np.random.default_rng(seed)
    rows: list[npt.NDArray[np.float64]] = []
    while len(rows) < n:
        first, *aside = generator.standard_normal((3, size))
        first /= np.linalg.norm(first)
        for product, beside in zip((-0.8, CLOSE - 0.8), aside, strict=True):
            beside -= (beside @ first) * first
            beside *= math.sqrt(1 - product**2) / np.linalg.norm(beside)
            beside += product * first
        rows += [first, *aside]
    return torch.from_numpy(np.stack(rows)[:n])


def bits(n: int, seed: int = 0) -> Tensor:
    """Return normalised random bits [n, size], so sparse that about one pair is orthogonal.

    Deciding whether there is such a pair is the problem of the conjecture.
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


INSTANCES: dict[str, Callable[[int, int], Tensor]] = {
    "planted": planted, "close": close, "bits": bits,
}  # fmt: skip


def solved(u: Tensor, found: Tensor) -> Tensor:
    """Return which vectors have found the furthest, up to rounding: bool [n].

    If several are equally far, hardmax returns a mean of them, which has to be a mean of these
    vectors alone, with non-negative weights.
    """
    products = u @ u.T
    furthest = products - products.amin(dim=1, keepdim=True) < ALIKE  # [n, n]
    one = furthest.sum(dim=1) == 1
    right = ((found - u[furthest.double().argmax(dim=1)]).abs() < ROUNDING).all(dim=1)
    near = ((u * found).sum(dim=1) - products.amin(dim=1)).abs() < ALIKE
    for i in (~one & near).nonzero()[:, 0].tolist():
        right[i] = _is_mean(found[i].numpy(), u[furthest[i]].numpy())
    return right & near


def _is_mean(found: npt.NDArray[np.float64], of: npt.NDArray[np.float64]) -> bool:
    """Return whether a vector is a mean of others, with weights of at least 0 that sum to 1."""
    _, error = nnls(np.vstack([of.T, np.ones(len(of))]), np.append(found, 1.0))
    return bool(error < MEAN)


def unit_vectors(u: Tensor | npt.ArrayLike) -> Tensor:
    """Return unit vectors in float64; only for them is the smallest product the furthest."""
    try:
        found = torch.as_tensor(u)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidTypeError(
            f"expected vectors of one size, as a tensor, an array or lists of numbers: {error}"
        ) from None
    if found.ndim != 2 or len(found) < 2 or found.is_complex():
        kind = "complex numbers" if found.is_complex() else "an array"
        raise InvalidValueError(
            f"received {kind} of shape {list(found.shape)}, expected at least two vectors of real "
            "numbers: [n, size]"
        )
    found = found.double()
    lengths = found.norm(dim=1)
    wrong = ~((lengths - 1).abs() < UNIT)  # also for NaN
    if wrong.any():
        first = int(wrong.nonzero()[0, 0])
        raise InvalidValueError(
            f"vector {first} has length {lengths[first]:.6g}, expected vectors of length 1: "
            "torch.nn.functional.normalize makes them such"
        )
    return found
