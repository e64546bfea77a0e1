"""Associative recall: scattered pairs of a key and a value, and queries for them near and far.

Every token has a key, a value, both or neither. A token with both is a pair, and a token with only
a key is a query for its value. So no layer is needed to put pairs together, and what remains to be
learned is to find them, hop by hop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Tokens = npt.NDArray[np.int64]

NOT_ASKED = -100
"""The answer where no query stands: such tokens do not count in a loss of torch."""


@dataclass(frozen=True)
class Recall:
    """Which sequences are generated.

    Attributes:
        length: Number of tokens per sequence.
        keys: Number of different keys, each of which has one pair in a sequence.
        values: Number of different values, drawn uniformly; guessing is right once in this many
            times.
        queries: Maximum number of queries per sequence.
    """

    length: int
    keys: int
    values: int
    queries: int


@dataclass(frozen=True)
class Sequences:
    """Sequences with their queries, each [sequences, length].

    Attributes:
        keys: 0 for none, and otherwise 1 + the key. The first token, which is always the same like
            [CLS], has 1 + the number of keys.
        values: 0 for none, and otherwise 1 + the value.
        answers: The value at queries, and `NOT_ASKED` elsewhere.
        distances: Distance of a query from its pair, on either side; 0 elsewhere.
    """

    keys: Tokens
    values: Tokens
    answers: Tokens
    distances: Tokens


def draw(task: Recall, count: int, random: np.random.Generator) -> Sequences:
    """Draw sequences of a task.

    Distances are drawn uniformly from 1 to the length less one, and then a pair and a side that
    have a
    place at that distance. Distances without such a place, and queries at a place that is taken,
    are
    left out.

    Examples:
        >>> found = draw(Recall(8, keys=2, values=4, queries=4), 1, np.random.default_rng(3))
        >>> found.keys[0].tolist()  # the first token, and keys 0 and 1 as 1 and 2
        [3, 1, 0, 0, 2, 2, 1, 1]
        >>> found.values[0].tolist()  # pairs are tokens 1 and 5
        [0, 1, 0, 0, 0, 1, 0, 0]
        >>> found.distances[0].tolist()  # queries are tokens 4, 6 and 7
        [0, 0, 0, 0, 1, 0, 5, 6]
    """
    every = [_one(task, random) for _ in range(count)]
    return Sequences(*(np.stack(each) for each in zip(*every, strict=True)))


def _one(task: Recall, random: np.random.Generator) -> tuple[Tokens, Tokens, Tokens, Tokens]:
    n = task.length
    keys, values, distances = (np.zeros(n, np.int64) for _ in range(3))
    answers = np.full(n, NOT_ASKED)
    keys[0] = 1 + task.keys
    pairs = 1 + random.choice(n - 1, task.keys, replace=False)  # the place of each key
    table = random.integers(0, task.values, task.keys)  # the value of each key
    keys[pairs], values[pairs] = 1 + np.arange(task.keys), 1 + table

    drawn = random.integers(1, n, task.queries)
    side = np.array([-1, 1])[:, None]
    places = (pairs + drawn[:, None, None] * side).reshape(len(drawn), -1)  # [queries, 2 keys]
    fits = (places >= 0) & (places < n) & (keys == 0)[places % n]
    chosen = np.where(fits, random.random(places.shape), -1.0).argmax(1)
    row = np.flatnonzero(fits[np.arange(len(drawn)), chosen])
    place, first = np.unique(places[row, chosen[row]], return_index=True)
    row = row[first]
    key = chosen[row] % task.keys
    keys[place], answers[place], distances[place] = 1 + key, table[key], drawn[row]
    return keys, values, answers, distances
