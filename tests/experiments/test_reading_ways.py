"""Questions about long documents: splits without leaks, and what each way to read sees."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from small_words import WORDS, write_tokenizer

import longbird as lb
from experiments.framework.run import run
from experiments.quality import articles, hotpotqa, question_sets, ways
from experiments.sources import questions

TITLES = ("Warsaw", "Oxygen", "Pharmacy", "Iron", "Gold")


def sentence(drawn: random.Random) -> str:
    return " ".join(drawn.choices(WORDS, k=drawn.randint(4, 12))).capitalize() + "."


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files in the place of the real ones."""
    drawn = random.Random(0)
    data: list[dict[str, Any]] = []
    for title in TITLES:
        paragraphs: list[dict[str, Any]] = []
        for _ in range(6):
            text = " ".join(sentence(drawn) for _ in range(4))
            start = text.index(" ", drawn.randrange(len(text) // 2)) + 1
            answer = {"text": text[start:].split()[0].strip("."), "answer_start": start}
            paragraphs.append({"context": text, "qas": [
                {"id": f"{title}-{len(paragraphs)}", "question": sentence(drawn),
                 "is_impossible": False, "answers": [answer]},
                {"id": f"{title}-{len(paragraphs)}-none", "question": sentence(drawn),
                 "is_impossible": True, "answers": []},
            ]})  # fmt: skip
        data.append({"title": title, "paragraphs": paragraphs})
    (tmp_path / "squad.json").write_text(json.dumps({"data": data}))
    rows: list[dict[str, Any]] = []
    for number in range(30):
        titles = drawn.sample([f"{number // 3}-{x}" for x in range(12)], 10)
        context = [[title, [sentence(drawn) + " " for _ in range(2)]] for title in titles]
        rows.append({
            "_id": str(number), "question": sentence(drawn), "context": context,
            "answer": "yes" if number % 5 == 0 else context[3][1][1].split()[1].strip("."),
            "supporting_facts": [[titles[3], 1], [titles[7], 0]],
            "type": "comparison" if number % 5 == 0 else "bridge",
        })  # fmt: skip
    (tmp_path / "hotpotqa.json").write_text(json.dumps(rows))
    monkeypatch.setattr(questions, "squad", lambda: tmp_path / "squad.json")
    monkeypatch.setattr(questions, "hotpotqa", lambda: tmp_path / "hotpotqa.json")
    monkeypatch.setattr(question_sets, "HELD_OUT", {"validation": 4, "test": 7})
    articles.held_out.cache_clear()
    hotpotqa.held_out.cache_clear()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader of 256 tokens that knows nothing, but answers differently wherever it looks."""
    folder = tmp_path_factory.mktemp("reader")
    size = write_tokenizer(folder, ["yes", "."])
    torch.manual_seed(0)
    config = lb.LongbirdConfig(
        vocab_size=size, hidden_size=32, num_attention_heads=2, num_hidden_layers=2,
        intermediate_size=32, max_position_embeddings=256, num_answer_types=4,
        graph=lb.bigbird(block=16),
        supporting_sentences=True, initializer_range=0.5,
    )  # fmt: skip
    kept = {"positions": "paragraph", "no_answer": 0.0}
    config.task_specific_params = {"question-answering": kept}
    lb.LongbirdForQuestionAnswering(config).save_pretrained(folder)
    return folder


@pytest.fixture
def scale(sources: None, reader: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(ways, "default_reader", lambda: reader)
    monkeypatch.setattr(ways, "SHORT", 64)
    monkeypatch.setitem(hotpotqa.SIZES, "smaller", hotpotqa.Sizes(4, 7, 256))
    monkeypatch.setitem(articles.SIZES, "smaller", articles.Sizes(8, 256))
    monkeypatch.setattr(articles, "by_vectors", lambda model, rows: [1] * len(rows))
    return "smaller"


# ---- what is held out


def test_no_paragraph_is_on_two_sides(sources: None) -> None:
    split = question_sets.split_hotpot()
    assert len(split["validation"]) >= 4
    assert len(split["test"]) >= 7
    assert sum(map(len, split.values())) == 30
    titles = {side: {t for row in rows for t, _ in row["context"]} for side, rows in split.items()}
    assert not titles["train"] & (titles["test"] | titles["validation"])
    assert not titles["test"] & titles["validation"]


def test_articles_are_on_one_side(sources: None) -> None:
    split = question_sets.split_squad()
    found = {side: {article["title"] for article in rows} for side, rows in split.items()}
    assert found == {
        "train": {"Iron", "Gold"}, "validation": {"Pharmacy"}, "test": {"Warsaw", "Oxygen"},
    }  # fmt: skip


def test_a_question_with_its_whole_article(sources: None) -> None:
    every = question_sets.split_squad()["test"]
    contexts = {article["title"]: article["paragraphs"] for article in every}
    rows = articles.held_out(100)
    assert len(rows) == 12  # those that have an answer
    for row in rows:
        title = row["_id"].split("-")[0]
        assert [text.split() for text in articles.texts(row)] == [
            paragraph["context"].split() for paragraph in contexts[title]
        ]
        [[name, index]] = row["supporting_facts"]
        assert row["answer"] in dict(row["context"])[name][index]
        assert name == f"{title} ({row['paragraph'] + 1})"


# ---- what is read at once


def test_windows_of_each_way() -> None:
    row = {"input_ids": [0] * 108, "first": 5, "last": 107, "paragraphs": [5, 25, 60]}
    cut = ways.first_of(46)(0, row)
    assert cut == [(5, 45)]  # with the question and the last token 46
    chunks = ways.of_size(46)(0, row)
    assert chunks[0] == cut[0]
    assert chunks[-1][1] == 107
    assert all(stop - start == 40 for start, stop in chunks)
    assert all(b[0] <= a[1] - 10 for a, b in itertools.pairwise(chunks))
    assert ways.paragraphs(0, row) == [(5, 25), (25, 60), (60, 107)]
    assert ways.one_paragraph([2, 1])(1, row) == [(25, 60)]


def test_a_paragraph_alone_is_read_as_if_there_were_no_others(scale: str, tmp_path: Path) -> None:
    rows = articles.held_out(8)
    way = ways.Way("given", "", ways.one_paragraph(articles.right(rows)))
    reader, task = ways.load(way)
    _, said = ways.read(reader, rows, way, tmp_path, print)
    alone = [{**row, "context": [row["context"][row["paragraph"]]]} for row in rows]
    _, expected = ways.read(reader, alone, ways.whole(256), tmp_path, print)
    for one, other in zip(said, expected, strict=True):
        assert task.answer(one)["answer"] == task.answer(other)["answer"]
        assert one["span"]["chance"] == pytest.approx(other["span"]["chance"], rel=1e-4)


def test_what_is_not_read_is_not_said(
    scale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "longbird.applications.reading.second_pass.MOST", 24
    )  # of 64: there is a second look
    _, rows = hotpotqa.held_out(hotpotqa.SIZES[scale])
    (way,) = (each for each in ways.ways(256) if each.name == "first 512")
    reader, _ = ways.load(way)
    _, said = ways.read(reader, rows, way, tmp_path, print)
    assert any("first" in each for each in said)
    for row, each in zip(rows, said, strict=True):
        text = "".join(f"{title}\n{''.join(parts)}\n\n" for title, parts in row["context"])
        words = len(row["question"].split()) + 2  # and a full stop is a token, so this is generous
        assert each["span"]["end"] <= len(" ".join(text.split(" ")[: 64 - words + 10]))


# ---- all of it


@pytest.mark.slow  # the reader that ships reads in every way
@pytest.mark.parametrize("module", [hotpotqa, articles], ids=["hotpotqa", "articles"])
def test_both_run_and_go_on(module: Any, scale: str, tmp_path: Path) -> None:
    experiment = module.experiment(scale)
    found = run(experiment, (0, 1), tmp_path, say=lambda _: None)
    assert found.missing == []
    for findings in found.findings.values():
        [only] = findings  # seeds change nothing
        assert all(0 <= x <= 1 for x in only.documents["f1"])
        assert len(only.documents["f1"]) == (7 if module is hotpotqa else 8)
    again = run(experiment, (0, 1), tmp_path, say=lambda _: pytest.fail("it was done"))
    assert again.findings == found.findings
