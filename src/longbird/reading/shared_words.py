"""How many words of a question texts have: what is close to it where a model is not sure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

COMMON = frozenset(
    "a an and are as at be by did do does for from had has have he her his how in is it its many "
    "much of on or she that the their there they this to was were what when where which who whom "
    "whose why will with".split()
)
"""Words of a question that say nothing of what it is about."""


def words_of(question: str) -> list[str]:
    """The words that say what a question is about, without most endings, each once.

    Examples:
        >>> words_of("How many bicycles were stolen?")
        ['bicycl', 'stol']
    """
    every = (word for word in re.findall(r"\w+", question.lower()) if word not in COMMON)
    return list(dict.fromkeys(word[: max(4, min(8, len(word) - 2))] for word in every))


def begins(word: str) -> re.Pattern[str]:
    """Finds words that begin so."""
    return re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)


def shared(question: str, texts: Sequence[str]) -> np.ndarray:
    """The share of a question's words that each text has, rare ones counting more, [texts].

    Examples:
        >>> texts = ["The shed was locked.", "A bicycle was stolen.", "The bicycle shed is old."]
        >>> shared("How many bicycles were stolen?", texts).round(2).tolist()
        [0.0, 1.0, 0.43]
    """
    found, total = np.zeros(len(texts)), 0.0
    for word in words_of(question):
        pattern = begins(word)
        having = np.array([bool(pattern.search(text)) for text in texts], bool)
        weight = np.log(1 + len(texts) / (1 + having.sum()))
        found += weight * having
        total += weight
    return found / total if total else found
