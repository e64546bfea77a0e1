"""BM25, the usual way to find texts by their words: a baseline for vectors.

The formula and the default parameters are those of Lucene. Words are runs of letters and digits
in lowercase, without stop words and without stemming.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import csr_array

K1, B = 1.5, 0.75


def words(text: str) -> list[str]:
    """Return the words of a text.

    Examples:
        >>> words("It's the 2nd, isn't it?")
        ['it', 's', 'the', '2nd', 'isn', 't', 'it']
    """
    return re.findall(r"\w+", text.lower())


class Bm25:
    """An index of texts by their words.

    Examples:
        >>> Bm25(["a ship at sea", "a train"]).scores(["the ship"]).argmax(1)
        array([0])
    """

    def __init__(self, texts: Iterable[str]) -> None:
        counts = [Counter(words(text)) for text in texts]
        self.vocabulary = {
            word: number
            for number, word in enumerate(sorted({word for each in counts for word in each}))
        }
        rows = np.repeat(np.arange(len(counts)), [len(each) for each in counts])
        columns = np.array([self.vocabulary[word] for each in counts for word in each], dtype=int)
        times = np.array([x for each in counts for x in each.values()], dtype=float)
        lengths = np.array([sum(each.values()) for each in counts], dtype=float)
        having = np.bincount(columns, minlength=len(self.vocabulary))
        rarity = np.log(1 + (len(counts) - having + 0.5) / (having + 0.5))
        fair = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
        weights = rarity[columns] * times / (times + fair[rows])
        self.weights = csr_array((weights, (rows, columns)), (len(counts), len(self.vocabulary)))

    def scores(self, queries: Sequence[str]) -> np.ndarray:
        """Return the score of each text for each query, [queries, texts]."""
        counts = [
            Counter(self.vocabulary[word] for word in words(query) if word in self.vocabulary)
            for query in queries
        ]
        rows = np.repeat(np.arange(len(counts)), [len(each) for each in counts])
        columns = np.array([word for each in counts for word in each], dtype=int)
        times = np.array([x for each in counts for x in each.values()], dtype=float)
        asked = csr_array((times, (rows, columns)), (len(counts), len(self.vocabulary)))
        return (asked @ self.weights.T).toarray()
