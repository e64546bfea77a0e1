"""Answer metrics against the official scripts' definitions, written again step by step."""

from __future__ import annotations

import itertools
import re
import string
from collections import Counter
from typing import Any

import numpy as np
import pytest

from longbird.applications.training.metrics import hotpot, squad

TRICKY = [
    "", "the", "a", "The Beatles", "beatles", "Beatles, the", "U.S.A.", "usa", "theatre",
    "the atre", "yes", "Yes.", "no", "noanswer", "yes no", "1,000", "1000", "a b a", "b a", "it's",
    "its", "straße", "naïve  café", " an  apple a day ", "day", "?!", "—", "-",
]  # fmt: skip


def words(text: str) -> list[str]:
    """What the scripts do one after the other: lower, punctuation, articles, space."""
    lowered = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", lowered).split()


def f1_of(said: list[str], gold: list[str]) -> tuple[float, float, float]:
    left, same = Counter(gold), 0
    for word in said:
        if left[word] > 0:
            left[word] -= 1
            same += 1
    if same == 0:
        return 0.0, 0.0, 0.0
    precision, recall = same / len(said), same / len(gold)
    return 2 * precision * recall / (precision + recall), precision, recall


@pytest.mark.parametrize("second", [False, True])
def test_squad(second: bool) -> None:
    golds = [[x] for x in TRICKY] + [list(x) for x in itertools.combinations(TRICKY[:12], 2)]
    golds += [[]] if second else []
    for said, right in itertools.product(TRICKY, golds):
        if second:  # make_qid_to_has_ans, get_raw_scores and compute_f1 of evaluate-v2.0.py
            kept = [x for x in right if words(x)] or [""]
            exact = max(int(words(said) == words(x)) for x in kept)
            f1 = max(
                float(words(said) == words(x))
                if not words(said) or not words(x)
                else f1_of(words(said), words(x))[0]
                for x in kept
            )
        else:  # metric_max_over_ground_truths of evaluate-v1.1.py
            exact = max(int(" ".join(words(said)) == " ".join(words(x))) for x in right)
            f1 = max(f1_of(words(said), words(x))[0] for x in right)
        assert squad.score(said, right, second) == (exact, pytest.approx(f1)), (said, right)


def test_squad_by_hand() -> None:
    assert squad.score("the cat sat", ["a cat, sat.", "dog"]) == (1.0, 1.0)
    assert squad.score("cat", ["the black cat"]) == (0.0, pytest.approx(2 / 3))
    assert squad.score("", []) == (1.0, 1.0)
    assert squad.score("cat", []) == (0.0, 0.0)
    assert squad.score("", ["cat"]) == (0.0, 0.0)
    assert squad.score("", ["the"], second=False) == (1.0, 0.0)  # so it is in the first script
    assert squad.score("", ["the"], second=True) == (1.0, 1.0)


FACTS = [
    [],
    [("A", 0)],
    [("A", 0), ("B", 1)],
    [("A", 0), ("A", 0)],
    [("A", 1), ("B", 1), ("C", 0)],
]


def official_hotpot(said: str, gold: str, found: list[Any], true: list[Any]) -> dict[str, float]:
    """update_answer, update_sp and the joint part of hotpot_evaluate_v1.py."""
    exact = float(" ".join(words(said)) == " ".join(words(gold)))
    f1, precision, recall = f1_of(words(said), words(gold))
    for one, other in ((said, gold), (gold, said)):
        name = " ".join(words(one))
        if name in ("yes", "no", "noanswer") and name != " ".join(words(other)):
            f1, precision, recall = 0.0, 0.0, 0.0
    tp = sum(each in true for each in {*found})
    fp = sum(each not in true for each in {*found})
    fn = sum(each not in found for each in {*true})
    sp_precision = tp / (tp + fp) if tp + fp > 0 else 0.0
    sp_recall = tp / (tp + fn) if tp + fn > 0 else 0.0
    total = sp_precision + sp_recall
    sp_f1 = 2 * sp_precision * sp_recall / total if total > 0 else 0.0
    sp_em = 1.0 if fp + fn == 0 else 0.0
    p, r = precision * sp_precision, recall * sp_recall
    return {
        "exact_match": exact, "f1": f1, "precision": precision, "recall": recall,
        "sp_em": sp_em, "sp_f1": sp_f1, "sp_precision": sp_precision, "sp_recall": sp_recall,
        "joint_em": exact * sp_em, "joint_f1": 2 * p * r / (p + r) if p + r > 0 else 0.0,
        "joint_precision": p, "joint_recall": r,
    }  # fmt: skip


@pytest.mark.slow  # brute force
def test_hotpot() -> None:
    for said, gold in itertools.product(TRICKY, TRICKY):
        for found, true in itertools.product(FACTS, FACTS):
            want = official_hotpot(said, gold, found, true)
            got = hotpot.score(said, gold, found, true)
            assert got == {name: pytest.approx(x) for name, x in want.items()}, (said, gold)


def test_what_the_official_scripts_say_of_the_same_answers() -> None:
    """Means of all cases above, as the scripts themselves computed them.

    hotpot_evaluate_v1.py is that of github.com/hotpotqa/hotpot (3635853); evaluate-v1.1.py and
    evaluate-v2.0.py are those in metrics/squad and metrics/squad_v2 of huggingface/evaluate.
    """
    cases = itertools.product(TRICKY, TRICKY, FACTS, FACTS)
    scores = [hotpot.score(*case) for case in cases]
    assert {name: np.mean([each[name] for each in scores]) for name in scores[0]} == {
        "exact_match": pytest.approx(0.08163265306122448),
        "f1": pytest.approx(0.05144557823129242),
        "precision": pytest.approx(0.051658163265306124),
        "recall": pytest.approx(0.051658163265306124),
        "sp_em": pytest.approx(0.28),
        "sp_f1": pytest.approx(0.3786666666666728),
        "sp_precision": pytest.approx(0.3933333333333289),
        "sp_recall": pytest.approx(0.3933333333333289),
        "joint_em": pytest.approx(0.022857142857142857),
        "joint_f1": pytest.approx(0.019483236151603512),
        "joint_precision": pytest.approx(0.0203188775510204),
        "joint_recall": pytest.approx(0.0203188775510204),
    }
    golds = [[x] for x in TRICKY] + [list(x) for x in itertools.combinations(TRICKY[:12], 2)]
    first = [squad.score(said, right, False) for said, right in itertools.product(TRICKY, golds)]
    assert 100 * np.mean(first, 0) == pytest.approx([15.577507598784194, 9.663120567375877])
    second = [squad.score(*case) for case in itertools.product(TRICKY, [*golds, []])]
    assert 100 * np.mean(second, 0) == pytest.approx([10.526315789473685, 11.253132832080205])


def test_hotpot_by_hand() -> None:
    assert hotpot.score("yes sir", "yes", [], [("A", 0)])["f1"] == 0.0
    found = hotpot.score("red car", "car", [("A", 0), ("A", 1)], [("A", 0)])
    assert found["joint_precision"] == 0.25
    assert found["joint_recall"] == 1.0
    assert found["joint_f1"] == pytest.approx(0.4)
    assert found["joint_em"] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_the_best_there_is(seed: int) -> None:
    random = np.random.default_rng(seed)
    margins = random.integers(-4, 5, 12) + random.choice([0.0, 3.0, -7.0])  # with equals
    silent = random.integers(0, 2, 12).astype(float)
    answered = np.where(silent > 0, 0.0, random.random(12))
    chosen = squad.best_threshold(margins, answered, silent)

    def reached(threshold: float) -> float:
        return float(np.where(margins > threshold, silent, answered).sum())

    everywhere = [reached(x) for x in np.arange(-20, 20, 0.5)]
    assert reached(chosen) == pytest.approx(max(everywhere))
    if reached(0.0) == pytest.approx(max(everywhere)) and 0.0 not in margins:
        assert chosen == 0.0
