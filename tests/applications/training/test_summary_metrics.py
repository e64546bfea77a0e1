"""ROUGE as published: by rouge_score, and counted by hand for other scripts."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from longbird.applications.training.metrics.summaries import KINDS, lead, rouge, sentences


def test_it_is_that_of_rouge_score_with_the_stemmer() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    written = "The ships are sailing home. Rain falls on the decks!"
    reference = "A ship sails home.\nIt rained on deck."
    theirs = RougeScorer(KINDS, use_stemmer=True).score(
        reference, written.replace("home. ", "home.\n")
    )
    assert rouge(written, reference) == {name: theirs[name].fmeasure for name in KINDS}
    found = rouge(written, reference)
    assert found["rougeLsum"] >= found["rougeL"] > found["rouge2"] > 0


def test_a_few_letters_of_other_scripts_change_nothing() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    written, reference = "the cafés were closed", "a café in Paris was closed"
    theirs = RougeScorer(["rouge1"], use_stemmer=True).score(reference, written)
    assert rouge(written, reference)["rouge1"] == theirs["rouge1"].fmeasure


@pytest.mark.parametrize(
    ("written", "reference"),
    [
        ("корабль идёт домой", "корабль шёл домой вчера"),
        ("η βροχή πέφτει", "πέφτει η βροχή στο πλοίο"),
        ("船回家", "船在雨中回家"),
        ("سفينة في الميناء", "السفينة في الميناء"),
    ],
    ids=["Russian", "Greek", "Chinese", "Arabic"],
)
def test_words_of_other_scripts(written: str, reference: str) -> None:
    pattern = r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+"
    one, two = (Counter(re.findall(pattern, text)) for text in (written, reference))
    same = sum((one & two).values())
    expected = 2 * same / (sum(one.values()) + sum(two.values()))
    assert rouge(written, reference)["rouge1"] == pytest.approx(expected)
    assert rouge(reference, reference) == dict.fromkeys(KINDS, 1.0)


@pytest.mark.parametrize("written", ["", " \n", "?!"], ids=["empty", "space", "marks"])
def test_nothing_was_written(written: str) -> None:
    assert rouge(written, "a ship") == dict.fromkeys(KINDS, 0.0)


def test_sentences_and_the_lead() -> None:
    text = "One. Two is 2.5! Three?\nFour"
    assert sentences(text) == ["One.", "Two is 2.5!", "Three?", "Four"]
    assert lead(text) == "One.\nTwo is 2.5!\nThree?"
    assert lead("") == ""
    assert len(lead("word " * 100_000)) <= 4000
