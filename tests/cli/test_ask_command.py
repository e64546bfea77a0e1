"""`longbird ask`: what it takes for a question, what it prints, and what it refuses early."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from longbird.applications.reading.document_answers import DocumentReader
from longbird.applications.reading.reader import Answer, Evidence
from longbird.cli import ask as command
from longbird.cli.app import app, main
from longbird.cli.ask import _split_arguments  # pyright: ignore[reportPrivateUsage]

TEXT = "The mill stands by the river.\n\nIt was built in 1790 by Ann Lee. It closed in 1931."


class Known:
    """A reader whose answers are known: the year in the sentence with the question's last word."""

    length = 4096

    def ask(self, text: str, question: str) -> Answer:
        word = question.strip(" ?").split()[-1]
        for sentence in ("It was built in 1790 by Ann Lee.", "It closed in 1931."):
            at = text.find(sentence)
            if word in sentence and at >= 0:
                start = at + sentence.index("1")
                evidence = Evidence(sentence, at, at + len(sentence), 0.9)
                return Answer(text[start : start + 4], 0.8, start, start + 4, (evidence,))
        return Answer(None, 0.1, None, None, (Evidence(text[:29], 0, 29, 0.2),))

    def ask_all(self, pairs: Any, advance: Any) -> Any:
        for text, question in pairs:
            yield self.ask(text, question)


@pytest.fixture
def mill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, and the reader for it."""

    def asking(documents: Any, model: str, quantize: Any, read: Any) -> Any:
        return DocumentReader(Known(), documents, lambda: None)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "_reader", asking)
    file = tmp_path / "mill.txt"
    file.write_text(TEXT)
    return file


def test_json_has_an_object_for_each_file_and_question(mill: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("Nothing to see here at all, only this.")
    asked = ["-q", "When was it built?", "-q", "What closed?"]
    line = ["ask", str(mill), str(other), *asked, "--json"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [(each["file"], each["question"]) for each in found] == [
        (str(file), question)
        for question in ("When was it built?", "What closed?")
        for file in (mill, other)
    ]
    assert found[0]["answer"] == "1790"
    assert TEXT[found[0]["start"] : found[0]["end"]] == "1790"
    assert found[1]["answer"] is None
    assert found[1]["start"] is None
    assert found[1]["end"] is None
    assert set(found[0]) == {
        "file", "question", "answer", "confidence", "start", "end", "evidence"
    }  # fmt: skip
    (evidence,) = found[0]["evidence"]
    assert TEXT[evidence["start"] : evidence["end"]] == evidence["text"]


def test_the_answer_is_marked_in_its_sentence(mill: Path) -> None:
    done = CliRunner().invoke(app, ["ask", str(mill), "When was it closed?"])
    assert done.exit_code == 0, done.output
    assert "1931  (80% sure)" in done.stdout
    assert "line 3, character 64: It closed in **1931**." in done.stdout


def test_doubt_shows_the_closest_passages(mill: Path) -> None:
    done = CliRunner().invoke(app, ["ask", str(mill), "Who painted it?"])
    assert "Not sure" in done.stdout
    assert "The mill stands by the river." in done.stdout


def test_questions_are_asked_for(mill: Path) -> None:
    done = CliRunner().invoke(app, ["ask", str(mill)], input="What closed?\n\n:quit\nWho built?\n")
    assert done.exit_code == 0, done.output
    assert "1931" in done.stdout
    assert "1790" not in done.stdout


def test_no_question_is_an_error(mill: Path) -> None:
    done = CliRunner().invoke(app, ["ask", str(mill)], input="\n")
    assert "there is no question" in str(done.exception)


def test_what_is_typed_with_a_colon_is_no_question(
    mill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter([":help", "What closed?", ":q"])
    monkeypatch.setattr("builtins.input", lambda _: next(typed))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr(command, "_remember", lambda: None)
    assert list(command._questions([])) == ["What closed?"]


def test_the_prompt_is_not_among_the_json(
    mill: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where stdout is a file and somebody types."""
    monkeypatch.setattr("sys.stdin", io.StringIO("What closed?\n:quit\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(command, "_remember", lambda: None)
    app(["ask", str(mill), "--json"], standalone_mode=False)
    written = capsys.readouterr()
    assert json.loads(written.out)[0]["answer"] == "1931"
    assert written.err.count("? ") == 2


def test_a_question_that_is_too_long_is_found_before_the_first_is_read(
    mill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_: Any, question: str) -> None:
        if "long" in question:
            raise ValueError("too long")

    monkeypatch.setattr(
        "longbird.applications.reading.document_answers.DocumentReader.check", check
    )
    monkeypatch.setattr(command, "_answered", lambda *_: pytest.fail("it was read"))
    done = CliRunner().invoke(app, ["ask", str(mill), "-q", "What closed?", "-q", "a long one"])
    assert str(done.exception) == "too long"


def test_a_wrong_byte_in_a_question_costs_no_other_answer(
    mill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = io.BytesIO(b"What closed?\nWho \xff?\nWhat closed?\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given, "utf-8", "strict"))
    assert list(command._questions([])) == ["What closed?", "Who \ufffd?", "What closed?"]


def test_a_document_may_come_from_stdin(mill: Path) -> None:
    done = CliRunner().invoke(app, ["ask", "-", "What closed?", "--json"], input=TEXT)
    assert json.loads(done.stdout)[0]["file"] == "-"
    assert json.loads(done.stdout)[0]["answer"] == "1931"


def test_stdin_is_not_read_where_the_questions_are_missing(
    mill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_documents", lambda *_: pytest.fail("it was read"))
    done = CliRunner().invoke(app, ["ask", "-"], input=TEXT)
    assert "give the questions with -q" in str(done.exception)


def test_what_is_a_question(tmp_path: Path) -> None:
    file, odd = tmp_path / "a.txt", tmp_path / "two words?"
    file.write_text("x")
    odd.write_text("x")
    assert _split_arguments([str(file), "Why?"], []) == ([str(file)], ["Why?"])
    assert _split_arguments([str(file), "who came"], []) == ([str(file)], ["who came"])
    assert _split_arguments([str(file), str(odd)], []) == ([str(file), str(odd)], [])
    assert _split_arguments([str(file)], ["b c"]) == ([str(file)], ["b c"])
    with pytest.raises(FileNotFoundError, match="a question comes last"):
        _split_arguments([str(file), "nowhere.txt"], [])
    with pytest.raises(ValueError, match="which file"):
        _split_arguments(["Who came?"], [])
    for question in ("\U0001f914", "\u2753"):  # emoji
        assert _split_arguments([str(file), question], []) == ([str(file)], [question])
    assert _split_arguments([str(file), "工場はいつ閉鎖されましたか？"], [])[1]  # noqa: RUF001
    for files, questions in (([str(file)], [" "]), ([str(file), ""], []), ([str(file), " "], [])):
        with pytest.raises(ValueError, match="a question is empty"):
            _split_arguments(files, questions)
    with pytest.raises(FileNotFoundError, match="needs a -q of its own"):
        _split_arguments([str(file), "Who came?"], ["Who left?"])
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt$"):
        _split_arguments([str(file), "nowhere.txt"], ["Who left?"])


# ---- what files hold and how they are called does nothing to the terminal


def test_brackets_in_the_name_of_a_file_are_no_markup(mill: Path) -> None:
    silent = mill.parent / "[red]" / "b].txt"  # as a path: [red]/b].txt
    closing = mill.parent / "[" / "red].txt"
    for file in (silent, closing):
        file.parent.mkdir()
        file.write_text("Nothing to see here at all, only this.")
    line = ["ask", str(mill), str(silent), str(closing), "What closed?"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    shown = done.stdout.partition(f"no sure answer in {silent}, {closing}; the closest there:")[2]
    for file in (silent, closing):
        assert f"{file}, line 1, character 0: Nothing to see here" in shown


def test_a_document_does_not_steer_the_terminal(mill: Path) -> None:
    mill.write_text("\x1b[2J\x1b]0;title\x07 the mill is old. It closed in 1931.")
    for question in ("What closed?", "Who painted it?"):
        done = CliRunner().invoke(app, ["ask", str(mill), question])
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.stdout
        assert "\x07" not in done.stdout
        assert "\ufffd[2J" in done.stdout or "1931" in done.stdout


def test_the_answer_stands_out_from_its_place(mill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, color_system="standard", width=80)
    monkeypatch.setattr(command, "stdout", console)
    done = CliRunner().invoke(app, ["ask", str(mill), "What closed?"])
    assert done.exit_code == 0, done.output
    dim, plain, marked = "\x1b[2m", "\x1b[0m", "\x1b[1;4m"
    line = f"{dim}    line 3, character 64: {plain}It closed in {marked}1931{plain}."
    assert line in shown.getvalue()


def test_a_name_that_is_no_text_is_printed(mill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = os.path.join(mill.parent, os.fsdecode(b"caf\xe9.txt"))
    mill.rename(name)
    for option in ([], ["--json"]):
        written = io.BytesIO()
        strict = io.TextIOWrapper(written, encoding="utf-8", errors="strict")
        monkeypatch.setattr(sys, "stdout", strict)
        monkeypatch.setattr(sys, "argv", ["longbird", "ask", name, name, "What closed?", *option])
        with pytest.raises(SystemExit) as done:
            main()
        assert done.value.code == 0
        strict.flush()
        printed = written.getvalue().decode("utf-8")
        assert "caf\\udce9.txt" in printed
        if option:
            assert json.loads(printed)[0]["file"] == name


def test_json_is_whole_where_stdout_has_not_all_letters(
    mill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1"))
    question = "\U0001f600 What closed?"
    monkeypatch.setattr(sys, "argv", ["longbird", "ask", str(mill), question, "--json"])
    with pytest.raises(SystemExit) as done:
        main()
    sys.stdout.flush()
    assert done.value.code == 0
    assert json.loads(written.getvalue().decode("latin-1"))[0]["question"] == question


def test_closed_stdin_is_no_question(mill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="there is no question, and stdin"):
        list(command._questions([]))  # pyright: ignore[reportPrivateUsage]


def test_one_bad_question_does_not_end_a_session(
    mill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: Known, text: str, question: str, before: Any = Known.ask) -> Answer:
        if "long" in question:
            raise ValueError("the question is too long")
        return before(self, text, question)

    monkeypatch.setattr(Known, "ask", ask)
    typed = "What closed?\nToo long?\nWho built?\n"
    done = CliRunner().invoke(app, ["ask", str(mill), "--json"], input=typed)
    assert [each["answer"] for each in json.loads(done.stdout)] == ["1931", "1790"]
    assert done.exit_code == 2
    assert "too long" in done.stderr
    alone = CliRunner().invoke(app, ["ask", str(mill), "-q", "Too long?"])
    assert isinstance(alone.exception, ValueError)


def test_documents_that_were_read_in_passages_are_named_once(
    mill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(self: Known, text: str, question: str, before: Any = Known.ask) -> Answer:
        return replace(before(self, text, question), passages=3)

    options = ["ask", str(mill), "-q", "What closed?", "-q", "Who built?"]
    assert "passages" not in CliRunner().invoke(app, options).stderr
    monkeypatch.setattr(Known, "ask", ask)
    said = CliRunner().invoke(app, options).stderr
    assert said.count("it was read in 3 overlapping passages") == 1
