"""ROUGE of summaries, by Google's `rouge_score`, with the Porter stemmer as papers report it."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")
SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[\u3002\uff01\uff1f])|\n+")
NO_SPACES = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # Chinese and Japanese
WORDS = re.compile(rf"[{NO_SPACES}]|[^\W_{NO_SPACES}]+")
"""A word of letters and digits; a character, where words are not divided by spaces."""


class UnicodeWords:
    """Words of any script, for texts of which rouge_score's own tokenizer leaves little."""

    def tokenize(self, text: str) -> list[str]:
        """Words in lower case, not stemmed."""
        return WORDS.findall(text.lower())


@cache
def _scorer(ascii_words: bool) -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # brings nltk, which takes a second

    if ascii_words:
        return RougeScorer(KINDS, use_stemmer=True)
    return RougeScorer(KINDS, tokenizer=UnicodeWords())


def sentences(text: str) -> list[str]:
    """The sentences of a text: they end with a newline, or with . ! or ? and a space.

    Examples:
        >>> sentences("A ship. It sails on 1.5 seas! Home")
        ['A ship.', 'It sails on 1.5 seas!', 'Home']
    """
    return [part.strip() for part in SENTENCE_ENDS.split(text) if part.strip()]


def lead(text: str, count: int = 3, most: int = 4000) -> str:
    """The first sentences of a document, which are hard to beat as its summary of the news.

    Args:
        text: Of the document.
        count: Sentences.
        most: Characters that are looked at: a document may have no end of a sentence.
    """
    return "\n".join(sentences(text[:most])[:count])


def rouge(written: str, reference: str) -> dict[str, float]:
    """F1 of words, of pairs of words, and of the longest common subsequences; 0 to 1.

    For `rougeLsum`, both are divided into sentences. rouge_score knows the letters a to z; where
    more than a tenth of the letters of the reference are others, words are those of any script,
    and are not stemmed.

    Examples:
        >>> rouge("the cats sat", "the cat sits")["rouge1"]  # the stemmer leaves cat of cats
        0.6666666666666666
    """
    letters = [letter for letter in reference if letter.isalpha()]
    foreign = sum(not letter.isascii() for letter in letters)
    found = _scorer(foreign * 10 <= len(letters)).score(
        "\n".join(sentences(reference)), "\n".join(sentences(written))
    )
    return {name: float(found[name].fmeasure) for name in KINDS}
