"""Answers as SQuAD's official script compares them."""

from __future__ import annotations

import re
import string

PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalized(answer: str) -> str:
    """Without capitals, punctuation, articles and superfluous space.

    Examples:
        >>> normalized("The  U.S.A.!")
        'usa'
    """
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())
