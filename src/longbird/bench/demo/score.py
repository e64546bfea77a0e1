"""Are two answers the same? As SQuAD compares them: without case, punctuation and articles."""

from __future__ import annotations

import re
import string


def same(given: str, right: str) -> bool:
    """Is it?

    Examples:
        >>> same("The Kemeny Commission.", "Kemeny commission")
        True
    """
    return _plain(given) == _plain(right)


def _plain(answer: str) -> list[str]:
    kept = "".join(each for each in answer.lower() if each not in string.punctuation)
    return [word for word in re.split(r"\s+", kept) if word not in ("a", "an", "the", "")]
