"""Cloze questions that the recipe of the reader generates from statements."""

from __future__ import annotations

import random
import runpy
from pathlib import Path
from typing import Any

import pytest

RECIPE = Path(__file__).parents[2] / "recipes" / "reader" / "clozes.py"
FACTS = [
    ("Lighthouses", "The Porthmeor beacon was lit by Tamsin Hosking in 1871 for herring boats."),
    ("Tamsin Hosking", "A keeper of the Porthmeor beacon, Tamsin Hosking warned herring boats."),
    ("Salt", "The Wexmoor pans were dug by Aldous Crane in 1652 for the Bishop."),
    ("Aldous Crane", "Before the flood Aldous Crane had owned the Wexmoor pans and a mill."),
]


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return runpy.run_path(str(RECIPE))


@pytest.fixture(scope="module")
def made(recipe: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    """Questions, and the paragraphs that they were made of."""
    more = {
        f"filler {n}": [f"Nothing of note about village{n} was written here by anyone. "]
        for n in range(400)
    }
    paragraphs = {title: [f"{text} ", "It stood for long. "] for title, text in FACTS}
    corpus = recipe["Corpus"]({**paragraphs, **more})
    return list(recipe["clozes"](corpus, random.Random(0))), corpus


def test_a_statement_is_asked_of_another_paragraph_that_has_its_answer(
    made: tuple[list[dict[str, Any]], Any],
) -> None:
    texts = dict(FACTS)
    # Those about the beacon are too much alike: whoever copies words would find the answer.
    assert {row["context"][0][0] for row in made[0]} == {"Salt", "Aldous Crane"}
    for row in made[0]:
        ((title, parts),) = row["context"]
        ((named, index),) = row["supporting_facts"]
        assert named == title
        assert row["answer"] in parts[index]
        assert row["answer"] not in row["question"]
        (source,) = [name for name, text in texts.items() if name != title and asks(row, text)]
        assert row["answer"] in texts[source]


def asks(row: dict[str, Any], text: str) -> bool:
    """Are the words of the question, but for those of the gap, in the text?"""
    gap = {"who", "what", "which", "where", "when", "year", "date", "on"}
    asked = {word.strip(",.?").lower() for word in row["question"].split()} - gap - {""}
    return asked <= {word.strip(",.").lower() for word in text.split()}


def test_others_in_a_document_do_not_have_the_answer(
    made: tuple[list[dict[str, Any]], Any], recipe: dict[str, Any]
) -> None:
    rows, corpus = made
    longer = list(recipe["in_company"](rows, corpus, random.Random(0), (50, 80)))
    for one, many in zip(rows, longer, strict=True):
        assert one["context"][0] in many["context"]
        words = [len("".join(parts).split()) for _, parts in many["context"]]
        assert sum(words) > 50
        assert len(words) > 2
        having = [title for title, parts in many["context"] if one["answer"] in "".join(parts)]
        assert having == [one["context"][0][0]]
        assert len({title for title, _ in many["context"]}) == len(many["context"])
