"""The recipe that measures readers: its scores against the official scripts, and its sets."""

from __future__ import annotations

import json
import re
import runpy
import string
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RECIPE = Path(__file__).parents[2] / "recipes" / "reader" / "evaluate.py"


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return runpy.run_path(str(RECIPE))


# ---- the official scripts in short: evaluate-v1.1.py, evaluate-v2.0.py, hotpot_evaluate_v1.py


def normalize_answer(s: str) -> str:
    s = "".join(ch for ch in s.lower() if ch not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", s).split())


def f1_score(prediction: str, ground_truth: str) -> float:
    said, right = normalize_answer(prediction).split(), normalize_answer(ground_truth).split()
    same = sum((Counter(said) & Counter(right)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(said), same / len(right)
    return 2 * precision * recall / (precision + recall)


def official_squad1(given: str, answers: list[str]) -> tuple[float, float]:
    exact = max(normalize_answer(given) == normalize_answer(each) for each in answers)
    return float(exact), max(f1_score(given, each) for each in answers)


def official_squad2(given: str, answers: list[str]) -> tuple[float, float]:
    golds = [each for each in answers if normalize_answer(each)] or [""]
    exact = max(int(normalize_answer(given) == normalize_answer(gold)) for gold in golds)

    def f1(gold: str) -> float:
        said, right = normalize_answer(given).split(), normalize_answer(gold).split()
        if not said or not right:
            return float(said == right)
        return f1_score(given, gold)

    return float(exact), max(map(f1, golds))


def official_hotpot(given: str, answers: list[str]) -> tuple[float, float]:
    (right,) = answers
    said, wanted = normalize_answer(given), normalize_answer(right)
    whole = ("yes", "no", "noanswer")
    if said != wanted and (said in whole or wanted in whole):
        return 0.0, 0.0
    return float(said == wanted), f1_score(given, right)


PAIRS = [
    ("the Denver Broncos", ["Denver Broncos", "The Broncos"]),
    ("Broncos, of Denver", ["Denver Broncos"]),
    ("in 1871", ["1871", "the year 1871"]),
    ("", ["1871"]),
    ("The", ["a"]),
    ("yes", ["yes"]),
    ("yes", ["yes, it was"]),
    ("no", ["yes"]),
    ("no one", ["no"]),
    ("U.S.A.", ["USA"]),
    ("nine nine", ["nine"]),
]


@pytest.mark.parametrize(("given", "answers"), PAIRS)
def test_scores_are_those_of_the_official_scripts(
    recipe: dict[str, Any], given: str, answers: list[str]
) -> None:
    score = recipe["score"]
    for name in ("squad", "articles", "reddit"):
        assert score(name, given, answers) == pytest.approx(official_squad1(given, answers))
    assert score("squad2", given, answers) == pytest.approx(official_squad2(given, answers))
    assert score("hotpot", given, answers[:1]) == pytest.approx(
        official_hotpot(given, answers[:1])
    )


@pytest.mark.parametrize(("given", "right"), [("", 1.0), ("the", 1.0), ("1871", 0.0)])
def test_silence_is_right_in_squad2_without_an_answer(
    recipe: dict[str, Any], given: str, right: float
) -> None:
    assert recipe["score"]("squad2", given, []) == official_squad2(given, []) == (right, right)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    def asked(question: str, *answers: str) -> dict[str, Any]:
        return {"question": question, "answers": [{"text": each} for each in answers]}

    paragraphs = [
        {"context": "Ann lives in Rome. ", "qas": [asked("Where is Ann?", "Rome", "in Rome")]},
        {"context": "Bob left.", "qas": [asked("Who left?", "Bob"), asked("When did he leave?")]},
    ]
    content = {"data": [{"title": "People", "paragraphs": paragraphs}]}
    (tmp_path / "squad-dev.json").write_text(json.dumps(content), "utf-8")
    (tmp_path / "squad2-dev.json").write_text(json.dumps(content["data"]), "utf-8")
    return tmp_path


def test_paragraphs_and_articles_have_the_same_questions(
    recipe: dict[str, Any], sources: Path
) -> None:
    paragraphs = recipe["cases_of"]("squad", sources)
    articles = recipe["cases_of"]("articles", sources)
    assert paragraphs == recipe["cases_of"]("squad2", sources)
    assert [each.question for each in paragraphs] == [each.question for each in articles]
    assert paragraphs[0].text == "Ann lives in Rome. "
    assert paragraphs[0].answers == ["Rome", "in Rome"]
    assert {each.text for each in articles} == {"Ann lives in Rome.\n\nBob left."}


def test_answerable_and_unanswerable_questions_are_also_measured_alone(
    recipe: dict[str, Any], sources: Path
) -> None:
    found = recipe["measure"]("squad2", recipe["cases_of"]("squad2", sources), ["Rome", "", ""])
    assert found["questions"] == 3
    assert found["F1"][0] == pytest.approx(66.67)
    assert found["F1 of answerable"][0] == 50
    assert found["F1 of unanswerable"] == [100, 100, 100]


def test_intervals_resample_documents(recipe: dict[str, Any]) -> None:
    values = np.tile([0.0, 100.0], 200)
    alone = recipe["interval"](values, [str(number) for number in range(400)])
    together = recipe["interval"](values, [str(number % 20) for number in range(400)])
    assert alone[0] < 50 < alone[1]
    assert 8 < alone[1] - alone[0] < 12  # 4 standard errors of 2.5
    assert together[1] - together[0] > 2 * (alone[1] - alone[0])  # twenty documents alone
