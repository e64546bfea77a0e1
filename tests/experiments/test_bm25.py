"""BM25 compared with the library bm25s."""

from __future__ import annotations

import random

import bm25s
import numpy as np

from experiments.quality.bm25 import K1, B, Bm25, words


def test_scores_are_those_of_bm25s() -> None:
    drawn = random.Random(0)
    some = [f"w{number}" for number in range(50)]
    texts = [" ".join(drawn.choices(some, k=drawn.randrange(1, 40))) for _ in range(30)]
    queries = [" ".join(drawn.choices([*some, "unknown"], k=5)) for _ in range(20)]
    theirs = bm25s.BM25(method="lucene", k1=K1, b=B)
    theirs.index([words(text) for text in texts], show_progress=False)
    expected = [
        sum((theirs.get_scores([word]) for word in words(query) if word in some), np.zeros(30))
        for query in queries
    ]
    np.testing.assert_allclose(Bm25(texts).scores(queries), np.stack(expected), rtol=1e-5)


def test_texts_and_questions_without_words() -> None:
    scores = Bm25(["", "a ship", "..."]).scores(["", "ship", "?!"])
    assert scores[[0, 2]].sum() == 0
    assert scores[1].argmax() == 1
