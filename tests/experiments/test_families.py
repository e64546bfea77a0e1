"""Families compared with brute force, and splits without a family on both sides."""

from __future__ import annotations

import random
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.quality import families as module
from experiments.quality.families import families, split


def runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + 5]) for at in range(max(1, len(words) - 4))} if words else set()


def brute_force(texts: list[str], alike: float, links: list[list[str]]) -> list[set[int]]:
    """Pair by pair; no phrase is so common that it does not count."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(texts)))
    every = [runs(text) for text in texts]
    for a in range(len(texts)):
        for b in range(a):
            shared = len(every[a] & every[b])
            close = shared > 0 and shared >= alike * min(len(every[a]), len(every[b]))
            if close or (links and set(links[a]) & set(links[b])):
                graph.add_edge(a, b)
    return sorted(map(set, nx.connected_components(graph)), key=min)


def as_sets(numbers: np.ndarray) -> list[set[int]]:
    each = [set(np.flatnonzero(numbers == x).tolist()) for x in np.unique(numbers)]
    return sorted(each, key=min)


@pytest.mark.parametrize("alike", [0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("linked", [False, True])
def test_families_are_those_of_brute_force(alike: float, linked: bool) -> None:
    drawn = random.Random(f"{alike} {linked}")
    texts: list[str] = [""]
    for _ in range(40):
        words = [str(drawn.randrange(300)) for _ in range(drawn.randrange(1, 60))]
        if drawn.random() < 0.5:  # a part of another
            old = drawn.choice(texts).split()
            words = old[drawn.randrange(1 + len(old) // 2) :] + words[: drawn.randrange(20)]
        texts.append(" ".join(words))
    names = [[str(drawn.randrange(60))] for _ in texts] if linked else []
    assert as_sets(families(texts, alike, names)) == brute_force(texts, alike, names)


def test_phrases_that_many_have_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMON", 3)
    common = "this software is given as it is without any warranty"
    texts = [f"{common} number {x} of words like a{x} b{x} c{x} d{x} e{x}" for x in range(5)]
    assert len(set(families(texts, 0.3))) == 5
    assert len(set(families(texts[:3], 0.3))) == 1


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=60),
    st.integers(1, 40), st.integers(1, 20), st.integers(0, 5),
)  # fmt: skip
def test_no_family_is_on_both_sides(numbers: list[int], train: int, test: int, seed: int) -> None:
    _, of = np.unique(numbers, return_inverse=True)
    learned, held = split(of, train, test, seed, largest=0.5)
    assert len(learned) <= train
    assert len(held) <= test
    assert len({*learned.tolist(), *held.tolist()}) == len(learned) + len(held)
    assert not set(of[learned]) & set(of[held])
    sizes = np.bincount(of)
    assert all(sizes[family] <= 0.5 * len(of) for family in of[held])
    again = split(of, train, test, seed, largest=0.5)
    assert (again[0] == learned).all()
    assert (again[1] == held).all()
