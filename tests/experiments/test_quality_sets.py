"""Experiments on public data: splits without leaks, ranks by hand, and a run of each."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from small_words import WORDS, write_tokenizer

from experiments.framework.experiment import Attempt
from experiments.framework.run import run
from experiments.quality import classification, documents, retrieval, summarisation
from experiments.sources import licences, manual, questions, reviews


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of 64 positions with its tokenizer."""
    folder = tmp_path_factory.mktemp("tiny")
    size = write_tokenizer(folder, ["good", "bad"])
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=size, hidden_size=16, num_attention_heads=2, num_hidden_layers=1,
        intermediate_size=32, max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def text(drawn: random.Random, most: int = 150) -> str:
    return " ".join(drawn.choices(WORDS, k=drawn.randint(20, most)))


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small files in the place of the real ones, with near-duplicates."""
    drawn = random.Random(0)

    def written(module: Any, name: str, rows: list[dict[str, Any]]) -> None:
        file = documents.write_rows(tmp_path / name, rows)
        monkeypatch.setattr(module, "path", lambda: file)

    def doubled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        copies = [{**row, "text": f"{row['text']} {text(drawn, 21)}"} for row in rows[::3]]
        return rows + copies

    labels = [f"category {number}" for number in range(2)]
    licence = [
        {"name": f"{drawn.choice(WORDS)}-{x}", "text": text(drawn), "label": labels[x % 2]}
        for x in range(90)
    ]
    written(licences, "licences.jsonl", [*licence, {**licence[0], "label": "rare"}])
    review = [
        {"name": str(x), "text": f"{text(drawn)} {'good' if x % 2 else 'bad'}",
         "label": reviews.LABELS[x % 2]}
        for x in range(150)
    ]  # fmt: skip
    written(reviews, "reviews.jsonl", doubled(review))
    pages = [
        {"page": f"p{x}.1", "package": "words", "names": [f"p{x // 2}"],
         "text": f"It has some words. {text(drawn).capitalize()}",
         "summary": f"what is new in 5.{x}.1" if x % 5 == 0 else text(drawn, 21),
         "description": "" if x % 7 == 0 else f"{text(drawn, 21)}. More."}
        for x in range(90)
    ]  # fmt: skip
    written(manual, "pages.jsonl", doubled(pages))
    asked = [
        {"title": f"t{a}", "paragraphs": [
            {"context": text(drawn, 40), "qas": [
                {"question": text(drawn, 21), "is_impossible": bool(q)} for q in range(2)
            ]} for _ in range(5)
        ]} for a in range(4)
    ]  # fmt: skip
    (tmp_path / "squad.json").write_text(json.dumps({"data": asked}))
    hotpot = [
        {"question": text(drawn, 21), "supporting_facts": [["3", 0], ["7", 1], ["7", 0]],
         "context": [[str(x), [text(drawn, 21), " last."]] for x in range(10)]}
        for _ in range(8)
    ]  # fmt: skip
    (tmp_path / "hotpotqa.json").write_text(json.dumps(hotpot))
    monkeypatch.setattr(questions, "squad", lambda: tmp_path / "squad.json")
    monkeypatch.setattr(questions, "hotpotqa", lambda: tmp_path / "hotpotqa.json")
    return tmp_path


@pytest.fixture
def scale(sources: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """One that is smaller than tiny, of a model that knows nothing."""
    parts = {name: classification.Part(40, 20, 2) for name in ("licences", "reviews")}
    short: Any = {"length": 128, "short": 64, "model": str(tiny)}
    several: Any = {**short, "tokens_per_batch": 256}
    for module, sizes in (
        (classification, classification.Sizes(parts, **several)),
        (
            summarisation,
            summarisation.Sizes(
                train=40, test=20, steps=2, lead_steps=2, opening_steps=2, **several
            ),
        ),
        (retrieval, retrieval.Sizes(articles=3, squad=12, hotpot=5, **short)),
    ):
        monkeypatch.setitem(module.SIZES, "smaller", sizes)
    for cached in (
        classification.documents,
        summarisation.pages,
        retrieval.squad,
        retrieval.hotpot,
    ):
        cached.cache_clear()
    return "smaller"


def five_words(given: str) -> set[tuple[str, ...]]:
    split = given.split()
    return {tuple(split[at : at + 5]) for at in range(len(split) - 4)}


def shared(one: str, other: str) -> float:
    """The share of runs of five words of the text that has fewer."""
    a, b = five_words(one), five_words(other)
    return len(a & b) / max(1, min(len(a), len(b)))


# ---- splits


@pytest.mark.parametrize(("name", "most"), [("licences", 0.8), ("reviews", 0.5)])
def test_no_document_has_a_twin_on_the_other_side(scale: str, name: str, most: float) -> None:
    found = classification.documents(name, scale)
    assert len(found.train) == 40
    assert len(found.test) == 20
    assert all(shared(a["text"], b["text"]) < most for a in found.train for b in found.test)
    if name == "licences":
        families = [{row["name"].split("-")[0] for row in x} for x in (found.train, found.test)]
        assert not families[0] & families[1]
        assert "rare" not in found.labels
    assert found.long.tolist() == [len(row["text"].split()) + 2 > 64 for row in found.test]
    assert found.long.any()
    assert not found.long.all()


def test_no_page_has_a_relative_on_the_other_side(scale: str) -> None:
    found = summarisation.pages(scale)
    assert len(found.train) == 40
    assert len(found.test) == 20
    assert all(shared(a["text"], b["text"]) < 0.6 for a in found.train for b in found.test)
    names = [{name for row in rows for name in row["names"]} for rows in (found.train, found.test)]
    assert not names[0] & names[1]
    news = [
        any(row["summary"].startswith("what is new") for row in rows)
        for rows in (found.train, found.test)
    ]
    assert news != [True, True]


# ---- parts of it


def test_chunks_are_all_of_a_document(tiny: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    words = WORDS[:40] * 5
    found = documents.chunks(" ".join(words), tokenizer, 64)
    assert all(len(tokenizer(each)["input_ids"]) == 64 for each in found)
    places = np.linspace(0, len(words) - 62, len(found)).astype(int)
    assert [each.split() for each in found] == [words[at : at + 62] for at in places]
    assert documents.chunks("", tokenizer, 64) == [""]


def test_ranks_of_paragraphs_and_documents() -> None:
    given = retrieval.Documents(
        [["a", "b"], ["c"]], ["?"] * 3, [0, 1, 0], [[1], [0], [0, 1]], False
    )
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    found = retrieval.ranks_of_paragraphs(given, scores)
    assert found["mean_reciprocal_rank"] == [1 / 2, 1 / 3, 1 / 2]  # those alike are in order
    assert found["recall_at_1"] == [0, 0, 0]
    best = retrieval.best_of_each(given, scores)
    assert best.tolist() == [[3, 1], [1, 1], [1, 2]]
    found = retrieval.ranks_of_documents(given, best)
    assert found["mean_reciprocal_rank"] == [1, 1 / 2, 1 / 2]
    assert retrieval.all_alike(given, best).tolist() == [[3, 3, 1], [1, 1, 1], [1, 1, 2]]
    alone = replace(given, own=True)
    assert retrieval.ranks_of_paragraphs(alone, scores)["recall_at_1"] == [0, 1, 0.5]
    assert retrieval.ranks_of_documents(alone, best)["recall_at_1"] == [1, 1, 1]


def test_questions_and_what_they_are_to_find(scale: str) -> None:
    found = retrieval.squad(scale)
    assert len(found.paragraphs) == 3
    assert len(found.asked) == 12
    data = json.loads(questions.squad().read_text())["data"]
    for question, document, [at] in zip(found.asked, found.document, found.wanted, strict=True):
        paragraph = data[document]["paragraphs"][at]
        assert question == paragraph["qas"][0]["question"]
        assert found.paragraphs[document][at] == paragraph["context"]
    found = retrieval.hotpot(scale)
    assert found.wanted == [[3, 7]] * 5
    assert found.paragraphs[0][3].startswith("3. ")


def test_first_sentences() -> None:
    row = {"text": "SYNOPSIS\nls [-l]\n\nUSE\nOne. Two.", "description": "It lists. Much."}
    bare = {"text": "NOTES\nFirst. Second.", "description": ""}
    given: Any = summarisation.Pages([], [row, bare], np.zeros(2), np.zeros(2))
    attempt: Any = None
    assert summarisation.of_description(given, attempt)[0] == ["It lists.", "First."]
    assert summarisation.of_page(given, attempt, 1)[0] == ["ls [-l]", "First."]
    assert summarisation.of_page(given, attempt, 3)[0] == [
        "ls [-l]\nOne.\nTwo.",
        "First.\nSecond.",
    ]


def test_words_tell_reviews_apart(scale: str, tmp_path: Path) -> None:
    given = classification.documents("reviews", scale)
    attempt, part = Attempt(0, tmp_path, print), classification.Part(0, 0, 0)
    said, _ = classification.by_words(given, attempt, part)
    right = np.mean([a == row["label"] for a, row in zip(said, given.test, strict=True)])
    said, _ = classification.majority(given, attempt, part)
    assert len(set(said)) == 1
    assert right > np.mean([a == row["label"] for a, row in zip(said, given.test, strict=True)])


# ---- all of it


@pytest.mark.slow  # trains several models
@pytest.mark.parametrize(
    "module", [classification, summarisation, retrieval], ids=lambda x: x.__name__.split(".")[-1]
)
def test_a_run_of_each(module: Any, scale: str, tmp_path: Path) -> None:
    from experiments.framework.report import Report

    experiment = module.experiment(scale)
    found = run(experiment, (0,), tmp_path / "work", say=lambda _: None)
    assert found.missing == []
    page = Report(found).markdown("picture.png")
    for contestant in experiment.contestants:
        assert f"| {contestant.name} |" in page
    again = run(experiment, (0,), tmp_path / "work", say=lambda _: pytest.fail("it was done"))
    assert again.findings == found.findings
