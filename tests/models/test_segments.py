"""Sentences and paragraphs as segments of tokens."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import longbird as lb
from longbird.models.segments import spans


def cut(text: str, by: str = "sentence") -> list[str]:
    return [part for start, end in spans(text, by) if (part := text[start:end].strip())]


def offsets(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["One.", "Two!", "Three?", "Four…", "And five"],
        ["Dr. Low met Prof. T. S. Eliot of the U.S. Navy.", "They talked."],
        ["See Fig. 3 and Eq. 12, p. 5, of Smith et al. (2020).", "It costs 3.14 euros."],
        ["It was No. 5 on Jan. 3.", "So be it."],
        ["Is that so?", "No.", "We left at 5 p.m. sharp."],
        ["He said “Go!”", "She went.", "(It was late.)", "“Why?”", "Nobody knew."],
        ["She works at Acme Inc. in Paris.", "He does e.g. nothing, i.e. little."],
        ["Wait... what?", "Nothing."],
        ["Он пришёл.", "Она ушла, т. е. вышла."],  # noqa: RUF001
        ["Version 2.0 is out.", "2.1 follows.", "$5 is the price."],
        ["¿Qué?", "¡Nada!", "Él salió."],
    ],
)
def test_sentences(sentences):
    assert cut(" ".join(sentences)) == sentences


def test_sentences_without_spaces_between():
    assert cut("他来了。她走了！为什么？没有。") == ["他来了。", "她走了！", "为什么？", "没有。"]  # noqa: RUF001


def test_an_empty_line_ends_a_sentence():
    assert cut("A heading\n\nThe text goes\non. And on\n \t\nEnd") == [
        "A heading", "The text goes\non.", "And on", "End",
    ]  # fmt: skip


def test_paragraphs():
    assert cut("One. Two.\nThree\n\n \nFour\n", "paragraph") == ["One. Two.\nThree", "Four"]
    assert cut("One. Two.\nThree\nFour", "paragraph") == ["One. Two.", "Three", "Four"]


@given(st.text(alphabet="ab AB.!?\n\"'()0。é", max_size=80))
def test_spans_are_the_whole_text(text):
    for by in ("sentence", "paragraph"):
        found = spans(text, by)
        assert [start for start, _ in found] == [0, *(end for _, end in found)][:-1]
        assert found[-1][1] == len(text)
        numbers = lb.segments(text, offsets(text), by)
        real = [number for number in numbers if number >= 0]
        assert len(numbers) == len(offsets(text)) == len(real)
        assert real == sorted(real)
        assert set(real) == set(range(len(set(real))))


def test_tokens():
    text = "Dr. Low saw it. She left!\n\nNobody knew."
    tokens = [(0, 0), *offsets(text), None]
    words = [-1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, -1]
    assert lb.segments(text, tokens) == words
    assert lb.segments(text, tokens, by="paragraph") == [-1, *[0] * 9, 1, 1, 1, -1]
    assert lb.segments(text, torch.tensor(tokens[:-1])) == words[:-1]
    # A token with the space before it, as byte-level tokenizers may have, is of what follows.
    assert lb.segments("One. Two", [(0, 3), (3, 4), (4, 8)]) == [0, 0, 1]
    # A window in the middle of a text counts from 0.
    assert lb.segments(text, tokens[7:-1]) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("most", [1, 2, 3, 7, 10, 50])
def test_neighbours_are_merged(most):
    text = " ".join("Yes." for _ in range(10))
    found = lb.segments(text, offsets(text), most=most)
    count = min(most, 10)
    assert found == sorted(found)
    assert set(found) == set(range(count))
    sizes = [found.count(i) for i in range(count)]
    assert max(sizes) - min(sizes) <= 2  # of one sentence, which has two tokens


def test_what_cannot_be():
    for arguments, said in (
        (("a", [(0, 1)], "word"), 'by must be "sentence" or "paragraph", received \'word\''),
        (("a", [(0, 1)], "sentence", 0), "most must be at least 1, received 0"),
        (("abc", [(2, 4)]), r"within the 3 characters of the text, received the offset \(2, 4\)"),
        (("abc", [(-1, 2)]), r"received the offset \(-1, 2\)"),
    ):
        with pytest.raises(ValueError, match=said):
            lb.segments(*arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((None, [(0, 1)]), "text must be a str, received NoneType"),
        ((b"abc", [(0, 1)]), "text must be a str, received bytes"),
        (("abc", None), "offsets must be pairs .* received NoneType"),
        (("abc", "ab"), "offsets must be pairs .* received str"),
        (("abc", [(0, 1), 5]), "received 5 for token 1"),
        (("abc", [(0.5, 1.5)]), r"received \(0.5, 1.5\) for token 0"),
        (("abc", [[(0, 1), (1, 2)]]), "of one text"),
        (("abc", [(0, 1)], "sentence", "3"), "most must be an int or None, received str"),
    ],
)
def test_what_is_of_another_type(arguments, said):
    with pytest.raises(TypeError, match=said):
        lb.segments(*arguments)


def test_a_model_takes_them():
    text = "The first sentence. The second one! And a third."
    config = lb.LongbirdConfig(
        vocab_size=50,
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=1,
        graph=lb.Window(4),
        num_global_tokens=2,
    )
    model = lb.LongbirdModel(config)
    ids = torch.arange(len(offsets(text)))[None]
    with pytest.raises(ValueError, match=r"longbird\.segments\(\.\.\., most=2\)"):
        model(ids, segment_ids=torch.tensor([lb.segments(text, offsets(text))]))
    merged = torch.tensor([lb.segments(text, offsets(text), most=2)])
    assert model(ids, segment_ids=merged).global_hidden_state.shape == (1, 2, 16)


@pytest.mark.parametrize("text", ["." * 200_000, "?" * 100_000 + " " * 100_000, '!"' * 100_000])
def test_runs_of_marks_take_linear_time(text: str) -> None:
    """In quadratic time, each would take minutes."""
    assert lb.segments(text, [(0, 1), (len(text) - 1, len(text))]) == [0, 0]
