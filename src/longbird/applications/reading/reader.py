"""Questions about documents, answered by a trained model."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longbird.applications.documents.sentences import sentences
from longbird.applications.reading.confidence import Confidence
from longbird.applications.reading.model_inputs import (
    EncodedQuestion,
    columns,
    encode,
    positions,
    window_inputs,
)
from longbird.applications.reading.model_outputs import best_answer, join, margin, said
from longbird.applications.reading.second_pass import looked_twice, passages, worth
from longbird.applications.reading.word_overlap import shared
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.collator import LongbirdCollator

LONGEST_ANSWER = 30
"""Tokens, unless a model says otherwise."""
EVIDENCE = 3
"""Sentences that are shown."""
HEADING = re.compile(r"(?:[A-Za-zÀ-ɏ]|[^\w]|_){,20}")
"""A sentence of so few letters supports an answer, or is close to a question, only if it has a
word of the question: "III." says nothing. Numbers do, and so do twenty characters of Chinese."""
TOKENS_AT_ONCE = 8192


@dataclass(frozen=True)
class Evidence:
    """A sentence that supports an answer, or the closest there is.

    Attributes:
        text: The sentence.
        start: Its first character in the document.
        end: The character behind it.
        score: The probability that it supports the answer, by the model; if the model is not sure,
            the mean of that and of the share of the question's words that the sentence has.
    """

    text: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Answer:
    """The answer to a question about a document.

    Attributes:
        text: Words of the document, "yes" or "no"; None if the model is not sure.
        confidence: The probability that the best answer is right.
        start: The first character of the answer in the document; None for yes, no and None.
        end: The character behind it.
        evidence: The sentences that support it, in their order; if the model is not sure, the
            closest sentences, the closest first.
        passages: In how many passages the document was read.
    """

    text: str | None
    confidence: float
    start: int | None
    end: int | None
    evidence: tuple[Evidence, ...]
    passages: int = 1


@dataclass(frozen=True)
class _Reading:
    """A document with a question as the model reads it: what `answering.join` takes."""

    text: str
    question: str
    tokens: EncodedQuestion
    windows: list[range]
    sentences: list[tuple[int, int]]
    sentence_tokens: list[int]
    paragraphs: list[int]

    def row(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "skipped": 0,
            "starts": self.tokens.starts,
            "ends": self.tokens.ends,
            "first": self.tokens.first,
            "paragraphs": self.paragraphs,
            "windows": [(each.start, each.stop) for each in self.windows],
            "sentence_tokens": self.sentence_tokens,
        }


class Reader:
    """Answers questions about documents of any length, with the sentences that support them.

    Examples:
        >>> import longbird as lb
        >>> reader = lb.Reader.from_pretrained("default")
        >>> text = "The plant was built in 1961. It was closed in May 1998."
        >>> answer = reader.ask(text, "When was the plant closed?")
        >>> 0 <= answer.confidence <= 1
        True
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        """Takes a `LongbirdForQuestionAnswering` and the tokenizer of its words."""
        self.model, self.tokenizer = model.eval(), tokenizer
        config = model.config
        self.typed, self.supported = bool(config.num_answer_types), config.supporting_sentences
        kept = (getattr(config, "task_specific_params", None) or {}).get("question-answering", {})
        self.twice = bool(kept.get("twice"))
        self.restarts = kept.get("positions") == "paragraph"
        self.no_answer = kept.get("no_answer")
        self.support = float(kept.get("support", 0.5))
        fitted = kept.get("confidence")
        self.confidence = None if fitted is None else Confidence(**fitted)
        self.length = min(kept.get("length", config.longest_document), config.longest_document)
        self.longest_answer = int(kept.get("answer_tokens", LONGEST_ANSWER))

    @classmethod
    def from_pretrained(
        cls, source: str | Path = "default", quantize: str | None = None
    ) -> Reader:
        """A reader by name, or from the folder of a `longbird finetune ask` run or of a model.

        Args:
            source: "default" is the one that comes with Longbird.
            quantize: "int8" reads faster, and nearly as well.

        Raises:
            ValueError: It is not a model for questions.
            OSError: There is no such folder.
        """
        from longbird.applications.reading.default_reader import folder_of_reader
        from longbird.applications.reading.loading import load_model, load_tokenizer
        from longbird.files.cache import suggesting_deletion

        folder = folder_of_reader(source)
        options = {} if quantize is None else {"quantize": quantize}
        with suggesting_deletion(folder):
            model = load_model(folder, "LongbirdForQuestionAnswering", **options)
            return cls(model, load_tokenizer(folder))

    def ask(self, text: str, question: str) -> Answer:
        """The answer to a question about a text.

        Raises:
            ValueError: The question is empty, or has thousands of words.
        """
        return next(self.ask_all([(text, question)]))

    def ask_all(
        self,
        pairs: Iterable[tuple[str, str]],
        advance: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> Iterator[Answer]:
        """The answers to several questions, each with its text, in their order.

        Args:
            pairs: Texts with questions.
            advance: Called after each step with how many tokens of how many are read, of a
                pair, or of several short ones that are read together.
        """
        group: list[_Reading] = []  # short ones are read together
        tokens = 0
        for pair in pairs:
            if isinstance(pair, str):  # of two letters, say
                raise InvalidTypeError(f"expected a text with its question, received {pair!r:.80}")
            text, question = pair
            group.append(self._prepared(text, question))
            tokens += len(group[-1].tokens.ids)
            if tokens >= TOKENS_AT_ONCE:
                yield from self._answers(group, advance)
                group, tokens = [], 0
        yield from self._answers(group, advance)

    # ---- a document as the model reads it

    def _prepared(self, text: str, question: str) -> _Reading:
        for name, value in (("text", text), ("question", question)):
            if not isinstance(value, str):
                raise InvalidTypeError(f"{name} must be a str, received {type(value).__name__}")
        if not question.strip():
            raise InvalidValueError("the question is empty")
        shown = question if len(question) < 60 else question[:57] + "..."
        (tokens,) = encode([(question, text)], [repr(shown)], self.tokenizer, self.length)
        places = [
            (place, first[0])
            for place in sentences(text)
            if (first := tokens.tokens_of(*place)) is not None
        ]
        return _Reading(
            text,
            question,
            tokens,
            tokens.windows(self.length),
            [place for place, _ in places],
            [token for _, token in places],
            tokens.paragraphs(text),
        )

    def _inputs(self, reading: _Reading, window: range) -> dict[str, list[int]]:
        """What the model takes of a window."""
        tokens = reading.tokens
        here = (tokens.first, window.start, window.stop)
        at = (tokens.first, tokens.last, window.start, window.stop)
        row = window_inputs(tokens.ids, tokens.types, *at)
        row["attention_mask"] = [1] * len(row["input_ids"])
        if self.restarts:
            places = positions(len(tokens.ids), *at, reading.paragraphs, self.length)
            row["position_ids"] = [place + self.model.config.first_position for place in places]
        if self.supported:
            row["sentence_positions"] = columns(reading.sentence_tokens, *here)
        row["paragraph_positions"] = columns(reading.paragraphs, *here)
        return row

    def _batch(self, rows: Sequence[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        """Windows as tensors [windows, tokens], the shorter ones padded."""
        batch = LongbirdCollator(self.tokenizer)(rows)
        if not batch["token_type_ids"].any():
            del batch["token_type_ids"]
        return batch

    # ---- what the model says

    def _answers(
        self, readings: Sequence[_Reading], advance: Callable[[int, int], None]
    ) -> Iterator[Answer]:
        whole = [each.windows if each.tokens.first < each.tokens.last else [] for each in readings]
        looks = self._look(readings, whole, advance)
        rows = [reading.row() for reading in readings]
        found = [
            join(row, parts, self.typed, self.supported) if parts else None
            for row, parts in zip(rows, looks, strict=True)
        ]
        if self.twice:
            again = [
                [] if each is None else passages(row, each)
                for row, each in zip(rows, found, strict=True)
            ]
            looks = self._look(readings, [[range(*x) for x in each] for each in again], advance)
            for number, parts in enumerate(looks):
                first, row, chosen = found[number], rows[number], again[number]
                if first is not None and parts:
                    row |= {"windows": chosen, "worth": worth(row, first, chosen)}
                    second = join(row, parts, self.typed, self.supported)
                    found[number] = looked_twice(first, second)
        for reading, each in zip(readings, found, strict=True):
            if each is None:
                yield Answer(None, 0.0, None, None, (), 0)
            else:
                yield self._decided(reading, each)

    def _look(
        self,
        readings: Sequence[_Reading],
        windows: Sequence[Sequence[range]],
        advance: Callable[[int, int], None],
    ) -> list[list[dict[str, Any]]]:
        """What the model says of windows of each document, those of like length together."""
        every = [(number, each) for number, some in enumerate(windows) for each in some]
        sizes = [readings[number].tokens.first + len(each) for number, each in every]
        parts: list[Any] = [None] * len(every)
        done = 0
        for batch in _together(sizes):
            rows = [self._inputs(readings[every[at][0]], every[at][1]) for at in batch]
            inputs = self._batch(rows)
            given = {name: x for name, x in inputs.items() if name != "paragraph_positions"}
            with torch.inference_mode():
                outputs = self.model(**given)
            found = said(outputs, inputs, self.longest_answer, self.typed, self.supported)
            for at, part in zip(batch, found, strict=True):
                parts[at] = part
            done += sum(sizes[at] for at in batch)
            advance(done, sum(sizes))
        looks: list[list[dict[str, Any]]] = [[] for _ in windows]
        for (number, _), part in zip(every, parts, strict=True):
            looks[number].append(part)
        return looks

    def _decided(self, reading: _Reading, found: dict[str, Any]) -> Answer:
        kind, span = best_answer(found), found["span"]
        sure = self.confidence
        if sure is not None:
            confidence = sure.of(found)
            silent = confidence < sure.least
        else:  # of a model that nothing was held out for
            confidence = span["chance"] if kind == "span" and span is not None else 1.0
            silent = False
            if self.typed and self.no_answer is not None:
                silent = margin(found["types"]) > self.no_answer
        silent |= kind == "span" and (span is None or not span["text"].strip())
        given = span if kind == "span" and not silent else None
        text = None if silent else kind if given is None else given["text"]
        return Answer(
            text,
            confidence,
            None if given is None else given["start"],
            None if given is None else given["end"],
            self._evidence(reading, found, given, silent),
            len(reading.windows),
        )

    def _evidence(
        self, reading: _Reading, found: dict[str, Any], given: Any, silent: bool
    ) -> tuple[Evidence, ...]:
        """The sentence of the answer, and those that support it most."""
        starts = [start for start, _ in reading.sentences]
        span = given or found["span"]
        own = -1 if span is None else bisect_right(starts, span["start"]) - 1
        scores = dict.fromkeys(range(len(starts)), 0.0)
        if self.supported:
            logits = np.array(found["sentences"][: len(starts)])
            scores = dict(enumerate((1 / (1 + np.exp(-logits.clip(-30, 30)))).tolist()))
        elif span is not None and own >= 0:
            scores[own] = span["chance"]
        texts = [reading.text[start:end] for start, end in reading.sentences]
        close = shared(reading.question, texts)
        telling = [at for at, text in enumerate(texts) if close[at] or not HEADING.fullmatch(text)]
        if silent:
            scores = {at: (score + float(close[at])) / 2 for at, score in scores.items()}
        ranked = best = sorted(telling or scores, key=lambda number: -scores[number])[:EVIDENCE]
        if not silent:
            ranked = [each for each in best if scores[each] >= self.support]
            if given is not None and own >= 0:
                goes_on = reading.sentences[own][1] < given["end"]
                ranked = [own, *([own + 1] if goes_on else []), *ranked]
            ranked = sorted(set(ranked or best[:1]))
        return tuple(
            Evidence(
                reading.text[slice(*reading.sentences[each])],
                *reading.sentences[each],
                scores.get(each, 0.0),
            )
            for each in ranked
            if each < len(starts)
        )


def _together(sizes: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of windows that are read at once, of such sizes.

    Examples:
        >>> list(_together([5000, 4000, 100, 4096, 120]))
        [[2, 4], [1, 3], [0]]
    """
    batch: list[int] = []
    for number in sorted(range(len(sizes)), key=lambda number: sizes[number]):
        if batch and sizes[number] * (len(batch) + 1) > TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
