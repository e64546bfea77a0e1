"""A whole genome scanned for starts: the classifiers at every position, on both strands.

Columns are `score`, `hit`, `found` and `group`: `average_precision_of("score", "hit",
found="found")` is the metric, and precision at a recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import numpy as np

from experiments.dna import promoters
from experiments.dna.bases import reverse_complement
from experiments.dna.classifying import Kind, Set
from experiments.dna.linear import Scorer, scan
from experiments.dna.organisms import bacterium
from experiments.dna.peaks import TOLERANCE, match, peaks, shift_of_odds
from experiments.dna.splits import TEST, by_fifth, stretches
from experiments.framework.experiment import Attempt, Contestant, Outcome

HELD_OUT = 2
"""The fifth that is scanned."""


def contestants(
    given: Set, kinds: Sequence[Kind], held_out: int = HELD_OUT, most: int | None = None
) -> list[Contestant]:
    """Return classifiers at the positions of the held-out fifth of E. coli, on both strands.

    Args:
        given: Training set.
        kinds: Kinds of classifiers.
        held_out: Number of the held-out fifth.
        most: Maximum number of bases to scan.
    """
    fixed = {"held_out": held_out, "tolerance": TOLERANCE, **given.settings}
    if most is not None:
        fixed["most"] = most
    return [
        Contestant(
            kind.name,
            f"{kind.about}; learned with {given.name} negatives",
            partial(_scan, given, kind, stretch(held_out, most)),
            {
                **fixed,
                **kind.settings,
                **(asdict(given.budget) if kind.settings else {}),
            },
            kind.seeded,
        )
        for kind in kinds
    ]


def _scan(given: Set, kind: Kind, place: tuple[int, int], attempt: Attempt) -> Outcome:
    learned = given.load().learned
    scorer = kind.make(given, attempt).fit(learned.windows, learned.positive, learned.group)
    sequence = bacterium("E. coli").sequences[promoters.SEQUENCE]
    first, last = place
    attempt.say(f"scanning {last - first:,} bases on both strands")
    scores = scan_strands(scorer, sequence, first, last, promoters.BEFORE, promoters.AFTER)
    outcome = scanned(scores, first)
    there = len(promoters.starts(experimental=False)[0]) / (2 * len(sequence))
    shift = shift_of_odds(float(learned.positive.mean()), there)
    cost = {"windows": float(len(learned.positive)), **getattr(scorer, "cost", {})}
    return Outcome(outcome.documents, cost, {**outcome.facts, "shift of log-odds": shift})


def stretch(held_out: int, most: int | None = None) -> tuple[int, int]:
    """Return the first position of the held-out fifth of E. coli and the end of the scan."""
    length = len(bacterium("E. coli").sequences[promoters.SEQUENCE])
    sides = by_fifth(length, held_out, promoters.BEFORE + promoters.AFTER, circular=True)
    [(first, last)] = stretches(sides == TEST)
    return first, last if most is None else min(last, first + most)


def scan_strands(
    scorer: Scorer, sequence: np.ndarray, first: int, last: int, before: int, after: int
) -> np.ndarray:
    """Return the score of the window at each position of a stretch, [2, positions].

    Args:
        scorer: A trained scorer.
        sequence: The circle.
        first: First position.
        last: Position after the last one.
        before: Number of bases of a window before its position, in the direction of its strand.
        after: Number of bases from the position on.
    """
    plus = np.arange(first - before, last + after - 1) % len(sequence)
    minus = np.arange(first - after + 1, last + before) % len(sequence)
    width = before + after
    backward = scan(scorer, reverse_complement(sequence[minus]), width)
    return np.stack([scan(scorer, sequence[plus], width), backward[::-1]])


def scanned(scores: np.ndarray, first: int, most: int = 20) -> Outcome:
    """Compare peaks with all 3,544 starts of E. coli, experimental or not, in the stretch.

    Args:
        scores: Scores of each strand and position of a stretch, [2, positions].
        first: First of these positions.
        most: Number of highest peaks that are kept for each start.

    Returns:
        A row for each peak, and one for each start that none of them found (hit 1, found 0).
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    at, minus = promoters.starts(experimental=False)
    columns: dict[str, list[float]] = {"score": [], "hit": [], "found": [], "group": []}
    truth = np.zeros(scores.shape, bool)
    for strand, along in enumerate(scores):
        inside = (first <= at) & (at < first + len(along)) & (minus == bool(strand))
        here = at[inside] - first
        truth[strand, here] = True
        place = peaks(along)
        place = place[np.argsort(-along[place], kind="stable")][: most * len(here)]
        calls = match(place, along[place], here)
        missed = np.delete(here, calls.start[calls.start >= 0])
        columns["score"] += [*calls.score.tolist(), *(float(along.min()) for _ in missed)]
        columns["hit"] += [*(calls.start >= 0).tolist(), *(1 for _ in missed)]
        columns["found"] += [*(1 for _ in calls.at), *(0 for _ in missed)]
        blocks = np.concatenate([calls.at, missed]) // promoters.BLOCK
        columns["group"] += blocks.tolist()  # both strands of a block stay together
    facts = {
        "starts": int(truth.sum()),
        "strand positions": truth.size,
        "exact base AUROC": float(roc_auc_score(truth.ravel(), scores.ravel())),
        "exact base AP": float(average_precision_score(truth.ravel(), scores.ravel())),
    }
    return Outcome(columns, facts=facts)
