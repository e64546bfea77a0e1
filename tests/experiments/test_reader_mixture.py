"""The recipe that mixes question sets for the reader: answers, paragraphs, what is left out."""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

RECIPE = Path(__file__).parents[2] / "recipes" / "reader"
STORY = "Ann met Bob in 1871. Ann was born in 1871.  Bob left. Ann stayed. Ann slept."


@pytest.fixture(scope="module")
def rows() -> Any:
    return _module("question_rows")


@pytest.fixture(scope="module")
def mixture() -> Any:
    return _module("mixture")


def _module(name: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RECIPE))
        return importlib.import_module(name)


def test_the_sentence_of_an_answer_supports_it(rows: Any) -> None:
    found = rows.row("1", "When was Ann born?", STORY, "1871", at=STORY.rindex("1871"))
    ((title, parts),) = found["context"]
    assert "".join(parts) == STORY
    assert found["supporting_facts"] == [[title, 1]]
    assert "1871" in parts[1]


def test_sentences_with_the_answer_support_it_if_they_are_few(rows: Any) -> None:
    found = rows.row("1", "When?", STORY, "1871")
    assert [index for _, index in found["supporting_facts"]] == [0, 1]
    assert rows.row("1", "Who?", STORY, "Ann") is None  # in four sentences
    assert rows.row("1", "Who?", STORY, "Carl") is None
    assert rows.row("1", "Who met Carl?", STORY, "")["supporting_facts"] == []


def test_long_paragraphs_lose_sentences_far_from_the_answer(rows: Any) -> None:
    text = " ".join(f"Sentence {number} has nothing to say." for number in range(200))
    found = rows.row("1", "Which?", text, "150")
    ((_, parts),) = found["context"]
    ((_, index),) = found["supporting_facts"]
    assert "150" in parts[index]
    assert "".join(parts) in text
    assert len("".join(parts).split()) < rows.MOST_WORDS + 20


def test_quac_gives_questions_that_can_be_understood_alone(rows: Any, tmp_path: Path) -> None:
    asked = ["Where did Ann meet Bob?", "Did she like it?", "Which ship did Bob take?"]
    answers = ["in Rome,", "yes", "CANNOTANSWER"]
    dialogue = {
        "passage": "Ann met Bob in Rome. CANNOTANSWER",
        "question": "\n".join(f"question{i + 1}: {x}\n answer : ?" for i, x in enumerate(asked)),
        "answer": "\n".join(
            f"possible answers for question{i + 1}:\n{x}" for i, x in enumerate(answers)
        ),
    }
    (tmp_path / "quac.jsonl").write_text(json.dumps(dialogue), "utf-8")
    found = list(rows.quac(tmp_path / "quac.jsonl"))
    assert [(each["question"], each["answer"]) for each in found] == [
        (asked[0], "in Rome"),
        (asked[2], ""),
    ]
    assert found[0]["context"] == [["", ["Ann met Bob in Rome."]]]


def test_names_in_the_place_of_answers_are_put_back(rows: Any, tmp_path: Path) -> None:
    filler = "and it was seen by very many people in all of the larger towns " * 2
    each = {
        "input": f"\nQuestion: who wrote the play?\nContext: The play ( by Bob ) ran {filler}.",
        "target_scores": {"Bob": 1, "Ann Lee": 0},
    }
    (tmp_path / "natural.json").write_text(json.dumps({"examples": [each]}), "utf-8")
    (found,) = rows.natural(tmp_path / "natural.json")
    assert found["answer"] == "Ann Lee"
    assert found["context"][0][1][0].startswith("The play (by Ann Lee) ran")


def test_questions_get_paragraphs_that_do_not_answer_them(rows: Any, mixture: Any) -> None:
    made: list[dict[str, Any]] = []
    for article in range(6):
        for number in range(40):
            text = f"The ship of town{article} carried cargo{number} to harbour{number % 7}."
            question = f"What did the ship of town{article} carry to harbour{number % 7}?"
            found = rows.row(f"{article}-{number}", question, text, f"cargo{number}")
            made.append({**found, "article": f"town{article}"})
    by_id = {each["_id"]: each for each in made}
    silent = list(mixture.unanswerable(made, random.Random(0), 30, 20))
    assert len(silent) > 40
    moved = 0
    for each in silent:
        own = by_id[each["_id"].removesuffix("-none")]
        assert each["answer"] == ""
        assert own["answer"] not in mixture.text_of(each).rstrip(".").split()
        moved += each["article"] != own["article"]
    assert 10 < moved <= 20


def test_rows_that_share_words_with_a_test_are_found(
    rows: Any, mixture: Any, tmp_path: Path
) -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen"
    asked = {"question": "How far do they count in the test?"}
    data = [{"paragraphs": [{"context": text, "qas": [asked]}]}]
    (tmp_path / "squad-dev.json").write_text(json.dumps({"data": data}), "utf-8")
    reserved = mixture.Reserved(tmp_path, [])

    def overlaps(question: str, context: str) -> bool:
        return reserved.overlaps({"question": question, "context": [["", [context]]]})

    assert overlaps("What?", "Zero, ONE, two " + text[8:])
    assert not overlaps("What?", text[: text.index(" twelve")])
    assert overlaps("how far do they count in the test", "Nothing.")
