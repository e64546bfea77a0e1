"""A whole genome scanned for starts: the classifiers at every place, on both strands.

Columns are `score`, `hit`, `found` and `group`: `average_precision_of("score", "hit",
found="found")` is the metric, and precision at a recall.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from longbird.bench.dna import promoters
from longbird.bench.dna.bases import reverse_complement
from longbird.bench.dna.classifying import scorers
from longbird.bench.dna.examples import Examples
from longbird.bench.dna.linear import Scorer, scan
from longbird.bench.dna.organisms import bacterium
from longbird.bench.dna.peaks import TOLERANCE, match, peaks, shift_of_odds
from longbird.bench.dna.splits import TEST, by_fifth
from longbird.bench.quality.experiment import Attempt, Contestant, Outcome


def for_scan(negatives: str, *, held_out: int = 2) -> list[Contestant]:
    """The same classifiers at all places of the held-out fifth of E. coli, on both strands."""
    load = partial(promoters.examples, negatives, held_out=held_out)
    return [
        Contestant(
            name,
            f"{about}; learned with {negatives} negatives",
            partial(_scan, load, make, held_out),
            {"negatives": negatives, "held_out": held_out, "tolerance": TOLERANCE},
            seeded,
        )
        for name, about, make, seeded in scorers()
    ]


def _scan(
    load: Callable[[], Examples], make: Callable[[int], Scorer], held_out: int, attempt: Attempt
) -> Outcome:
    learned = load().learned
    scorer = make(attempt.seed).fit(learned.windows, learned.positive, learned.group)
    scores = scan_genome(scorer)
    outcome = scanned(scores, held_out)
    there = len(promoters.starts(experimental=False)[0]) / scores.size
    shift = shift_of_odds(float(learned.positive.mean()), there)
    return Outcome(outcome.documents, facts={**outcome.facts, "shift of log-odds": shift})


def scan_genome(scorer: Scorer) -> np.ndarray:
    """The score of -60..+20 around each base of E. coli on each strand, [2, bases]."""
    before, after = promoters.BEFORE, promoters.AFTER
    sequence = bacterium("E. coli").sequences[promoters.SEQUENCE]
    return scan_strands(scorer, sequence, before, after)


def scan_strands(scorer: Scorer, sequence: np.ndarray, before: int, after: int) -> np.ndarray:
    """The score of the window around each base of a circle on each strand, [2, bases]."""
    found: list[np.ndarray] = []
    for strand in (sequence, reverse_complement(sequence)):
        round_ = np.concatenate([strand[len(strand) - before :], strand, strand[: after - 1]])
        found.append(scan(scorer, round_, before + after))
    return np.stack([found[0], found[1][::-1]])


def scanned(scores: np.ndarray, held_out: int, most: int = 20) -> Outcome:
    """Peaks of the held-out fifth held against all 3,544 starts, experimental or not.

    Args:
        scores: For each strand and base of E. coli, [2, bases].
        held_out: Which fifth.
        most: Peaks that are kept for each start, the highest: what is below them is no call.

    Returns:
        A row for each peak, and one for each start that none of them found (hit 1, found 0).
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    sides = by_fifth(scores.shape[1], held_out, promoters.BEFORE + promoters.AFTER, circular=True)
    inside = np.flatnonzero(sides == TEST)
    first, last = int(inside[0]), int(inside[-1]) + 1
    at, minus = promoters.starts(experimental=False)
    columns: dict[str, list[float]] = {"score": [], "hit": [], "found": [], "group": []}
    truth = np.zeros((2, last - first), bool)
    for strand, along in enumerate(scores[:, first:last]):
        here = at[(minus == bool(strand)) & (first <= at) & (at < last)] - first
        truth[strand, here] = True
        place = peaks(along)
        place = place[np.argsort(-along[place], kind="stable")][: most * len(here)]
        calls = match(place, along[place], here)
        missed = np.delete(here, calls.start[calls.start >= 0])
        columns["score"] += [*calls.score.tolist(), *(float(along.min()) for _ in missed)]
        columns["hit"] += [*(calls.start >= 0).tolist(), *(1 for _ in missed)]
        columns["found"] += [*(1 for _ in calls.at), *(0 for _ in missed)]
        group = np.concatenate([calls.at, missed]) // promoters.BLOCK
        columns["group"] += group.tolist()  # both strands of a block stay together
    exact = truth.ravel(), scores[:, first:last].ravel()
    facts = {
        "starts": int(truth.sum()),
        "strand positions": truth.size,
        "exact base AUROC": float(roc_auc_score(*exact)),
        "exact base AP": float(average_precision_score(*exact)),
    }
    return Outcome(columns, facts=facts)
