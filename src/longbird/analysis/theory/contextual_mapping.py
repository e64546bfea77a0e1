"""The layers of the contextual mapping in the proof of the universality theorem."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from longbird.core.graph.arguments import integer

Digits = tuple[int, ...]


@dataclass(frozen=True)
class Shift:
    """A layer with two heads that adds rho (max - min) of the visible z to tokens in (low, high).

    A head with the bias b returns the largest z that a token sees if its own z is above b, and the
    smallest if it is below: hardmax over j of (z_i - b) z_j. The difference of two such heads is
    max - min for z between their biases, and 0 elsewhere.
    """

    token: int
    """Number of the only token that is to be shifted, where 0 is the centre."""
    low: Fraction
    high: Fraction
    rho: int

    def __str__(self) -> str:
        """Return a description for messages."""
        return f"the shift of {'the centre' if self.token == 0 else f'token {self.token}'}"


@dataclass(frozen=True)
class Construction:
    """The layers for sequences of `n` tokens, each a vector of `dimension` values of a grid.

    Args:
        n: Number of tokens besides the centre.
        values: Number of values of a coordinate: 0, 1/values, 2/values, ... below 1.
        dimension: Number of coordinates of a token.
        rho: Factor of the shifts of tokens; by default a + 1, where a = values ** dimension is the
            number of different tokens. Any larger factor works as well.

    Examples:
        >>> construction = Construction(3, 2)
        >>> len(construction.shifts), construction.last_factor
        (6, 265)
        >>> tokens, centre = construction.expected((0, 1, 0))
        >>> print(*tokens, centre)
        48 1135 28276 235252
    """

    n: int
    values: int
    dimension: int = 1
    rho: int | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        integer(self.n, "n", least=2)
        integer(self.values, "values", least=2)
        integer(self.dimension, "dimension", least=1)

    @property
    def symbols(self) -> int:
        """Number of different tokens."""
        return self.values**self.dimension

    @property
    def delta(self) -> Fraction:
        """Side of a cell of the grid."""
        return Fraction(1, self.values)

    @property
    def factor(self) -> int:
        """Factor rho of the shifts of tokens."""
        return self.symbols + 1 if self.rho is None else self.rho

    @property
    def weights(self) -> tuple[int, ...]:
        """Vector u that maps a token x to the number z = u x."""
        powers = [self.values**k for k in range(self.dimension)]
        return (*powers, self.symbols ** (self.n + 1))

    def base(self, token: int) -> int:
        """Return what the position of a token adds to its z."""
        return 0 if token == 1 else self.symbols ** (token - 1) * sum(self.weights[:-1])

    def sequences(self) -> Iterator[Digits]:
        """Yield all sequences in lexicographic order, with tokens as numbers from 0 on."""
        return itertools.product(range(self.symbols), repeat=self.n)

    def embedded(self, digits: Digits) -> list[list[Fraction]]:
        """Return the vectors of the centre and of the tokens, with positions added."""
        zero, one = Fraction(0), Fraction(1)
        rows = [[zero] * self.dimension + [one]]
        for token, digit in enumerate(digits, start=1):
            position = Fraction(0 if token == 1 else self.symbols ** (token - 1))
            row = [
                position + self.delta * (digit // self.values**k % self.values)
                for k in range(self.dimension)
            ]
            rows.append([*row, zero])
        return rows

    def expected(self, digits: Digits) -> tuple[list[Fraction], Fraction]:
        """Return z of the tokens and the centre before the last layer, by the recursion."""
        *_, (found, centre) = self._recursion(digits)
        return found, centre

    def _recursion(self, digits: Digits) -> Iterator[tuple[list[Fraction], Fraction]]:
        """Yield tokens f_1 ... f_k and centre F_k after each pair of shifts, from k = 0 on."""
        start = [self.base(k) + self.delta * digit for k, digit in enumerate(digits, start=1)]
        centre, found = Fraction(self.weights[-1]), list[Fraction]()
        yield list(found), centre
        for k, own in enumerate(start):
            found.append(own + self.factor * (centre - own))
            lowest = start[k + 1] if k + 1 < self.n else found[0]
            centre += self.symbols**self.n * (found[k] - lowest)
            yield list(found), centre

    @cached_property
    def shifts(self) -> tuple[Shift, ...]:
        """The 2 n layers before the last."""
        half = self.delta / 2
        # The centre is largest if all digits are 0, and smallest if all digits are largest.
        most = [centre for _, centre in self._recursion((0,) * self.n)]
        least = [centre for _, centre in self._recursion((self.symbols - 1,) * self.n)]
        made: list[Shift] = []
        for k in range(1, self.n + 1):
            base = self.base(k)
            top = base + (self.symbols - 1) * self.delta + half
            made.append(Shift(k, base - half, top, self.factor))
            made.append(Shift(0, least[k - 1] - half, most[k - 1] + half, self.symbols**self.n))
        return tuple(made)

    @cached_property
    def last_factor(self) -> int:
        """Factor R of the last layer, so large that all sums token + R centre are distinct."""
        zeros = (0,) * self.n
        most, centre = self.expected(zeros)
        units = [tuple(int(k == j) for k in range(self.n)) for j in range(self.n)]
        falls = [centre - self.expected(unit)[1] for unit in units]
        # From a sequence to the next, one digit increases and those after it return to 0.
        gaps = [fall - (self.symbols - 1) * sum(falls[j + 1 :]) for j, fall in enumerate(falls)]
        gap = min(gaps) if min(gaps) > 0 else self.delta
        return math.floor(max(most) / gap) + 1
