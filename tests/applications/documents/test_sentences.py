"""Sentences: everything that is written is in one, and common abbreviations end none."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longbird.applications.documents import Document
from longbird.applications.documents.sentences import LONGEST, sentences

WRITTEN = st.text(st.sampled_from("ab A.!? \n\"'()1\u00e9\u3002"), max_size=200)


@given(WRITTEN)
def test_they_cover_all_but_space_once(text: str) -> None:
    places = sentences(text)
    inside = [at for start, end in places for at in range(start, end)]
    assert len(inside) == len(set(inside))
    assert inside == sorted(inside)
    assert all(text[at].isspace() for at in set(range(len(text))) - set(inside))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in places)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It rained. We left.", ["It rained.", "We left."]),
        ("Dr. Lee met J. K. Low. They spoke.", ["Dr. Lee met J. K. Low.", "They spoke."]),
        ("In the U.S. Army he rose.", ["In the U.S. Army he rose."]),
        ('"Stop!" He ran.', ['"Stop!"', "He ran."]),
        ("It cost 3.5 million. That was much", ["It cost 3.5 million.", "That was much"]),
        ("1. First item. 2. Second", ["1. First item.", "2. Second"]),
        ("A heading\n\nText here", ["A heading", "Text here"]),
        ("- one\n- two", ["- one", "- two"]),
        ("Was it? Yes! Then\nwe slept.", ["Was it?", "Yes!", "Then\nwe slept."]),
        ("Il partit. Élodie resta.", ["Il partit.", "Élodie resta."]),
        ("Он ушёл. «Да», сказала она. Да.", ["Он ушёл.", "«Да», сказала она.", "Да."]),
        ("वह गया। वह रही।", ["वह गया।", "वह रही।"]),
        ("Ging er? ¿Adónde? 工厂关闭。是的。", ["Ging er?", "¿Adónde?", "工厂关闭。", "是的。"]),
    ],
    ids=range(13),
)
def test_common_cases(text: str, parts: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == parts


def test_text_without_a_stop_is_cut() -> None:
    table = "cell " * 2000
    assert all(end - start <= LONGEST for start, end in sentences(table))
    assert all(end - start <= LONGEST for start, end in sentences("x" * 5000))


@pytest.mark.parametrize(
    "text",
    ["A." + "." * 100_000 + " b", "see Fig. 1 and " * 200_000],
    ids=["dots", "one sentence"],
)
def test_the_time_grows_with_the_text_alone(text: str) -> None:
    start = time.process_time()
    sentences(text)
    assert time.process_time() - start < 20  # a second or so; it was many minutes


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", "\n\x0c\n", "\n\u00a0\n", "\n \t\n"])
def test_a_sentence_is_in_one_paragraph(blank: str) -> None:
    text = f"A heading{blank}the plant was closed"
    assert [text[start:end] for start, end in sentences(text)] == [
        text[start:end] for start, end in Document("a.txt", text).paragraphs()
    ]
