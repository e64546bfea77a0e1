"""How long the edges of a graph are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Reach(NamedTuple):
    """Limits that no edge (i, j) exceeds.

    Layouts look for edges only within the reach, and a decoder remembers only what it covers.

    Attributes:
        behind: Maximum of `i - j`, unless the key is one of the first `sinks` tokens.
        ahead: Maximum of `j - i`; 0 if no query sees a later key.
        sinks: Number of tokens at the beginning that any later query may see.

    Examples:
        >>> Reach(behind=128, ahead=0)
        Reach(behind=128, ahead=0, sinks=0)
    """

    behind: float = math.inf
    ahead: float = math.inf
    sinks: int = 0

    @staticmethod
    def of_any(reaches: Iterable[Reach]) -> Reach:
        """Return the reach of a union."""
        behind, ahead, sinks = zip(*reaches, strict=True)
        return Reach(max(behind), max(ahead), max(sinks))

    @staticmethod
    def of_all(reaches: Iterable[Reach]) -> Reach:
        """Return the reach of an intersection.

        Limits exclude the edge with `i - j = behind + 1` and `j = sinks` only if those of a single
        part do, which are then no larger. So the best limits are those of one part.
        """
        reaches = list(reaches)
        best = min(reaches, key=lambda reach: reach.behind + reach.sinks)
        return best._replace(ahead=min(reach.ahead for reach in reaches))
