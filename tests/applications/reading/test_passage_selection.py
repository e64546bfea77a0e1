"""Narrowing: passages cover the text, and the closest are those of brute force."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longbird as lb
from longbird.applications.documents import Document
from longbird.applications.reading import passage_selection
from longbird.applications.reading.document_answers import DocumentReader
from longbird.applications.reading.passage_selection import (
    Passage,
    PassageIndex,
    Vectors,
    merged,
    passages,
)
from longbird.applications.reading.reader import Answer


@given(st.text(st.sampled_from("ab \n\t"), max_size=300), st.integers(1, 9))
def test_passages_have_every_word_once(text: str, words: int) -> None:
    found = passages(text, words)
    pieces = [text[start:end] for start, end in found]
    assert " ".join(pieces).split() == text.split()
    assert all(len(piece.split()) <= words for piece in pieces)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(found))


def test_passages_are_short_without_spaces_too() -> None:
    text = "\u3053\u306e\u5de5\u5834\u306f\u9589\u9396\u3002" * 2000
    found = passages(text)
    assert "".join(text[start:end] for start, end in found) == text
    assert max(end - start for start, end in found) <= 400
    long = passages("x" * 100_000)
    assert max(end - start for start, end in long) <= 200 * passage_selection.LONG_WORD


def letters(texts: list[str]) -> Vectors:
    """Vectors that count letters, of length 1."""
    counted = [[text.lower().count(letter) + 0.01 for letter in "abcdefghij"] for text in texts]
    made = np.array(counted, np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_the_closest_are_those_of_brute_force() -> None:
    drawn = random.Random(0)
    texts = ["\n\n".join("".join(drawn.choices("abcdefghij ", k=400)) for _ in range(9))] * 2
    texts[0] += "\n\n" + "bad ideas " * 99 + "\n\n" + "badge cafes " * 99
    found = PassageIndex(texts, letters, letters).closest("bad cafe")
    pieces = [texts[each.text][each.start : each.end] for each in found]
    having = [
        [any(each in ("bad", "bads") for each in piece.split()) for piece in pieces],
        [any(each.startswith("cafe") for each in piece.split()) for piece in pieces],
    ]
    weights = [np.log(1 + len(found) / (1 + sum(each))) for each in having]
    words = np.array(weights) @ np.array(having) / sum(weights)
    assert 0 < words.max() < 1
    scores = letters(pieces) @ letters(["bad cafe"])[0] + passage_selection.BY_WORDS * words
    np.testing.assert_allclose([each.score for each in found], scores, atol=1e-6)
    assert list(scores) == sorted(scores, reverse=True)
    assert len(found) == sum(len(passages(text)) for text in texts)


def test_what_a_text_repeats_counts_once() -> None:
    """A header on each page, or a licence in each file, leaves room for everything else."""
    repeated = "When the bad cafe closed. " + "filler " * 160
    text = "\n\n".join([repeated] * 50 + ["The bad cafe closed in May. " + "jig " * 180])
    found = PassageIndex([text, repeated], letters, letters).closest(
        "When did the bad cafe close?"
    )
    assert sorted((each.text, each.start) for each in found)[::2] == [(0, 0), (1, 0)]
    assert len(found) == 3
    assert max(each.start for each in found) == text.index("The bad cafe closed")


def test_a_word_counts_for_the_passage_that_it_stands_in() -> None:
    """Also as its first word, and not from a passage that is left out because it is a repeat."""
    first, second = ("Kestrel " + "filler " * 190, "nothing " * 190)
    text = "\n\n".join([second, first, "other " * 190, first])
    narrowed = PassageIndex([second, text], letters, letters)
    found = narrowed.closest("kestrel")
    having = [
        each for each in found if "Kestrel" in [second, text][each.text][each.start : each.end]
    ]
    assert len(found) == 4
    assert len(having) == 1
    for each in found:
        cosine = (
            letters([[second, text][each.text][each.start : each.end]]) @ letters(["kestrel"])[0]
        )
        assert each.score == pytest.approx(
            cosine[0] + passage_selection.BY_WORDS * (each in having), abs=1e-6
        )


def test_a_rare_word_counts_whatever_its_vector() -> None:
    filler = ["abcdefghij " * 150 + str(number) for number in range(300)]
    filler[123] = "zzz " * 180 + "Hollerfeld"
    text = "\n\n".join(filler)
    best = PassageIndex([text], letters, letters).closest("Was abcdefghij closed in Hollerfeld?")[
        :2
    ]
    assert any("Hollerfeld" in text[each.start : each.end] for each in best)


def test_of_many_passages_those_with_the_words_are_embedded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passage_selection, "EMBEDDED", 5)
    paragraphs = ["filler " * 150 + str(number) for number in range(40)]
    paragraphs[23] = "The Kestrels nested there. " + "filler " * 140
    asked: list[int] = []

    def counted(texts: list[str]) -> Vectors:
        asked.append(len(texts))
        return letters(texts)

    text = "\n\n".join(paragraphs)
    found = PassageIndex(["nothing", text], counted, letters).closest(
        "Where did the kestrels nest?"
    )
    assert asked == [5]
    assert any("Kestrels" in text[each.start : each.end] for each in found if each.text == 1)


def test_without_words_in_common_passages_of_everywhere_are_embedded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passage_selection, "EMBEDDED", 10)
    text = "\n\n".join("filler " * 150 + str(number) for number in range(40))
    found = PassageIndex([text], letters, letters).closest("Where did Zebulon go?")
    assert max(each.start for each in found) > len(text) * 0.7
    assert min(each.start for each in found) < len(text) * 0.3


def test_neighbours_become_one() -> None:
    some = [Passage(1, 0, 10, 0.1), Passage(0, 50, 60, 0.5), Passage(0, 20, 45, 0.7)]
    assert merged(some, gap=10) == [Passage(0, 20, 60, 0.7), Passage(1, 0, 10, 0.1)]
    assert len(merged([Passage(0, 0, 10), Passage(0, 400, 500)])) == 1  # a paragraph between them


def test_no_more_is_read_than_is_said(finder: lb.Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longbird.applications.reading.document_answers.NARROWED", 600)
    text = "\n\n".join("The one ship. " * 40 + str(number) for number in range(60))
    asking = DocumentReader(finder, [Document("a.txt", text)], Letters, most=5000)
    assert "about 600 tokens" in next(asking.messages())
    read: list[str] = []
    before = finder.ask
    monkeypatch.setattr(
        finder, "ask", lambda text, asked: (read.append(text), before(text, asked))[1]
    )
    list(asking.ask("the ship ?"))
    (one,) = read
    assert 300 < len(finder.tokenizer(one)["input_ids"]) < 900


class Letters:
    """An embedder that counts letters."""

    def embed(self, texts: list[str]) -> Any:
        return SimpleNamespace(vectors=letters(texts))

    def embed_queries(self, texts: list[str]) -> Vectors:
        return letters(texts)


@pytest.mark.parametrize("most", [200, 2000])  # one passage is read, or some of a text as one
def test_a_corpus_is_narrowed_and_keeps_its_characters(most: int, finder: lb.Reader) -> None:
    """The passage with the answer is read; other files may not be."""
    filler = "\n\n".join(["The one ship. " * 60] * 30)
    texts = [filler, f"{filler}\n\nDid bad cafes face the zero ship. Cab.\n\n{filler}"]
    documents = [Document(f"{number}.txt", text) for number, text in enumerate(texts)]
    asking = DocumentReader(finder, documents, Letters, most=most)
    assert not asking.reads_all
    assert "passages closest to the question" in next(asking.messages())
    first, second = asking.ask("bad cafes face cab ?")
    assert first.answer.text is None
    assert first.narrowed
    if most == 200:
        assert not first.answer.passages
        assert not first.answer.evidence
    answer = second.answer
    assert answer.text == "zero"
    assert answer.start is not None
    assert texts[1][answer.start : answer.end] == "zero"
    for asked in (first, second):
        for each in asked.answer.evidence:
            assert asked.document.text[each.start : each.end] == each.text
    contract = {"file", "question", "answer", "confidence", "start", "end", "evidence"}
    assert set(second.as_json()) == contract
    assert set(second.as_json()["evidence"][0]) == {"text", "start", "end", "score"}


def test_an_answer_ends_where_its_passage_does(
    finder: lb.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read as one text stands apart in the document."""
    text = "first one" + "." * 100 + "second one"
    over = Answer("one\n\nsecond", 0.9, 6, 17, (), 1)
    monkeypatch.setattr(finder, "ask", lambda *_: over)
    asking = DocumentReader(finder, [Document("a.txt", text)], Letters)
    answer = asking._read(text, [Passage(0, 0, 9), Passage(0, 109, 119)], "which ?")
    assert (answer.start, answer.end, answer.text) == (6, 9, "one")


def test_tokens_are_guessed_in_every_script(finder: lb.Reader) -> None:
    for text, tokens in (("The mill stands by the river. " * 100, 700), ("\u5de5" * 700, 700)):
        asking = DocumentReader(finder, [Document("a.txt", text)], Letters)
        assert tokens / 1.5 < asking.tokens < tokens * 1.5


def test_the_file_that_is_read_is_named(
    finder: lb.Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "longbird.applications.reading.reader.TOKENS_AT_ONCE", 200
    )  # none is short
    documents = [Document(f"{name}.txt", "The one ship. " * 100) for name in "ab"]
    told: list[str] = []
    answers = DocumentReader(finder, documents, Letters).ask("the ship ?", told.append)
    for document, _ in zip(documents, answers, strict=True):
        assert told
        assert all(line.startswith(f"Reading {document.file}: ") for line in told)
        told.clear()
