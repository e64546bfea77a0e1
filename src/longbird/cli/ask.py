"""`longbird ask`: answer questions from documents."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longbird.cli.early import check_model
from longbird.cli.errors import complain
from longbird.cli.options import AsJson, Encoding
from longbird.cli.terminal import echo_json, note, one_line, printable, say, stdout, working
from longbird.errors import InvalidValueError, MissingFileError

if TYPE_CHECKING:
    from longbird.applications.documents import Document
    from longbird.applications.reading.document_answers import DocumentAnswer, DocumentReader
    from longbird.applications.reading.reader import Answer

QUIT = (":quit", ":q", ":exit")
MARKS = ("?", "\uff1f", "\u061f")
"""Question marks of Latin, Chinese and Japanese, and Arabic scripts."""
SHOWN = 300
"""Maximum number of characters of a sentence shown before and after an answer."""


def ask(
    files: Annotated[
        list[str],
        typer.Argument(
            help="txt, md, html, pdf, docx or epub files, folders of these, or - for stdin; the "
            "last argument may be a question.",
            metavar="FILE... [QUESTION]",
        ),
    ],
    question: Annotated[
        list[str] | None, typer.Option("-q", "--question", help="A question; may be repeated.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="default, or the folder of a `longbird finetune ask` run or of a model."
        ),
    ] = "default",
    as_json: AsJson = False,
    encoding: Encoding = None,
    read: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of tokens of all files read completely; of longer files, "
            "only the passages closest to the question are read. [131072]",
            min=1024,
        ),
    ] = None,
    quantize: Annotated[
        str | None, typer.Option(help="int8 reads faster, with nearly the same quality.")
    ] = None,
) -> None:
    """Answer questions from documents, with confidence and supporting sentences.

    Without a question, it prompts for one after another.

    For example:

    longbird ask report.pdf "When was the plant closed?"

    longbird ask minutes/*.docx -q "Who chaired the meeting?" -q "What was decided?"

    longbird ask essay.txt --json -q "Why did the author leave?"
    """
    names, asked = _split_arguments(files, question or [])
    if quantize not in (None, "int8"):
        raise InvalidValueError(f"--quantize must be int8, received {quantize}")
    if model != "default":
        check_model(model)
    if not asked and "-" in names:
        raise InvalidValueError("- takes the document from stdin, so give the questions with -q")
    documents = _documents(names, encoding)
    with working("Loading the reader"):
        reader = _reader(documents, model, quantize, read)
    for each in asked:  # answering the first may take minutes
        reader.check(each)
    for line in reader.messages():
        note(line)
    found: list[Any] = []
    told, failed = False, 0
    for each in _questions(asked):
        try:
            answers = list(_answered(reader, each))
        except ValueError as error:  # for example a question that is too long
            if asked:
                raise
            complain(str(error))
            failed += 1
            continue
        if not told:
            for line in reader.window_messages(answers):
                note(line)
            told = True
        if as_json:
            found += [answer.as_json() for answer in answers]
        else:
            _show(answers, len(documents) > 1)
    if as_json:
        echo_json(found, indent=2)
    if failed:
        raise typer.Exit(2)


def _split_arguments(files: list[str], questions: list[str]) -> tuple[list[str], list[str]]:
    """Return files and questions; the last argument may be a question instead of a file."""
    names, asked = list(files), list(questions)
    last = names[-1]
    like_file = any(letter.isalnum() or letter in "./~" for letter in last)
    like_one = len(last.split()) != 1 or last.rstrip().endswith(MARKS) or not like_file
    if not asked and last != "-" and like_one and not os.path.exists(last):
        asked = [names.pop()]
    for each in asked:
        if not each.strip():
            raise InvalidValueError("a question is empty")
    if not names:
        raise InvalidValueError(
            f"which file should be asked {last!r}? Give it before the question"
        )
    for name in names:
        if name != "-" and not os.path.exists(name):
            hint = "" if asked else "; a question comes last, in quotes, or after -q"
            if questions and name == last and like_one:
                hint = "; if it is a question, it needs a -q of its own, as the others have"
            raise MissingFileError(f"there is no file or folder {name}{hint}")
    return names, asked


def _documents(names: list[str], encoding: str | None) -> list[Document]:
    from longbird.applications.documents import read_documents

    documents = list(read_documents(names, encoding, tell=note))
    for each in documents:
        for line in each.notes:
            note(f"{one_line(each.file)}: {line}")
    return documents


def _reader(
    documents: list[Document], model: str, quantize: str | None, read: int | None
) -> DocumentReader:
    from longbird.applications.reading.document_answers import READ_WHOLE, DocumentReader
    from longbird.applications.reading.reader import Reader

    def embedder() -> Any:
        from longbird.applications.search.embedder import Embedder
        from longbird.files.sources import minilm

        return Embedder.from_pretrained(minilm.path())  # even if there is a folder ./minilm

    reader = Reader.from_pretrained(model, quantize)
    return DocumentReader(reader, documents, embedder, READ_WHOLE if read is None else read)


def _questions(given: list[str]) -> Iterator[str]:
    """Yield the given questions, or those that are typed until `:quit`."""
    if given:
        yield from given
        return
    if sys.stdin is None:  # closed by the calling process
        raise InvalidValueError(
            "there is no question, and stdin, from which it could be read, is closed"
        )
    typing, asked = sys.stdin.isatty(), False
    if isinstance(sys.stdin, io.TextIOWrapper):  # invalid bytes are not an error
        sys.stdin.reconfigure(errors="replace")
    if typing:
        _remember()
        note("Ask a question, or :quit")
    while True:
        try:
            if typing and not stdout.is_terminal:
                note("? ", end="")  # stdout may be a file of JSON
            line = input("? " if typing and stdout.is_terminal else "").strip()
        except EOFError:
            break
        except KeyboardInterrupt:
            note("")
            return
        if line in QUIT:
            return
        if typing and line.startswith(":"):
            note("Type a question, or :quit to end; the arrow keys bring back earlier questions")
        elif line:
            asked = True
            yield line
    if not (typing or asked):
        raise InvalidValueError(
            "there is no question: give one after the files, or with -q, or one per line on stdin"
        )


def _remember() -> None:
    """Keep the history of questions, for the arrow keys, in the cache folder."""
    try:
        import atexit
        import readline

        from longbird.files.sources.packages import cache_folder

        file = cache_folder() / "questions-asked"
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            readline.read_history_file(file)
        readline.set_history_length(1000)

        def write() -> None:
            with contextlib.suppress(OSError):
                readline.write_history_file(file)

        atexit.register(write)
    except (ImportError, OSError):
        return  # without a history


def _answered(reader: DocumentReader, question: str) -> Iterator[DocumentAnswer]:
    with working("Reading") as show:
        yield from reader.ask(question, show)


# ---- output


def _show(answers: list[DocumentAnswer], many: bool) -> None:
    """Print answers, the most confident first, and name the documents without one."""
    from rich.text import Text

    stdout.print(Text(printable(answers[0].question), style="bold"))
    given = [each for each in answers if each.answer.text is not None]
    given.sort(key=lambda each: -each.answer.confidence)
    for each in given:
        line = Text("  ")
        line.append(one_line(each.answer.text or ""), style="bold green")
        line.append(f"  ({each.answer.confidence:.0%} sure")
        line.append(f", {one_line(each.document.file)})" if many else ")")
        stdout.print(line, soft_wrap=True)
        show_evidence(each.document, each.answer)
    if not given:
        say("  Not sure: the documents may not have the answer. The closest passages:")
        for each in _closest(answers):
            show_evidence(each.document, each.answer, with_file=many)
    elif len(given) < len(answers):
        silent = [each for each in answers if each.answer.text is None]
        files = ", ".join(one_line(each.document.file) for each in silent[:5])
        more = f" and {len(silent) - 5:,} others" if len(silent) > 5 else ""
        shown = [each for each in _closest(silent) if each.answer.evidence]
        say(f"  no sure answer in {files}{more}{'; the closest there:' if shown else ''}")
        for each in shown:
            show_evidence(each.document, each.answer, with_file=True, most=1)


def _closest(answers: list[DocumentAnswer]) -> list[DocumentAnswer]:
    """Return the three whose best sentences are closest to the question."""

    def best(answer: DocumentAnswer) -> float:
        return max((each.score for each in answer.answer.evidence), default=0.0)

    return sorted(answers, key=lambda each: -best(each))[:3]


def show_evidence(
    document: Document, answer: Answer, with_file: bool = False, most: int | None = None
) -> None:
    """Print the sentences that support an answer, one per line, with their places."""
    from rich.text import Text

    for each in answer.evidence[:most]:
        place = document.place(each.start)
        where = f"{one_line(document.file)}, {place}" if with_file else str(place)
        line = Text().append(f"    {where}, character {each.start:,}: ", style="dim")
        line.append_text(_marked(each.text, each.start, answer.start, answer.end))
        stdout.print(line, soft_wrap=True)


def _marked(text: str, begins: int, start: int | None, end: int | None) -> Any:
    """Return a sentence on one line; the answer is bold on a terminal, otherwise in **."""
    from rich.text import Text

    low = 0 if start is None else min(max(start - begins, 0), len(text))
    high = 0 if end is None else min(max(end - begins, 0), len(text))
    before, inside, after = text[:low], text[low:high], text[high:]
    if len(before) > SHOWN:
        before = "… " + before[-SHOWN:]
    if len(after) > SHOWN:
        after = after[:SHOWN] + " …"
    mark = "" if stdout.is_terminal else "**"
    line = Text(one_line(before))
    if inside.strip():
        line.append(f"{mark}{one_line(inside)}{mark}", style="bold underline")
    line.append(one_line(after))
    return line
