"""Answering questions about documents with a trained model."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longbird.applications.documents.sentences import sentences as sentences_of
from longbird.applications.reading.confidence import Confidence
from longbird.applications.reading.model_inputs import encode, window_inputs
from longbird.applications.reading.model_outputs import best_answer, join, margin, window_outputs
from longbird.applications.reading.second_pass import combined_passes, first_pass_bonus, passages
from longbird.applications.reading.word_overlap import shared
from longbird.errors import InvalidTypeError, InvalidValueError
from longbird.models.collator import LongbirdCollator

LONGEST_ANSWER = 30
"""Maximum number of tokens of an answer, unless a model has another."""
EVIDENCE = 3
"""Maximum number of sentences shown as evidence."""
HEADING = re.compile(r"(?:[A-Za-zÀ-ɏ]|[^\w]|_){,20}")
"""Sentences with so few letters, such as "III.", support an answer only if they have a word of
the question. Numbers can support it without, and so can twenty characters of Chinese."""
TOKENS_AT_ONCE = 8192

Advance = Callable[[int, int], None]
Row = dict[str, Any]
"""A document with a question: `EncodedQuestion.row`, its windows, and its sentences."""


@dataclass(frozen=True)
class Evidence:
    """A sentence that supports an answer, or the closest one to a question.

    Attributes:
        text: The sentence.
        start: Index of its first character in the document.
        end: Index after its last character.
        score: Probability, by the model, that it supports the answer; if there is no confident
            answer, the mean of that and of the share of the question's words that it has.
    """

    text: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Answer:
    """The answer to a question about a document.

    Attributes:
        text: Words of the document, "yes" or "no"; None if the model is not confident.
        confidence: Probability that the best answer is right.
        start: Index of the first character in the document; None for yes, no and None.
        end: Index after the last character.
        evidence: The sentences that support the answer, in order; or, if the model is not
            confident, the closest sentences, best first.
        passages: Number of windows in which the document was read.
    """

    text: str | None
    confidence: float
    start: int | None
    end: int | None
    evidence: tuple[Evidence, ...]
    passages: int = 1


class Reader:
    """Answers questions about documents of any length, with the sentences that support them.

    Args:
        model: A `LongbirdForQuestionAnswering` model.
        tokenizer: Its tokenizer.

    Examples:
        >>> import longbird as lb
        >>> reader = lb.Reader.from_pretrained("default")
        >>> text = "The plant was built in 1961. It was closed in May 1998."
        >>> answer = reader.ask(text, "When was the plant closed?")
        >>> 0 <= answer.confidence <= 1
        True
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
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
        """Load a reader by name, or from the folder of a `longbird finetune ask` run or a model.

        Args:
            source: "default" for the reader that comes with Longbird, or a folder.
            quantize: "int8" to read faster with nearly the same quality.

        Raises:
            ValueError: The model does not answer questions.
            OSError: The folder does not exist.
        """
        from longbird.applications.reading.default_reader import folder_of_reader
        from longbird.applications.reading.loading import load_tokenizer, quiet
        from longbird.files.cache import suggesting_deletion
        from longbird.models import LongbirdForQuestionAnswering as Model
        from longbird.models.checkpoints.folders import read_config

        folder = folder_of_reader(source)
        options = {} if quantize is None else {"quantize": quantize}
        with suggesting_deletion(folder), quiet():
            named = (read_config(folder).architectures or ["a model without a head"])[0]
            if named != Model.__name__:
                raise InvalidValueError(f"{folder} is {named}, expected {Model.__name__}")
            return cls(Model.from_pretrained(folder, **options), load_tokenizer(folder))

    def ask(self, text: str, question: str) -> Answer:
        """Return the answer to a question about a text.

        Raises:
            ValueError: The question is empty, or has thousands of words.
        """
        return next(self.ask_all([(text, question)]))

    def ask_all(
        self, pairs: Iterable[tuple[str, str]], advance: Advance = lambda *_: None
    ) -> Iterator[Answer]:
        """Yield the answers to several questions, each about its own text, in order.

        Args:
            pairs: Texts with questions.
            advance: Function that is called after each step with the number of tokens that are
                read, and their total, for a pair or for several short ones that are read together.
        """
        group: list[Row] = []  # short ones are read together
        tokens = 0
        for pair in pairs:
            if isinstance(pair, str):  # a text of two letters would unpack
                raise InvalidTypeError(f"expected a text with its question, received {pair!r:.80}")
            group.append(self._prepared(*pair))
            tokens += len(group[-1]["input_ids"])
            if tokens >= TOKENS_AT_ONCE:
                yield from self._answers(group, advance)
                group, tokens = [], 0
        yield from self._answers(group, advance)

    # ---- inputs

    def _prepared(self, text: str, question: str) -> Row:
        for name, value in (("text", text), ("question", question)):
            if not isinstance(value, str):
                raise InvalidTypeError(f"{name} must be a str, received {type(value).__name__}")
        if not question.strip():
            raise InvalidValueError("the question is empty")
        shown = question if len(question) < 60 else question[:57] + "..."
        (tokens,) = encode([(question, text)], [repr(shown)], self.tokenizer, self.length)
        places = [
            (place, first[0])
            for place in sentences_of(text)
            if (first := tokens.tokens_of(*place)) is not None
        ]
        return {
            **tokens.row(text),
            "text": text,
            "skipped": 0,
            "question": question,
            "sentences": [place for place, _ in places],
            "windows": [(each.start, each.stop) for each in tokens.windows(self.length)],
            "sentence_tokens": [token for _, token in places],
        }

    # ---- outputs

    def _answers(self, rows: Sequence[Row], advance: Advance) -> Iterator[Answer]:
        whole = [row["windows"] if row["first"] < row["last"] else [] for row in rows]
        outputs = self._read(rows, whole, advance)
        found = [
            join(row, parts, self.typed, self.supported) if parts else {}
            for row, parts in zip(rows, outputs, strict=True)
        ]
        if self.twice:
            pairs = zip(rows, found, strict=True)
            again = [passages(row, first) if first else [] for row, first in pairs]
            for number, parts in enumerate(self._read(rows, again, advance)):
                if parts:
                    row, first, chosen = rows[number], found[number], again[number]
                    row = {**row, "windows": chosen, "worth": first_pass_bonus(row, first, chosen)}
                    second = join(row, parts, self.typed, self.supported)
                    found[number] = combined_passes(first, second)
        for row, each in zip(rows, found, strict=True):
            yield self._decided(row, each) if each else Answer(None, 0.0, None, None, (), 0)

    def _read(
        self,
        rows: Sequence[Row],
        windows: Sequence[Sequence[tuple[int, int]]],
        advance: Advance,
    ) -> list[list[dict[str, Any]]]:
        """Run the model over windows of each document; windows of similar length run together."""
        jobs = [(number, each) for number, some in enumerate(windows) for each in some]
        sizes = [rows[number]["first"] + stop - start for number, (start, stop) in jobs]
        found: list[Any] = [None] * len(jobs)
        restart = self.length if self.restarts else None
        done = 0
        for batch in _batches(sizes):
            chosen = (jobs[at] for at in batch)
            each = [window_inputs(rows[number], *window, restart) for number, window in chosen]
            for row in each:
                row["attention_mask"] = [1] * len(row["input_ids"])
            inputs = LongbirdCollator(self.tokenizer)(each)
            given = {name: x for name, x in inputs.items() if name != "paragraph_positions"}
            if not self.supported:
                del given["sentence_positions"]
            if not given["token_type_ids"].any():
                del given["token_type_ids"]
            if self.restarts:
                given["position_ids"] += self.model.config.first_position
            with torch.inference_mode():
                outputs = self.model(**given)
            parts = window_outputs(
                outputs, inputs, self.longest_answer, self.typed, self.supported
            )
            for at, part in zip(batch, parts, strict=True):
                found[at] = part
            done += sum(sizes[at] for at in batch)
            advance(done, sum(sizes))
        in_order = iter(found)
        return [[next(in_order) for _ in some] for some in windows]

    def _decided(self, row: Row, found: dict[str, Any]) -> Answer:
        """Decide whether the model is confident enough to answer."""
        kind, span = best_answer(found), found["span"]
        if self.confidence is not None:
            confidence = self.confidence.of(found)
            silent = confidence < self.confidence.least
        else:  # a model that was trained without held-out questions
            confidence = span["chance"] if kind == "span" and span is not None else 1.0
            silent = False
            if self.typed and self.no_answer is not None:
                silent = margin(found["types"]) > self.no_answer
        silent |= kind == "span" and (span is None or not span["text"].strip())
        given = span if kind == "span" and not silent else None
        text, start, end = None if silent else kind, None, None
        if given is not None:
            text, start, end = given["text"], given["start"], given["end"]
        evidence = self._evidence(row, found, given, silent)
        return Answer(text, confidence, start, end, evidence, len(row["windows"]))

    def _evidence(
        self, row: Row, found: dict[str, Any], given: Any, silent: bool
    ) -> tuple[Evidence, ...]:
        """Return the sentence of the answer, and the sentences that support it most."""
        sentences: list[tuple[int, int]] = row["sentences"]
        starts = [start for start, _ in sentences]
        span = given or found["span"]
        own = -1 if span is None else bisect_right(starts, span["start"]) - 1
        scores = dict.fromkeys(range(len(starts)), 0.0)
        if self.supported:
            logits = np.array(found["sentences"][: len(starts)])
            scores = dict(enumerate((1 / (1 + np.exp(-logits.clip(-30, 30)))).tolist()))
        elif span is not None and own >= 0:
            scores[own] = span["chance"]
        texts = [row["text"][start:end] for start, end in sentences]
        close = shared(row["question"], texts)
        telling = [at for at, text in enumerate(texts) if close[at] or not HEADING.fullmatch(text)]
        if silent:
            scores = {at: (score + float(close[at])) / 2 for at, score in scores.items()}
        ranked = best = sorted(telling or scores, key=lambda number: -scores[number])[:EVIDENCE]
        if not silent:
            ranked = [each for each in best if scores[each] >= self.support]
            if given is not None and own >= 0:
                continues = sentences[own][1] < given["end"]
                ranked = [own, *([own + 1] if continues else []), *ranked]
            ranked = sorted(set(ranked or best[:1]))
        return tuple(
            Evidence(texts[each], *sentences[each], scores.get(each, 0.0))
            for each in ranked
            if each < len(starts)
        )


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of windows that are read together, by their sizes.

    Examples:
        >>> list(_batches([5000, 4000, 100, 4096, 120]))
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
