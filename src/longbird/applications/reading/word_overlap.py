"""How many words of a question texts have: what is close to it where a model is not sure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

COMMON = frozenset(
    "a an and are as at be by did do does for from had has have he her his how in is it its many "
    "much of on or she that the their there they this to was were what when where which who whom "
    "whose why will with".split()
)
"""Words of a question that say nothing of what it is about."""


def words_of(question: str) -> list[str]:
    """The words that say what a question is about, without most endings, each once.

    Examples:
        >>> words_of("How many bicycles were stolen from the UN?")
        ['bicycl', 'stol', 'un']
    """
    found = re.findall(r"\w+", re.sub(r"['’]s\b", "", question.lower()))  # noqa: RUF001
    every = (word for word in found if word not in COMMON)
    return list(dict.fromkeys(word[: max(4, min(8, len(word) - 2))] for word in every))


def begins(word: str) -> re.Pattern[str]:
    """Finds words that begin so; short ones whole, with an ending of one letter at most."""
    ending = r"\w?\b" if len(word) < 4 else ""
    return re.compile(rf"\b{re.escape(word)}{ending}", re.IGNORECASE)


def shared(question: str, texts: Sequence[str]) -> np.ndarray:
    """The share of a question's words that each text has, rare ones counting more, [texts].

    Examples:
        >>> texts = ["The shed was locked.", "A bicycle was stolen.", "The bicycle shed is old."]
        >>> shared("How many bicycles were stolen?", texts).round(2).tolist()
        [0.0, 1.0, 0.43]
    """
    patterns = [begins(word) for word in words_of(question)]
    having = (np.array([bool(each.search(text)) for text in texts], bool) for each in patterns)
    return share(having, len(texts))


def share(having: Iterable[npt.NDArray[np.bool_]], count: int) -> npt.NDArray[np.float64]:
    """The share of words that each of so many texts has; rare words count more.

    Args:
        having: For each word, which texts have it, [texts].
        count: The number of texts.
    """
    found, total = np.zeros(count), 0.0
    for texts in having:
        weight = np.log(1 + count / (1 + texts.sum()))
        found += weight * texts
        total += weight
    return found / total if total else found
