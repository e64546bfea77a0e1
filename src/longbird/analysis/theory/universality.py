"""Universality: a contextual mapping by attention over any graph that contains a star.

Sparse attention can approximate every continuous function of sequences if its graph contains a
star: a token that sees all and is seen by all, while every token sees itself. The core of the
proof is a contextual mapping: after a few layers of attention, every token of every sequence has a
unique value, from which feed-forward layers can look up any output. Here it is computed in
fractions over the edges of a graph, for all sequences over a small alphabet.

A token holds a number z, initially its position and its symbol. Each layer shifts one token:
token k by its distance to the centre, then the centre by its distance to token k. In the end, the
centre identifies the sequence, and every token adds the value of the centre.

The construction is that of Zaheer et al. 2020 (appendix A), after Yun et al. 2020, with the bias
on the query and a factor of a + 1 instead of a, without which two sequences can collide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from longbird.analysis.measures.star import Star
from longbird.analysis.theory.contextual_mapping import Construction, Digits, Shift
from longbird.core.graph import Edges, Graph, as_graph
from longbird.core.operator.api import attention
from longbird.errors import InvalidValueError

MOST_SEQUENCES = 1 << 12
"""Maximum number of sequences: a sequence of twelve tokens takes a hundredth of a second."""
BELOW = -1
"""Bias of the last layer, below every z, all of which are at least 0."""

Number = Fraction | float


# ---- The construction ----


# ---- Running it over a graph ----


def hardmax_shift(
    z: Sequence[Number], seen: Sequence[Sequence[int]], shift: Shift
) -> list[Number]:
    """Return what the layer adds to each token."""
    exact = isinstance(z[0], Fraction)
    low, high = (shift.low, shift.high) if exact else (float(shift.low), float(shift.high))
    return [
        shift.rho * (_head(z, z[i] - low, keys) - _head(z, z[i] - high, keys))
        for i, keys in enumerate(seen)
    ]


def _head(z: Sequence[Number], query: Number, keys: Sequence[int]) -> Number:
    """Return hardmax attention: the mean of the keys with the largest product."""
    if not keys:
        return query * 0
    best = max(query * z[j] for j in keys)
    winners = [z[j] for j in keys if query * z[j] == best]
    return winners[0] if len(set(winners)) == 1 else sum(winners) / len(winners)


def softmax_shift(
    z: Sequence[Number], seen: Sequence[Sequence[int]], shift: Shift, scale: float
) -> list[Number]:
    """Return the same with softmax at this scale, by `longbird.attention` in float64."""
    values = torch.tensor([float(each) for each in z], dtype=torch.float64)
    biases = torch.tensor([float(shift.low), float(shift.high)], dtype=torch.float64)
    q = (values - biases[:, None])[None, :, :, None]  # [1, 2 heads, tokens, 1]
    k = values.expand(2, -1)[None, :, :, None]
    graph = Edges([(i, j) for i, keys in enumerate(seen) for j in keys])
    read = attention(q, k, k, graph, scale=scale)[0, :, :, 0]
    if not read.isfinite().all():
        raise InvalidValueError(f"softmax of scale {scale:g} overflows; choose a smaller scale")
    return (shift.rho * (read[0] - read[1])).tolist()


@dataclass(frozen=True)
class Result:
    """The result of one sequence: z before the last layer, and the codes after it."""

    tokens: tuple[Number, ...]
    centre: Number
    codes: tuple[Number, ...]
    wrong: str | None = None
    """Description of the first shift with a wrong result, or None."""


def run(
    construction: Construction,
    digits: Digits,
    seen: Sequence[Sequence[int]],
    centre: int = 0,
    *,
    numbers: Literal["exact", "float64"] = "exact",
    softmax: float | None = None,
) -> Result:
    """Run the layers on one sequence.

    Args:
        construction: Layers.
        digits: Sequence.
        seen: Tokens that each token sees.
        centre: Token that is the centre; the others, in order, are tokens 1 to n.
        numbers: "exact" (fractions), or "float64".
        softmax: Scale of a softmax that replaces hardmax, in float64.
    """
    exact = numbers == "exact" and softmax is None
    order = [centre, *(token for token in range(construction.n + 1) if token != centre)]
    place = {token: k for k, token in enumerate(order)}
    seen = [[place[j] for j in seen[token]] for token in order]
    x = construction.embedded(digits)
    z: list[Number] = [
        sum(u * each for u, each in zip(construction.weights, row, strict=True)) for row in x
    ]
    wrong = None
    if not exact:
        z = [float(each) for each in z]
    steps = construction._recursion(digits)
    tokens, middle = next(steps)
    for shift in construction.shifts:
        if shift.token:
            tokens, middle = next(steps)
        inside = [i for i, each in enumerate(z) if shift.low < each < shift.high]
        if softmax is None:
            added = hardmax_shift(z, seen, shift)
        else:
            added = softmax_shift(z, seen, shift, softmax)
        before, z = z, [each + more for each, more in zip(z, added, strict=True)]
        if not exact or wrong is not None:
            continue
        wanted = tokens[shift.token - 1] if shift.token else middle
        wrong = _wrong(shift, inside, before, z, wanted)
    # One head with a bias below every z returns the largest that a token sees: the centre.
    factor = construction.last_factor
    largest = [_head(z, z[i] - BELOW, keys) for i, keys in enumerate(seen)]
    codes = tuple(own + factor * top for own, top in zip(z, largest, strict=True))[1:]
    if exact and wrong is None:
        for token, (code, own) in enumerate(zip(codes, tokens, strict=True), start=1):
            if code != own + factor * middle:
                wrong = f"the last layer gave token {token} {code}, expected {own} + R {middle}"
                break
    return Result(tuple(z[1:]), z[0], codes, wrong)


def _wrong(
    shift: Shift, inside: list[int], before: list[Any], after: list[Any], wanted: Number
) -> str | None:
    """Return a description of what a shift did wrong, or None."""
    if inside != [shift.token]:
        return f"{shift} found the tokens {inside} in its window, expected [{shift.token}]"
    moved = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    if moved != inside:
        return f"{shift} moved the tokens {moved}, expected {inside}"
    if after[shift.token] != wanted:
        return f"{shift} moved it to {after[shift.token]}, expected {wanted}"
    return None


def neighbours(graph: Graph | str, n: int) -> list[list[int]]:
    """Return which tokens each of `n` tokens sees in all heads."""
    return [np.flatnonzero(row).tolist() for row in _in_all_heads(as_graph(graph), n)]


def _in_all_heads(graph: Graph, n: int) -> npt.NDArray[np.bool_]:
    return np.logical_and.reduce(graph.mask(n, graph.least_heads))


# ---- All sequences ----


@dataclass(frozen=True)
class Report:
    """The result of `check`; prints as a summary.

    Attributes:
        graph: Graph of the attention.
        construction: Layers.
        star: Whether the graph contains a star, and what is missing.
        results: Results by sequence, in lexicographic order.
    """

    graph: Graph
    construction: Construction
    star: Star
    results: dict[Digits, Result]

    @property
    def centre(self) -> int | None:
        """Centre of the star; None if there is none."""
        return self.star.centre if self.star else None

    @cached_property
    def collision(self) -> tuple[tuple[Digits, int], tuple[Digits, int]] | None:
        """Two pairs of a sequence and a token (from 1 on) with the same code, or None."""
        owners: dict[Number, tuple[Digits, int]] = {}
        for digits, result in self.results.items():
            for token, code in enumerate(result.codes, start=1):
                owner = owners.setdefault(code, (digits, token))
                if owner != (digits, token):
                    return owner, (digits, token)
        return None

    @cached_property
    def distinct(self) -> int:
        """Number of different codes."""
        return len({code for result in self.results.values() for code in result.codes})

    @cached_property
    def error(self) -> float:
        """Maximum error of the centre; 0 for an exact run."""
        return max(
            float(abs(Fraction(result.centre) - self.construction.expected(digits)[1]))
            for digits, result in self.results.items()
        )

    @cached_property
    def out_of_order(self) -> tuple[Digits, Digits] | None:
        """Two sequences of which the later has no smaller centre, or None.

        If two sequences have the same centre, they are returned.
        """
        first: dict[Number, Digits] = {}
        for digits, result in self.results.items():
            if result.centre in first:
                return first[result.centre], digits
            first[result.centre] = digits
        for one, other in itertools.pairwise(self.results):
            if self.results[one].centre <= self.results[other].centre:
                return one, other
        return None

    @property
    def falls(self) -> bool:
        """Whether the centre decreases from each sequence to the next."""
        return self.out_of_order is None

    @cached_property
    def separates(self) -> bool:
        """Whether R is so large that no tokens of two sequences can have the same code.

        By the proof, for exact numbers, R times the smallest difference of two centres has to
        exceed every token.
        """
        centres = sorted(Fraction(result.centre) for result in self.results.values())
        gap = min(after - before for before, after in itertools.pairwise(centres))
        most = max(Fraction(token) for each in self.results.values() for token in each.tokens)
        return self.construction.last_factor * gap > most

    @property
    def wrong(self) -> tuple[Digits, str] | None:
        """First sequence for which a shift was wrong, and a description."""
        found = ((digits, each.wrong) for digits, each in self.results.items() if each.wrong)
        return next(found, None)

    @property
    def ok(self) -> bool:
        """Whether all codes are distinct, and all layers worked."""
        told_apart = self.collision is None and self.falls
        return told_apart and self.wrong is None and (self.error > 0 or self.separates)

    def raise_if_failed(self) -> Report:
        """Return the report, or raise an AssertionError that shows it."""
        if not self.ok:
            raise AssertionError(str(self))
        return self

    def __repr__(self) -> str:
        """Return a summary in a few lines."""
        n, sequences = self.construction.n, len(self.results)
        star = f"contains a star around position {self.centre}"
        if not self.star:  # tokens are those of a sequence here
            star = str(self.star).replace("token", "position")
        lines = [
            f"{self.graph!r:.200} over {n + 1} tokens {star}",
            f"{2 * n + 1} layers; {sequences:,} sequences of {n} tokens: {self.distinct:,} codes, "
            f"{n * sequences:,} expected",
        ]
        if self.wrong is not None:
            digits, how = self.wrong
            lines.append(f"FAILED  sequence {_written(digits)}: {how}")
        if self.collision is not None:
            (one, first), (other, second) = self.collision
            lines.append(
                f"FAILED  token {first} of {_written(one)} and token {second} of "
                f"{_written(other)} have the same code, {self.results[one].codes[first - 1]}"
            )
        elif self.wrong is not None:
            lines.append("no two tokens have the same code, but by luck: the proof does not hold")
        if self.out_of_order is not None and self.wrong is None:
            one, other = self.out_of_order
            lines.append(
                f"FAILED  the centre has {self.results[one].centre} for {_written(one)} and "
                f"{self.results[other].centre} for {_written(other)}: expected less for the later"
            )
        elif not self.ok and self.wrong is None and self.collision is None:
            lines.append(
                f"FAILED  R = {self.construction.last_factor} of the last layer does not keep "
                "sequences apart: no two codes are the same, but by luck"
            )
        if self.error and self.wrong is None:
            lines.append(f"the centre is off by up to {self.error:.6g}")
        if self.ok:
            lines.append("every token of every sequence has a code of its own")
        return "\n".join(lines)


def _written(digits: Digits) -> str:
    return ("" if max(digits) < 10 else " ").join(map(str, digits))


def check(
    graph: Graph | str,
    n: int = 3,
    values: int = 2,
    dimension: int = 1,
    *,
    rho: int | None = None,
    numbers: Literal["exact", "float64"] = "exact",
    softmax: float | None = None,
) -> Report:
    """Run the construction over a graph for all sequences.

    Args:
        graph: Graph or its expression, over n + 1 tokens, one of which is the centre.
        n: Number of tokens of a sequence.
        values: Number of values of a coordinate.
        dimension: Number of coordinates of a token.
        rho: Factor of the shifts of tokens; by default that of the construction.
        numbers: "exact" (fractions), or "float64".
        softmax: Scale of a softmax that replaces hardmax, in float64.

    Raises:
        ValueError: There are too many sequences, or the scale of the softmax is invalid.

    Examples:
        >>> check("Full()")
        Full() over 4 tokens contains a star around position 0
        7 layers; 8 sequences of 3 tokens: 24 codes, 24 expected
        every token of every sequence has a code of its own
        >>> check("Window(1)").collision
        (((0, 0, 0), 1), ((0, 0, 1), 1))
    """
    graph = as_graph(graph)
    construction = Construction(n, values, dimension, rho)
    if n * dimension * math.log2(values) > math.log2(MOST_SEQUENCES):
        raise InvalidValueError(
            f"there are {values}^{n * dimension} sequences of {n} tokens, expected at most "
            f"{MOST_SEQUENCES:,}; choose fewer tokens, values or dimensions"
        )
    if softmax is not None and not 0 < softmax < math.inf:
        raise InvalidValueError(
            f"the scale of softmax must be a number above 0, received {softmax:g}"
        )
    star = graph.contains_star(n + 1)
    seen = neighbours(graph, n + 1)
    middle = star.centres[0] if star else max(range(n + 1), key=lambda token: len(seen[token]))
    results = {
        digits: run(construction, digits, seen, middle, numbers=numbers, softmax=softmax)
        for digits in construction.sequences()
    }
    return Report(graph, construction, star, results)
