"""The page of the demo: everything on it, nothing from elsewhere, text as text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longbird.applications.documents import Document
from longbird.applications.reading.confidence import Confidence
from longbird.applications.reading.reader import Answer, Evidence
from longbird.bench.demo import once, story
from longbird.bench.demo.page import write_page
from longbird.bench.demo.story import QUESTIONS, Known, Story, Told

TEXT = "Profits <fell> & rose.\n\nThe mill closed in 1931."


def told(text: str | None, right: tuple[str, ...]) -> Told:
    start = TEXT.find(text) if text else None
    evidence = (Evidence(TEXT[:22], 0, 22, 0.4), Evidence(TEXT[24:], 24, len(TEXT), 0.9))
    end = None if start is None or text is None else start + len(text)
    return Told(Known("When <b>did</b> it?", right), Answer(text, 0.8, start, end, evidence), 1.5)


def test_answers_are_compared_as_squad_does() -> None:
    assert told("1931", ("1931",)).right
    assert told("1931.", ("the 1931",)).right
    assert not told("1931", ("1932",)).right
    assert told(None, ()).right and not told("1931", ()).right and not told(None, ("1931",)).right


def test_the_page_has_it_all_and_needs_no_network(tmp_path: Path) -> None:
    found = Story(Document("mill.txt", TEXT), 8)
    found.whole, found.chunks = [told("1931", ("1931",))], [told(None, ("1931",))]
    found.once = [{"who": "dense", "tokens": 4096, "seconds": 2.0, "bytes": 5_000_000}]
    write_page(found, tmp_path / "new" / "demo.html")
    page = (tmp_path / "new" / "demo.html").read_text("utf-8")
    assert "The mill closed in <mark>1931</mark>." in page
    assert "Profits &lt;fell&gt; &amp; rose." in page and "<b>did</b>" not in page
    assert "not sure" in page and "line 3" in page and "dense attention" in page
    assert not re.search(r"(src|href)=|https?://|@import|url\(", page)


def test_questions_have_answers_in_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({each.question for each in QUESTIONS}) == len(QUESTIONS)
    assert any(not each.answers for each in QUESTIONS)


def test_a_reading_is_measured_in_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: Any) -> Any:
        assert command[0] == sys.executable and options["input"] == TEXT
        found = json.dumps({"seconds": 1.0, "bytes": 3})
        return subprocess.CompletedProcess(command, 0, f"noise\n{found}\n", "")

    monkeypatch.setattr(once.subprocess, "run", run)
    found = list(once.measured(TEXT))
    assert [(each["who"], each["tokens"]) for each in found] == list(once.READINGS)
    monkeypatch.setattr(
        once.subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess([], 1, "", "out of memory"),
    )
    with pytest.raises(RuntimeError, match="out of memory"):
        list(once.measured(TEXT))


def test_all_parts_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Reader:
        length = 4096
        confidence = Confidence((0.0,) * 10, 0.0, least=0.5)

        @classmethod
        def from_pretrained(cls, name: str) -> Reader:
            assert name == "default"
            return cls()

        def ask(self, text: str, question: str) -> Answer:
            return Answer(None, 0.1, None, None, ())

    monkeypatch.setattr("longbird.applications.reading.reader.Reader", Reader)
    monkeypatch.setattr(story, "document", lambda: Document("mill.txt", TEXT))
    monkeypatch.setattr(once, "measured", lambda text: iter(()))
    shown: list[str] = []
    done = story.tell(tmp_path, lambda part, value: shown.append(part))
    have_an_answer = [each for each in QUESTIONS if each.answers]
    assert shown == ["document", *["whole"] * len(QUESTIONS), *["chunks"] * len(have_an_answer)]
    assert [each.known for each in done.chunks] == have_an_answer
    assert [each.right for each in done.whole] == [not each.answers for each in QUESTIONS]
    assert (tmp_path / "demo.html").exists()
    assert Reader.confidence.least == 0.5  # the guesses are those of that one reader alone
