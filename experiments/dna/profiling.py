"""Classification of bins: words for each target, and the motif of the ChIP experiment.

Columns are `score TARGET` and `true TARGET` for each target, and `group`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.dna import motif
from experiments.dna.linear import Words
from experiments.dna.organisms import bacterium
from experiments.dna.profile import TARGETS, Bins, profile
from experiments.dna.promoters import BLOCK, SEQUENCE
from experiments.dna.splits import TEST, TRAIN, VALIDATION
from experiments.framework.experiment import Attempt, Contestant, Outcome

CONTEXT = 600
REACHES = (0, 50, 100, 200, 300)
"""Bases on each side of a bin in which the motif is looked for; which is chosen."""


def baselines(*, held_out: int = 2) -> list[Contestant]:
    """Return the baselines."""
    settings = {"context": CONTEXT, "held_out": held_out}
    return [
        Contestant(
            "5-mers of the bin",
            "logistic regression on how often each word of 5 bases is in the bin and beside it, "
            f"{CONTEXT} bases together, for each target",
            partial(_profile_words, held_out),
            settings,
            seeded=False,
        ),
        Contestant(
            f"{motif.CHIP} search",
            f"how much of {motif.CHIP} is found in the bin or within some bases of it, on either "
            "strand; within how many is chosen on what is not held out",
            partial(_profile_motif, held_out),
            {**settings, "motif": motif.CHIP, "reaches": REACHES},
            seeded=False,
        ),
    ]


def profile_outcome(scores: np.ndarray, bins: Bins) -> Outcome:
    """Compare the scores of all bins with the labels of the held-out bins.

    Args:
        scores: [bins, targets]
        bins: Bins with labels.
    """
    held = bins.side == TEST
    columns = {f"score {name}": scores[held, i].tolist() for i, name in enumerate(TARGETS)}
    columns |= {f"true {name}": bins.labels[held, i].tolist() for i, name in enumerate(TARGETS)}
    columns["group"] = (np.flatnonzero(held) * bins.size // BLOCK).tolist()
    return Outcome(columns)


def bin_windows(sequence: np.ndarray, size: int, context: int) -> np.ndarray:
    """Return the window around each bin of a circle, [bins, context]."""
    begins = np.arange(len(sequence) // size) * size - (context - size) // 2
    return sequence[(begins[:, None] + np.arange(context)) % len(sequence)]


def _profile_words(held_out: int, attempt: Attempt) -> Outcome:
    bins = profile(context=CONTEXT, held_out=held_out)
    sequence = bacterium("E. coli").sequences[SEQUENCE]
    windows = bin_windows(sequence, bins.size, CONTEXT)
    learned = (bins.side == TRAIN) | (bins.side == VALIDATION)
    groups = np.arange(len(windows)) * bins.size // BLOCK
    scores = np.zeros(bins.labels.shape)
    for number, name in enumerate(TARGETS):
        attempt.say(name)
        scorer = Words(5).fit(windows[learned], bins.labels[learned, number], groups[learned])
        scores[bins.side == TEST, number] = scorer.scores(windows[bins.side == TEST])
    return profile_outcome(scores, bins)


def _profile_motif(held_out: int, attempt: Attempt) -> Outcome:
    from sklearn.metrics import average_precision_score

    bins = profile(context=CONTEXT, held_out=held_out)
    sequence = bacterium("E. coli").sequences[SEQUENCE]
    known = (bins.side == TRAIN) | (bins.side == VALIDATION)
    peaks = bins.labels[known, TARGETS.index("ChIP peak")]
    every = {reach: motif.bin_scores(sequence, motif.CHIP, bins.size, reach) for reach in REACHES}
    tried = {
        reach: float(average_precision_score(peaks, best[known])) for reach, best in every.items()
    }
    chosen = max(tried, key=tried.__getitem__)
    attempt.say(f"{chosen} bases on each side")
    outcome = profile_outcome(np.repeat(every[chosen][:, None], len(TARGETS), 1), bins)
    return Outcome(outcome.documents, facts={"reach": chosen, "AP of ChIP by reach": tried})
