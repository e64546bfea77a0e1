"""The question demonstration: ask a long document questions whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from longbird.applications.documents import Document
from longbird.applications.training.metrics.squad import normalized
from longbird.cli.demo.cost import CHUNK, Cost
from longbird.cli.terminal import say, stdout

TITLE = "Jimmy Carter's last State of the Union message, 16 January 1981"


@dataclass(frozen=True)
class DemoQuestion:
    """A question with its right answers; none if the document does not answer it."""

    text: str
    answers: tuple[str, ...]


QUESTIONS = (
    DemoQuestion(
        "Which commission reviewed the accident at Three Mile Island?",
        ("Kemeny Commission", "the Kemeny Commission"),
    ),
    DemoQuestion(
        "How many lawsuits have been brought by the hazardous waste strike force?",
        ("50", "50 lawsuits"),
    ),
    DemoQuestion(
        "How many Cubans expelled by Fidel Castro were accepted for entry?",
        ("125,000", "125,000 Cubans"),
    ),
    DemoQuestion(
        "Which treaty was signed between Egypt and Israel?", ("Peace Treaty", "the Peace Treaty")
    ),
    DemoQuestion("Who painted the Mona Lisa?", ()),
)
ANSWERABLE = tuple(question for question in QUESTIONS if question.answers)


@dataclass(frozen=True)
class Response:
    """The reader's answer to a question.

    Attributes:
        question: Question that was asked.
        answer: Result of `longbird.Reader.ask`.
        seconds: Time that it took.
    """

    question: DemoQuestion
    answer: Any
    seconds: float

    @property
    def text(self) -> str:
        """The answer as it is shown."""
        return "not sure" if self.answer.text is None else self.answer.text

    @property
    def right(self) -> bool:
        """Whether this is a right answer, or no answer where there is none."""
        if not self.question.answers:
            return self.answer.text is None
        received = normalized(self.answer.text or "")
        return received in [normalized(each) for each in self.question.answers]


@dataclass
class Results:
    """Everything that the demonstration found, for the terminal and for the page.

    Attributes:
        document: Document that was read.
        passages: Responses of the reader in passages of 4,096 tokens.
        chunks: Responses of the same reader in chunks of 512 tokens.
        costs: Time and memory of single forward passes.
    """

    document: Document
    passages: list[Response] = field(default_factory=list[Response])
    chunks: list[Response] = field(default_factory=list[Response])
    costs: list[Cost] = field(default_factory=list[Cost])

    @property
    def words(self) -> int:
        """Number of words in the document."""
        return len(self.document.text.split())


def read_document() -> Document:
    """Return the longest of the State of the Union addresses, downloaded at its first use."""
    from longbird.files.sources import addresses

    found = addresses.longest()
    return Document(f"{found.name}.txt", found.text)


def ask_each(reader: Any, text: str, questions: Sequence[DemoQuestion]) -> Iterator[Response]:
    """Ask questions one after another, and time each."""
    for question in questions:
        start = perf_counter()
        answer = reader.ask(text, question.text)
        yield Response(question, answer, perf_counter() - start)


def show_answers(out: Path) -> Results:
    """Run the demonstration, showing each answer as soon as it is found.

    Args:
        out: Folder of demo.html.
    """
    from longbird.cli.ask import show_evidence

    say("Loading the reader")
    from longbird.applications.reading.reader import Reader
    from longbird.cli.demo.cost import measure
    from longbird.cli.demo.page import write_page

    document = read_document()
    results = Results(document)
    stdout.rule("The document")
    say(f"{TITLE}: {results.words:,} words")
    stdout.rule("Questions")
    reader = Reader.from_pretrained("default")
    reader.ask(document.text[:20000], QUESTIONS[0].text)  # the first call builds what is cached
    for response in ask_each(reader, document.text, QUESTIONS):
        results.passages.append(response)
        _show_response(response)
        show_evidence(document, response.answer)

    # The confidence was calibrated on long passages, so each guess on chunks counts, and no
    # question without an answer is asked: every guess would be wrong.
    stdout.rule(f"The same model in chunks of {CHUNK} tokens: its best guess")
    reader.length = CHUNK
    if reader.confidence is not None:
        reader.confidence = replace(reader.confidence, least=0.0)
    for response in ask_each(reader, document.text, ANSWERABLE):
        results.chunks.append(response)
        _show_response(response)

    stdout.rule("One forward pass")
    for cost in measure(document.text):
        results.costs.append(cost)
        say(
            f"{cost.tokens:>7,} tokens  {cost.title:<16} {cost.seconds:6.2f} s  "
            f"{cost.bytes / 1e6:6,.0f} MB"
        )
    write_page(results, out / "demo.html")
    _show_summary(results)
    say(f"Wrote {out / 'demo.html'}")
    return results


def _show_response(response: Response) -> None:
    verdict = "right" if response.right else "wrong"
    say(response.question.text)
    say(
        f"  {response.text}  ({verdict}; {response.answer.confidence:.0%} sure, "
        f"{response.seconds:.1f} s)"
    )


def _show_summary(results: Results) -> None:
    stdout.rule("In plain words")
    runs = [
        [each for each in responses if each.question.answers]
        for responses in (results.passages, results.chunks)
    ]
    counts = [sum(each.right for each in run) for run in runs]
    seconds = [sum(each.seconds for each in run) for run in runs]
    say(
        f"Of {len(runs[0])} questions that have an answer, {counts[0]} are answered correctly in "
        f"passages of 4,096 tokens ({seconds[0]:.0f} s), and {counts[1]} in chunks of {CHUNK}, "
        f"where every guess counts ({seconds[1]:.0f} s)."
    )
