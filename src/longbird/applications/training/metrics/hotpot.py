"""Answers, supporting facts and both at once, as the official script of HotpotQA defines them."""

from __future__ import annotations

from collections.abc import Iterable

from longbird.applications.training.metrics.squad import normalized, overlap

Fact = tuple[str, int]
"""The title of a paragraph and the index of a sentence in it."""
WHOLE = ("yes", "no", "noanswer")
"""Answers that are right or wrong, and never nearly right."""


def score(
    given: str, right: str, facts: Iterable[Fact], support: Iterable[Fact]
) -> dict[str, float]:
    """The scores of one question.

    Args:
        given: The answer.
        right: The right one.
        facts: The sentences that were said to support it.
        support: Those that do.
    """
    said, wanted = normalized(given), normalized(right)
    exact = float(said == wanted)
    f1, precision, recall = overlap(given, right)
    if said != wanted and (said in WHOLE or wanted in WHOLE):
        f1 = precision = recall = 0.0
    found, true = set(facts), set(support)
    sp_precision = len(found & true) / len(found) if found else 0.0
    sp_recall = len(found & true) / len(true) if true else 0.0
    sp_exact = float(found == true)
    joint_precision, joint_recall = precision * sp_precision, recall * sp_recall
    return {
        "exact_match": exact,
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "sp_em": sp_exact,
        "sp_f1": _mean(sp_precision, sp_recall),
        "sp_precision": sp_precision,
        "sp_recall": sp_recall,
        "joint_em": exact * sp_exact,
        "joint_f1": _mean(joint_precision, joint_recall),
        "joint_precision": joint_precision,
        "joint_recall": joint_recall,
    }


def _mean(precision: float, recall: float) -> float:
    """The harmonic mean."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
