"""ListOps as in Long Range Arena, smaller: what is the value of a nested list of operators?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from longbird.bench.quality.experiment import (
    Attempt,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    mean_of,
)

OPERATORS = ("MIN", "MAX", "MED", "SM")
DIGITS = tuple("0123456789")
OPEN, CLOSE = tuple(f"[{name}" for name in OPERATORS), "]"
TOKENS = (*DIGITS, *OPEN, CLOSE)


@dataclass(frozen=True)
class Trees:
    """Which trees are made.

    Attributes:
        depth: Below this one, all are digits.
        arguments: Most of an operator; at least 2.
        share: Of operators among arguments.
        least: Tokens of the shortest that is kept.
        most: Tokens of the longest.
    """

    depth: int = 10
    arguments: int = 10
    share: float = 0.25
    least: int = 501
    most: int = 1999


def value(tokens: Sequence[str]) -> int:
    """The value of an expression.

    Examples:
        >>> value("[MAX 4 [MED 1 5 8 9 ] [SM 7 6 ] ]".split())
        6
    """
    stack: list[list[int]] = [[]]
    operators: list[str] = []
    for token in tokens:
        if token in OPEN:
            operators.append(token[1:])
            stack.append([])
        elif token == CLOSE:
            arguments = stack.pop()
            stack[-1].append(_applied(operators.pop(), arguments))
        else:
            stack[-1].append(int(token))
    return stack[0][0]


def _applied(operator: str, arguments: list[int]) -> int:
    match operator:
        case "MIN":
            return min(arguments)
        case "MAX":
            return max(arguments)
        case "MED":
            return int(np.median(arguments))
        case _:
            return sum(arguments) % 10


def expressions(trees: Trees, seed: int) -> Iterator[list[str]]:
    """Different expressions, without end; the same for the same seed."""
    draw, seen = random.Random(seed), set[tuple[str, ...]]()
    while True:
        tokens = _tree(trees, draw, 1)
        if trees.least <= len(tokens) <= trees.most and tuple(tokens) not in seen:
            seen.add(tuple(tokens))
            yield tokens


def _tree(trees: Trees, draw: random.Random, depth: int) -> list[str]:
    if depth > 1 and (depth >= trees.depth or draw.random() >= trees.share):
        return [draw.choice(DIGITS)]
    count = draw.randint(2, trees.arguments)
    arguments = (_tree(trees, draw, depth + 1) for _ in range(count))
    return [draw.choice(OPEN), *(token for each in arguments for token in each), CLOSE]


@dataclass(frozen=True)
class Sizes:
    """A scale of the experiment."""

    trees: Trees
    train: int
    test: int


SIZES = {
    "tiny": Sizes(Trees(depth=4, least=8, most=60), train=200, test=100),
    "default": Sizes(Trees(depth=10, least=101, most=499), train=20_000, test=2_000),
}
SEED = 1


@cache
def documents(scale: str) -> tuple[list[list[str]], list[list[str]]]:
    """Expressions to learn from, and held-out ones."""
    sizes, every = SIZES[scale], expressions(SIZES[scale].trees, SEED)
    test = [next(every) for _ in range(sizes.test)]
    return [next(every) for _ in range(sizes.train)], test


def majority(scale: str) -> Outcome:
    """Always the most frequent value of the training expressions."""
    train, test = documents(scale)
    most = int(np.bincount([value(each) for each in train]).argmax())
    return Outcome({"right": [value(each) == most for each in test]})


def experiment(scale: str) -> Experiment:
    """The experiment at a scale."""

    def attempt(_: Attempt) -> Outcome:
        return majority(scale)

    sizes = SIZES[scale]
    return Experiment(
        name="listops",
        title="ListOps",
        asks="Which attention learns to evaluate nested lists of operators?",
        scale=scale,
        contestants=[
            Contestant(
                "majority", "the most frequent value", attempt, {"sizes": str(sizes)}, seeded=False
            )
        ],
        reference="majority",
        metrics=[
            Metric("accuracy", "share of right values, in percent", mean_of("right"), scale=100)
        ],
        budget="none",
        data=[f"generated, {sizes}, seed {SEED}"],
    )
