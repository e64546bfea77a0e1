"""The demonstration: all parts run, and the page is complete and self-contained."""

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
from longbird.cli.demo import answers, cost
from longbird.cli.demo.answers import ANSWERABLE, QUESTIONS, DemoQuestion, Response, Results
from longbird.cli.demo.cost import Cost
from longbird.cli.demo.page import write_page

TEXT = "Profits <fell> & rose.\n\nThe mill closed in 1931."


def response(text: str | None, right: tuple[str, ...]) -> Response:
    start = TEXT.find(text) if text else None
    evidence = (Evidence(TEXT[:22], 0, 22, 0.4), Evidence(TEXT[24:], 24, len(TEXT), 0.9))
    end = None if start is None or text is None else start + len(text)
    return Response(
        DemoQuestion("When <b>did</b> it?", right), Answer(text, 0.8, start, end, evidence), 1.5
    )


def test_answers_are_compared_as_in_squad() -> None:
    assert response("1931", ("1931",)).right
    assert response("1931.", ("the 1931",)).right
    assert not response("1931", ("1932",)).right
    assert response(None, ()).right
    assert not response("1931", ()).right
    assert not response(None, ("1931",)).right


def test_the_page_is_complete_and_needs_no_network(tmp_path: Path) -> None:
    results = Results(Document("mill.txt", TEXT))
    results.passages = [response("1931", ("1931",))]
    results.chunks = [response(None, ("1931",))]
    results.costs = [Cost("dense", 4096, 2.0, 5_000_000)]
    write_page(results, tmp_path / "new" / "demo.html")
    page = (tmp_path / "new" / "demo.html").read_text("utf-8")
    assert "The mill closed in <mark>1931</mark>." in page
    assert "Profits &lt;fell&gt; &amp; rose." in page
    assert "<b>did</b>" not in page
    assert "not sure" in page
    assert "line 3" in page
    assert "dense attention" in page
    assert not re.search(r"(src|href)=|https?://|@import|url\(", page)


def test_questions_are_different_and_one_has_no_answer() -> None:
    assert len({each.text for each in QUESTIONS}) == len(QUESTIONS)
    assert len(ANSWERABLE) == len(QUESTIONS) - 1


def test_a_pass_is_measured_in_a_separate_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **options: Any) -> Any:
        assert command[0] == sys.executable
        assert options["input"] == TEXT
        found = json.dumps({"seconds": 1.0, "bytes": 3})
        return subprocess.CompletedProcess(command, 0, f"noise\n{found}\n", "")

    monkeypatch.setattr(cost.subprocess, "run", run)
    found = list(cost.measure(TEXT))
    assert [(each.method, each.tokens) for each in found] == list(cost.PASSES)
    assert {each.bytes for each in found} == {3}
    monkeypatch.setattr(
        cost.subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess([], 1, "", "out of memory"),
    )
    with pytest.raises(RuntimeError, match="out of memory"):
        list(cost.measure(TEXT))


@pytest.mark.slow  # two processes that load the reader
def test_real_passes_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "PASSES", (("longbird", 1024), ("chunks", 1024)))
    for each in cost.measure("The mill closed in 1931. " * 300):
        assert each.tokens == 1024
        assert each.seconds > 0


def test_all_parts_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    monkeypatch.setattr(answers, "read_document", lambda: Document("mill.txt", TEXT))
    monkeypatch.setattr(cost, "measure", lambda text: iter([Cost("chunks", 4096, 1.0, 3)]))
    results = answers.show_answers(tmp_path)
    assert [each.question for each in results.passages] == list(QUESTIONS)
    assert [each.question for each in results.chunks] == list(ANSWERABLE)
    assert [each.right for each in results.passages] == [not each.answers for each in QUESTIONS]
    assert (tmp_path / "demo.html").exists()
    assert Reader.confidence.least == 0.5  # only that one reader guesses
    shown = " ".join(capsys.readouterr().out.split())
    assert "4,096 tokens chunks of 512" in shown
    assert f"Of {len(ANSWERABLE)} questions that have an answer, 0 are answered correctly" in shown
