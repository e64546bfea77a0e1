"""Comparing questions and texts by the words that they share."""

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
"""Words of questions that do not tell what a question is about."""


def words_of(question: str) -> list[str]:
    """Return the distinct words that tell what a question is about, without most endings.

    Examples:
        >>> words_of("How many bicycles were stolen from the UN?")
        ['bicycl', 'stol', 'un']
    """
    found = re.findall(r"\w+", re.sub(r"['’]s\b", "", question.lower()))  # noqa: RUF001
    telling = (word for word in found if word not in COMMON)
    return list(dict.fromkeys(word[: max(4, min(8, len(word) - 2))] for word in telling))


def begins(word: str) -> re.Pattern[str]:
    """Return a pattern for words with this beginning; short words end after one more letter."""
    ending = r"\w?\b" if len(word) < 4 else ""
    return re.compile(rf"\b{re.escape(word)}{ending}", re.IGNORECASE)


def shared(question: str, texts: Sequence[str]) -> np.ndarray:
    """Return the share of a question's words that each text has, rare words weighing more.

    Examples:
        >>> texts = ["The shed was locked.", "A bicycle was stolen.", "The bicycle shed is old."]
        >>> shared("How many bicycles were stolen?", texts).round(2).tolist()
        [0.0, 1.0, 0.43]
    """
    patterns = [begins(word) for word in words_of(question)]
    having = (np.array([bool(each.search(text)) for text in texts], bool) for each in patterns)
    return share(having, len(texts))


def share(having: Iterable[npt.NDArray[np.bool_]], count: int) -> npt.NDArray[np.float64]:
    """Return the share of words that each text has, rare words weighing more.

    Args:
        having: For each word, which texts have it, [texts].
        count: Number of texts.
    """
    found, total = np.zeros(count), 0.0
    for texts in having:
        weight = np.log(1 + count / (1 + texts.sum()))
        found += weight * texts
        total += weight
    return found / total if total else found
