"""Near-duplicate sequences, by the words of 21 bases that they share.

A word and its reverse complement count as one word. For long sequences a sample of words suffices:
those with the smallest hashes, the same in all sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.sparse import csr_array

from experiments.dna.bases import reverse_complement, words

WORD = 21


def sketch(sequence: np.ndarray, every: int = 1) -> np.ndarray:
    """Return the hashes of its words, one of `every` on average.

    Examples:
        >>> one = np.arange(30, dtype=np.uint8) * 7 % 5 % 4
        >>> np.array_equal(sketch(one), sketch(reverse_complement(one)))
        True
    """
    if len(sequence) < WORD:
        return np.zeros(0, np.int64)
    forward, backward = words(sequence, WORD), words(reverse_complement(sequence), WORD)[::-1]
    hashes = _mixed(np.minimum(forward, backward)[forward >= 0].view(np.uint64))
    kept = hashes[hashes <= np.uint64((2**64 - 1) // every)]
    return np.unique(kept).view(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """Apply the finaliser of SplitMix64, which spreads similar numbers over all."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def likeness(
    sequences: Iterable[np.ndarray], others: Iterable[np.ndarray], every: int = 1
) -> np.ndarray:
    """Return how much of each sequence is in the other sequence that shares most with it.

    The result is the share of words: 0 if nothing is shared, 1 for a part of another sequence.

    Args:
        sequences: For example, held-out sequences.
        others: For example, training sequences.
        every: Use one word in this many, on average.

    Examples:
        >>> from experiments.dna.bases import codes
        >>> one = "ACGTTGCATCGATTACGGATCCATGCAAGT"
        >>> likeness([codes(one), codes("G" * 30)], [codes(one[5:]), codes(one[:25])]).tolist()
        [0.5, 0.0]
    """
    mine, theirs = ([sketch(each, every) for each in x] for x in (sequences, others))
    known = np.unique(np.concatenate([*mine, np.zeros(0, np.int64)]))
    shared = (_table(mine, known) @ _table(theirs, known).T).max(axis=1).toarray().ravel()
    return shared / np.maximum(1, [len(each) for each in mine])


def _table(sketches: Sequence[np.ndarray], known: np.ndarray) -> csr_array:
    """Return which of the known words are in which sequence, [sequences, words] of 0 and 1."""
    rows = np.repeat(np.arange(len(sketches)), [len(each) for each in sketches])
    words = np.concatenate([*sketches, np.zeros(0, np.int64)])
    if len(known) == 0:
        return csr_array((len(sketches), 1))
    columns = np.minimum(np.searchsorted(known, words), len(known) - 1)
    kept = known[columns] == words
    ones = np.ones(int(kept.sum()), np.float32)
    return csr_array((ones, (rows[kept], columns[kept])), (len(sketches), len(known)))
