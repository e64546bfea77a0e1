"""Which tokens a masked language model is to predict, and what it sees in their place."""

from __future__ import annotations

import numpy as np

IGNORED = -100
HIDDEN, REPLACED = 0.8, 0.1
"""Of the tokens to predict: the share that the mask hides, and that another token replaces."""


def masked(
    ids: np.ndarray,
    begins: np.ndarray,
    special: np.ndarray,
    ordinary: np.ndarray,
    mask: int,
    rate: float,
    draw: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """What the model sees, and what it is to predict; both [tokens].

    Words are drawn, each with the same chance, and at least one; of their tokens 80% become the
    mask, 10% another token, and 10% stay (Devlin et al. 2018).

    Args:
        ids: The tokens, [tokens].
        begins: Does a token begin a word? bool [tokens]; all of them where tokens are drawn.
        special: Ids that are never drawn.
        ordinary: Ids to replace a token with.
        mask: The id that hides a token.
        rate: The chance of a word.
        draw: All that decides the result, besides.

    Examples:
        >>> ids = np.array([2, 7, 8, 9, 3])
        >>> every = np.ones(5, dtype=bool)
        >>> draw = np.random.default_rng(0)
        >>> masked(ids, every, np.array([2, 3]), np.array([7, 8, 9]), 4, 0.3, draw)
        (array([2, 7, 8, 4, 3]), array([-100, -100,    8,    9, -100]))
    """
    word = np.cumsum(begins)
    free = ~np.isin(ids, special)
    words = np.unique(word[free])
    if len(words) == 0:
        return ids, np.full_like(ids, IGNORED)
    chosen = words[draw.random(len(words)) < rate]
    if len(chosen) == 0:
        chosen = draw.choice(words, 1)
    predicted = free & np.isin(word, chosen)
    fate = draw.random(len(ids))
    others = draw.choice(ordinary, len(ids))
    seen = np.where(predicted & (fate < HIDDEN), mask, ids)
    seen = np.where(predicted & (fate >= 1 - REPLACED), others, seen)
    return seen, np.where(predicted, ids, IGNORED)
