"""How far the edges of a graph go."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Reach(NamedTuple):
    """Limits that no edge (i, j) goes beyond.

    Layouts look for edges within the reach alone, and a decoder remembers no more than that.

    Attributes:
        behind: `i - j` is at most this, unless the key is one of the first `sinks` tokens.
        ahead: `j - i` is at most this; 0 if no query sees what comes after it.
        sinks: The number of tokens at the beginning that any later query may see.

    Examples:
        >>> Reach(behind=128, ahead=0)
        Reach(behind=128, ahead=0, sinks=0)
    """

    behind: float = math.inf
    ahead: float = math.inf
    sinks: int = 0

    @staticmethod
    def of_any(reaches: Iterable[Reach]) -> Reach:
        """The reach of a union."""
        behind, ahead, sinks = zip(*reaches, strict=True)
        return Reach(max(behind), max(ahead), max(sinks))

    @staticmethod
    def of_all(reaches: Iterable[Reach]) -> Reach:
        """The reach of an intersection.

        Limits exclude the edge with `i - j = behind + 1` and `j = sinks` only if one part does so
        alone: its own limits are no larger. So the best limits are those of one part.
        """
        reaches = list(reaches)
        best = min(reaches, key=lambda reach: reach.behind + reach.sinks)
        return best._replace(ahead=min(reach.ahead for reach in reaches))
