"""Many questions about many documents: all of it is read, or what is closest to each question."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longbird.applications.documents import Document
from longbird.applications.reading.passage_selection import Narrow, Passage, merged
from longbird.applications.reading.reader import Answer, Evidence, Reader

READ_WHOLE = 131_072
"""Tokens of all documents together, up to which they are read whole for each question."""
NARROWED = 16_384
"""Of more, tokens of the passages that are read for each question. F1 of thirty questions about
124,000 words was 52 with as many, and 52 with half of them."""
BETWEEN = "\n\n"
"""Passages, as between paragraphs."""
BYTES = 4.2
"""Of a token of English in UTF-8, about: counting all tokens would take too long. Numbers, and
scripts with a token for each character, have fewer bytes in a token, and count for less."""


@dataclass(frozen=True)
class Asked:
    """A question about a document, with its answer.

    Attributes:
        document: The document.
        question: The question.
        answer: Of `Reader.ask`, by characters of the whole document.
        narrowed: Were only the closest passages read, or none?
    """

    document: Document
    question: str
    answer: Answer
    narrowed: bool = False

    def as_json(self) -> dict[str, Any]:
        """What `longbird ask --json` prints of it."""
        return {
            "file": self.document.file,
            "question": self.question,
            "answer": self.answer.text,
            "confidence": round(self.answer.confidence, 4),
            "start": self.answer.start,
            "end": self.answer.end,
            "evidence": [
                {
                    "text": each.text,
                    "start": each.start,
                    "end": each.end,
                    "score": round(each.score, 4),
                }
                for each in self.answer.evidence
            ],
        }


class Asking:
    """Answers questions about documents.

    Args:
        reader: Reads them.
        documents: What is asked about.
        embedder: Makes a `longbird.Embedder`, if the documents are too many to be read whole.
        most: Tokens of all documents together that are read whole for each question.
    """

    def __init__(
        self,
        reader: Reader,
        documents: Sequence[Document],
        embedder: Callable[[], Any],
        most: int = READ_WHOLE,
    ) -> None:
        self.reader, self.documents, self.embedder = reader, documents, embedder
        self.most = most
        self.tokens = sum(self._tokens(each.text) for each in documents)
        self.narrow: Narrow | None = None

    @property
    def whole(self) -> bool:
        """Are all documents read whole?"""
        return self.tokens <= self.most

    def about(self) -> Iterator[str]:
        """What the user should know of how the documents are read."""
        if not self.whole:
            many = len(self.documents) > 1
            what = f"the {len(self.documents):,} files have" if many else "the document has"
            yield (
                f"{what} about {self.tokens:,} tokens, more than the {self.most:,} that are read "
                "whole for a question (--read): the passages closest to the question by embedding "
                f"and by words are read, about {self._room():,} tokens"
            )

    def in_passages(self, answers: Sequence[Asked]) -> Iterator[str]:
        """What the user should know of documents that were too long to be read at once."""
        long = [each for each in answers if each.answer.passages > 1 and not each.narrowed]
        for each in long[:3]:
            yield (
                f"{each.document.file} is longer than the {self.reader.length:,} tokens that the "
                f"model reads at once: it was read in {each.answer.passages:,} passages that "
                "overlap"
            )
        if len(long) > 3:
            yield f"so were {len(long) - 3:,} others"

    def check(self, question: str) -> None:
        """Raises for a question that cannot be asked, such as one of thousands of words."""
        self.reader.ask("", question)

    def ask(
        self, question: str, advance: Callable[[str], None] = lambda _: None
    ) -> Iterator[Asked]:
        """The answers of all documents to a question, in their order."""
        if not self.whole:
            advance("Narrowing down what to read")
            yield from self._narrowed(question, advance)
            return
        name = self.documents[0].file if self.documents else ""

        def told(done: int, of: int) -> None:
            advance(f"Reading {name}: {done:,} of {of:,} tokens")

        def pairs() -> Iterator[tuple[str, str]]:
            nonlocal name
            for document in self.documents:
                name = document.file
                yield document.text, question

        answers = self.reader.ask_all(pairs(), told)
        for document, answer in zip(self.documents, answers, strict=True):
            yield Asked(document, question, answer)

    def _narrowed(self, question: str, advance: Callable[[str], None]) -> Iterator[Asked]:
        if self.narrow is None:
            embedder = self.embedder()
            texts = [document.text for document in self.documents]
            self.narrow = Narrow(
                texts, lambda some: embedder.embed(some).vectors, embedder.embed_queries
            )
        closest = self.narrow.closest(question)
        chosen: list[Passage] = []
        room = self._room()
        for passage in closest:
            text = self.documents[passage.text].text
            room -= self._tokens(text[passage.start : passage.end])
            if room < 0 and chosen:
                break
            chosen.append(passage)
        to_read = merged(chosen)
        for number, document in enumerate(self.documents):
            pieces = [each for each in to_read if each.text == number]
            if pieces:
                advance(f"Reading {document.file}")
                yield Asked(document, question, self._read(document.text, pieces, question), True)
                continue
            # No passage of it was close enough to be read.
            yield Asked(document, question, Answer(None, 0.0, None, None, (), 0), True)

    def _read(self, text: str, pieces: Sequence[Passage], question: str) -> Answer:
        """The answer of some passages of a text, which are read as one text."""
        begins: list[int] = []
        parts: list[str] = []
        length = 0
        for piece in pieces:
            begins.append(length)
            parts.append(text[piece.start : piece.end])
            length += piece.end - piece.start + len(BETWEEN)
        answer = self.reader.ask(BETWEEN.join(parts), question)

        def place(start: int, end: int) -> tuple[int, int]:
            """Characters of the whole text; what goes over the end of a passage ends there."""
            at = bisect_right(begins, start) - 1
            by = pieces[at].start - begins[at]
            return start + by, min(end + by, pieces[at].end)

        evidence = tuple(
            Evidence(text[slice(*where)], *where, each.score)
            for each in answer.evidence
            for where in [place(each.start, each.end)]
        )
        answer = replace(answer, evidence=evidence)
        if answer.start is None or answer.end is None:
            return answer
        start, end = place(answer.start, answer.end)
        return replace(answer, text=text[start:end], start=start, end=end)

    def _room(self) -> int:
        return min(NARROWED, self.most)

    def _tokens(self, text: str) -> int:
        size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        return round(size / BYTES)
