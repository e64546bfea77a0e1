"""Exact match and F1 of answers, as the official scripts of SQuAD 1.1 and 2.0 define them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalized(answer: str) -> str:
    """Return an answer in lowercase, without punctuation, articles and superfluous whitespace.

    Examples:
        >>> normalized("The  U.S.A.!")
        'usa'
    """
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def overlap(given: str, right: str) -> tuple[float, float, float]:
    """F1, precision and recall of the words that two answers share."""
    said, wanted = normalized(given).split(), normalized(right).split()
    same = sum((Counter(said) & Counter(wanted)).values())
    if same == 0:
        return 0.0, 0.0, 0.0
    precision, recall = same / len(said), same / len(wanted)
    return 2 * precision * recall / (precision + recall), precision, recall


def score(given: str, rights: Sequence[str], second: bool = True) -> tuple[float, float]:
    """Exact match and F1 of an answer, each with the right one that it is nearest to.

    Args:
        given: The answer; empty for none.
        rights: All that are right; none if the question has no answer.
        second: By SQuAD 2.0? Then answers without a word count as no answer, and no answer to
            a question without one is right.
    """
    if second:
        rights = [right for right in rights if normalized(right)] or [""]
    exact = max((normalized(given) == normalized(right) for right in rights), default=False)
    if second and not normalized(given):
        return float(exact), float(exact)
    return float(exact), max((overlap(given, right)[0] for right in rights), default=0.0)


def best_threshold(margins: np.ndarray, answered: np.ndarray, silent: np.ndarray) -> float:
    """Above which margin to give no answer, so that the score is highest; of equals the nearest 0.

    It is chosen on documents that nothing is reported of.

    Args:
        margins: How much rather the model would give no answer, [questions].
        answered: The score of its answer to each question.
        silent: The score of no answer to it.
    """
    order = np.argsort(margins, kind="stable")
    ascending = margins[order]
    # The first k are answered.
    gained = np.concatenate([[0.0], np.cumsum((answered - silent)[order])])
    below = np.concatenate([[-np.inf], ascending])
    above = np.concatenate([ascending, [np.inf]])
    # Any between two neighbours is as good: 0, if it is between them.
    middle = np.concatenate(
        [[ascending[0] - 1], (ascending[:-1] + ascending[1:]) / 2, [ascending[-1] + 1]]
    )
    nearest = np.where((below < 0) & (above > 0), 0.0, middle)
    possible = below < above
    highest = gained[possible].max()
    best = nearest[possible & (gained >= highest - 1e-12)]
    return float(best[np.abs(best).argmin()])
