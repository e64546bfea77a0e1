"""The document of the demo, and questions about it whose answers are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from longbird.applications.documents import Document
from longbird.applications.reading.answer_normalization import normalized
from longbird.bench.demo.once import CHUNK

TITLE = "Jimmy Carter's last State of the Union message, 16 January 1981"


@dataclass(frozen=True)
class Known:
    """A question with the answers that are right; none if the document does not answer it."""

    question: str
    answers: tuple[str, ...]


QUESTIONS = (
    Known(
        "Which commission reviewed the accident at Three Mile Island?",
        ("Kemeny Commission", "the Kemeny Commission"),
    ),
    Known(
        "How many lawsuits have been brought by the hazardous waste strike force?",
        ("50", "50 lawsuits"),
    ),
    Known(
        "How many Cubans expelled by Fidel Castro were accepted for entry?",
        ("125,000", "125,000 Cubans"),
    ),
    Known(
        "Which treaty was signed between Egypt and Israel?", ("Peace Treaty", "the Peace Treaty")
    ),
    Known("Who painted the Mona Lisa?", ()),
)


@dataclass(frozen=True)
class Told:
    """What a way of reading answered.

    Attributes:
        known: The question.
        answer: As `longbird.Reader.ask` gives it.
        seconds: How long it took.
    """

    known: Known
    answer: Any
    seconds: float

    @property
    def right(self) -> bool:
        """Is it one of the right answers, or silence where there is none?"""
        if not self.known.answers:
            return self.answer.text is None
        given = normalized(self.answer.text or "")
        return given in [normalized(each) for each in self.known.answers]


@dataclass
class Story:
    """All that the demo found, for the terminal and for the page."""

    document: Document
    words: int
    whole: list[Told] = field(default_factory=list[Told])
    chunks: list[Told] = field(default_factory=list[Told])
    once: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def document() -> Document:
    """The longest of the State of the Union addresses."""
    from longbird.files.sources import addresses

    found = addresses.longest()
    return Document(f"{found.name}.txt", found.text)


def answered(reader: Any, text: str, questions: Sequence[Known]) -> Iterator[Told]:
    """The answers to questions, and how long each took."""
    for known in questions:
        start = perf_counter()
        answer = reader.ask(text, known.question)
        yield Told(known, answer, perf_counter() - start)


def tell(out: Path, show: Callable[[str, Any], None]) -> Story:
    """Runs all of it.

    Args:
        out: The folder of the page.
        show: Is called with the name of a part and what was found, as soon as it is.
    """
    from longbird.applications.reading.reader import Reader
    from longbird.bench.demo.once import measured
    from longbird.bench.demo.page import write_page

    text = document()
    story = Story(text, len(text.text.split()))
    show("document", story)
    reader = Reader.from_pretrained("default")
    reader.ask(text.text[:20000], QUESTIONS[0].question)  # what is built at its first use
    for told in answered(reader, text.text, QUESTIONS):
        story.whole.append(told)
        show("whole", told)
    # How sure the reader is was fitted to long passages; of chunks, its best guess counts. So
    # questions without an answer, where every guess is wrong, are not asked of them.
    reader.length = CHUNK
    if reader.confidence is not None:
        reader.confidence = replace(reader.confidence, least=0.0)
    for told in answered(reader, text.text, [known for known in QUESTIONS if known.answers]):
        story.chunks.append(told)
        show("chunks", told)
    for found in measured(text.text):
        story.once.append(found)
        show("once", found)
    write_page(story, out / "demo.html")
    return story
