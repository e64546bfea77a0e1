"""Normalizing answers as the official script of SQuAD does."""

from __future__ import annotations

import re
import string

PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalized(answer: str) -> str:
    """Return an answer in lowercase, without punctuation, articles and superfluous whitespace.

    Examples:
        >>> normalized("The  U.S.A.!")
        'usa'
    """
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())
