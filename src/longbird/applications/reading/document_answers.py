"""Answers from several documents, of which all or only the closest passages are read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from longbird.applications.documents import Document
from longbird.applications.reading.passage_selection import Passage, PassageIndex, merged
from longbird.applications.reading.reader import Answer, Evidence, Reader

READ_WHOLE = 131_072
"""Maximum number of tokens of all documents together that are read completely per question."""
NARROWED = 16_384
"""Maximum number of tokens read per question when the documents are too long to read completely.
F1 of thirty questions about 124,000 words was 52 with this number, and 52 with half of it."""
BETWEEN = "\n\n"
"""Separator inserted between passages."""
BYTES = 4.2
"""Approximate number of UTF-8 bytes per token of English; counting tokens would take too long.
Numbers, and scripts with a token for each character, have fewer bytes per token, and so more
tokens than estimated."""


@dataclass(frozen=True)
class DocumentAnswer:
    """The answer of a document to a question.

    Attributes:
        document: The document.
        question: The question.
        answer: The answer, with positions in the text of the document.
        narrowed: Whether only the closest passages of the document were read, or none.
    """

    document: Document
    question: str
    answer: Answer
    narrowed: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the object that `longbird ask --json` prints."""
        return {
            "file": self.document.file,
            "question": self.question,
            "answer": self.answer.text,
            "confidence": round(self.answer.confidence, 4),
            "start": self.answer.start,
            "end": self.answer.end,
            "evidence": [
                {**vars(each), "score": round(each.score, 4)} for each in self.answer.evidence
            ],
        }


class DocumentReader:
    """Answers questions about documents.

    Args:
        reader: The reader.
        documents: The documents.
        embedder: Function that makes a `longbird.Embedder`; called if the documents are too long
            to be read completely.
        most: Maximum number of tokens of all documents together that are read completely.
    """

    def __init__(
        self,
        reader: Reader,
        documents: Sequence[Document],
        embedder: Callable[[], Any],
        most: int = READ_WHOLE,
    ) -> None:
        self.reader, self.documents, self.embedder = reader, documents, embedder
        self.most, self.room = most, min(NARROWED, most)
        self.tokens = sum(_estimated_tokens(each.text) for each in documents)
        self.index: PassageIndex | None = None

    @property
    def reads_all(self) -> bool:
        """Whether all documents are read completely."""
        return self.tokens <= self.most

    def messages(self) -> Iterator[str]:
        """Yield what the user should know about how the documents are read."""
        if not self.reads_all:
            several = len(self.documents) > 1
            what = f"the {len(self.documents):,} files have" if several else "the document has"
            yield (
                f"{what} about {self.tokens:,} tokens, more than the {self.most:,} that are read "
                "completely for a question (`read`): only the passages closest to the question, "
                f"by embedding and by words, are read, about {self.room:,} tokens"
            )

    def window_messages(self, answers: Sequence[DocumentAnswer]) -> Iterator[str]:
        """Yield messages about documents that were too long to be read at once."""
        long = [each for each in answers if each.answer.passages > 1 and not each.narrowed]
        for each in long[:3]:
            yield (
                f"{each.document.file} is longer than the {self.reader.length:,} tokens that the "
                f"model reads at once: it was read in {each.answer.passages:,} overlapping "
                "passages"
            )
        if len(long) > 3:
            yield f"so were {len(long) - 3:,} others"

    def check(self, question: str) -> None:
        """Raise an error for a question that cannot be asked, such as one that is too long."""
        self.reader.ask("", question)

    def ask(
        self, question: str, advance: Callable[[str], None] = lambda _: None
    ) -> Iterator[DocumentAnswer]:
        """Yield the answers of all documents to a question, in order.

        Args:
            question: The question.
            advance: Function that is called with what is being done.
        """
        if not self.reads_all:
            advance("Selecting passages")
            yield from self._ask_passages(question, advance)
            return
        name = ""

        def pairs() -> Iterator[tuple[str, str]]:
            nonlocal name
            for document in self.documents:
                name = document.file
                yield document.text, question

        answers = self.reader.ask_all(
            pairs(), lambda done, of: advance(f"Reading {name}: {done:,} of {of:,} tokens")
        )
        for document, answer in zip(self.documents, answers, strict=True):
            yield DocumentAnswer(document, question, answer)

    def _ask_passages(
        self, question: str, advance: Callable[[str], None]
    ) -> Iterator[DocumentAnswer]:
        if self.index is None:
            embedder = self.embedder()
            texts = [document.text for document in self.documents]
            self.index = PassageIndex(
                texts, lambda some: embedder.embed(some).vectors, embedder.embed_queries
            )
        chosen: list[Passage] = []
        room = self.room
        for passage in self.index.closest(question):
            text = self.documents[passage.text].text
            room -= _estimated_tokens(text[passage.start : passage.end])
            if room < 0 and chosen:
                break
            chosen.append(passage)
        to_read = merged(chosen)
        for number, document in enumerate(self.documents):
            answer = Answer(None, 0.0, None, None, (), 0)
            if pieces := [each for each in to_read if each.text == number]:
                advance(f"Reading {document.file}")
                answer = self._read(document.text, pieces, question)
            yield DocumentAnswer(document, question, answer, True)

    def _read(self, text: str, pieces: Sequence[Passage], question: str) -> Answer:
        """Answer from some passages of a text, which are read as one text."""
        parts = [text[piece.start : piece.end] for piece in pieces]
        begins = list(accumulate((len(part) + len(BETWEEN) for part in parts), initial=0))[:-1]
        answer = self.reader.ask(BETWEEN.join(parts), question)

        def place(start: int, end: int) -> tuple[int, int]:
            """Map positions to the whole text, and cut spans at the end of their passage."""
            at = bisect_right(begins, start) - 1
            offset = pieces[at].start - begins[at]
            return start + offset, min(end + offset, pieces[at].end)

        places = [place(each.start, each.end) for each in answer.evidence]
        evidence = tuple(
            Evidence(text[start:end], start, end, each.score)
            for each, (start, end) in zip(answer.evidence, places, strict=True)
        )
        answer = replace(answer, evidence=evidence)
        if answer.start is None or answer.end is None:
            return answer
        start, end = place(answer.start, answer.end)
        return replace(answer, text=text[start:end], start=start, end=end)


def _estimated_tokens(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return round(size / BYTES)
