"""The layers of the contextual mapping by which the universality theorem is proved."""

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
    """A layer with two heads: a token with low < z < high gains rho times (max - min) of its view.

    A head with the bias b gives the largest z that a token sees if its own is above b, and the
    smallest if it is below: hardmax over j of (z_i - b) z_j. The difference of two such heads is
    max - min between their biases, and 0 elsewhere.
    """

    token: int
    """The one token, counted from the centre, that is meant to be shifted."""
    low: Fraction
    high: Fraction
    rho: int

    def __str__(self) -> str:
        """For messages."""
        return f"the shift of {'the centre' if self.token == 0 else f'token {self.token}'}"


@dataclass(frozen=True)
class Construction:
    """The layers for sequences of `n` tokens, each a vector of `dimension` values of a grid.

    Args:
        n: Tokens, beside the centre.
        values: Values of a coordinate: 0, 1/values, 2/values, ... below 1.
        dimension: Coordinates of a token.
        rho: The factor of the shifts of tokens; by default a + 1, where a = values ** dimension is
            the number of different tokens. Any that is larger does as well.

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
        """Check the sizes."""
        integer(self.n, "n", least=2)
        integer(self.values, "values", least=2)
        integer(self.dimension, "dimension", least=1)

    @property
    def symbols(self) -> int:
        """How many different tokens there are."""
        return self.values**self.dimension

    @property
    def delta(self) -> Fraction:
        """The side of a cell of the grid."""
        return Fraction(1, self.values)

    @property
    def factor(self) -> int:
        """Rho of the shifts of tokens."""
        return self.symbols + 1 if self.rho is None else self.rho

    @property
    def weights(self) -> tuple[int, ...]:
        """The vector u, by which a token is read as the number z = u x."""
        powers = [self.values**k for k in range(self.dimension)]
        return (*powers, self.symbols ** (self.n + 1))

    def base(self, token: int) -> int:
        """What the position of a token adds to its z."""
        return 0 if token == 1 else self.symbols ** (token - 1) * sum(self.weights[:-1])

    def sequences(self) -> Iterator[Digits]:
        """All sequences in lexicographic order, each token as a number from 0 on."""
        return itertools.product(range(self.symbols), repeat=self.n)

    def embedded(self, digits: Digits) -> list[list[Fraction]]:
        """The vectors of the centre and of the tokens, positions added."""
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
        """What the tokens and the centre have before the last layer, by the recursion."""
        *_, (found, centre) = self._recursion(digits)
        return found, centre

    def _recursion(self, digits: Digits) -> Iterator[tuple[list[Fraction], Fraction]]:
        """Tokens f_1 ... f_k and centre F_k after each pair of shifts, from k = 0 on."""
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
        # The centre has the most where all digits are 0, and the least where all are largest.
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
        """R of the last layer: so large that no sum of a token and R centres is another's."""
        zeros = (0,) * self.n
        most, centre = self.expected(zeros)
        units = [tuple(int(k == j) for k in range(self.n)) for j in range(self.n)]
        falls = [centre - self.expected(unit)[1] for unit in units]
        # From a sequence to the next, one digit rises and those after it fall back to 0.
        gaps = [fall - (self.symbols - 1) * sum(falls[j + 1 :]) for j, fall in enumerate(falls)]
        gap = min(gaps) if min(gaps) > 0 else self.delta
        return math.floor(max(most) / gap) + 1
