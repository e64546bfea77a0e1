"""Cases of the experiment `training`: an epoch of learning to classify the same documents."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from experiments.sources import licences
from experiments.speed.encoders.case import Case as EncoderCase
from experiments.speed.encoders.case import Shape
from longbird.files.sources import minilm

SHORTEST = 100  # tokens of a document of the ragged set
TOKENS = 4096  # tokens of a step, where one document does not have more
DROPOUT = 0.1  # that of all published checkpoints
LABELS = 11


@dataclass(frozen=True)
class Case:
    """An epoch over some documents.

    Attributes:
        shape: Sizes of the whole encoder.
        length: Maximum number of tokens of a document.
        documents: Number of documents.
        batch: Documents per step.
        layers: Number of layers that run.
        ragged: Whether documents have their own lengths, rather than one length.
    """

    shape: Shape
    length: int
    documents: int
    batch: int
    layers: int
    ragged: bool = False

    @property
    def n(self) -> int:
        """Maximum number of tokens of a document."""
        return self.length

    @property
    def kind(self) -> Hashable:
        """A value that is equal for cases that differ only in tokens and layers."""
        return self.shape, self.ragged

    @property
    def steps(self) -> int:
        """Number of steps per epoch if a step has `batch` documents."""
        return -(-self.documents // self.batch)

    @property
    def what(self) -> str:
        """Description of the documents."""
        if self.ragged:
            return f"{self.documents} real documents of up to {self.length:,} tokens"
        return f"{self.documents} x {self.length:,} tokens"

    def __str__(self) -> str:
        """Return a line for the progress display."""
        return f"{self.shape.name}, {self.layers} of {self.shape.layers} layers, {self.what}"

    def encoder(self, batch: int) -> EncoderCase:
        """The case of an encoder with a step of the longest documents."""
        return EncoderCase(self.shape, (self.length,) * batch, self.layers, training=True)


@dataclass(frozen=True)
class Document:
    """A text with its label and its number of tokens, cut at the length of the case."""

    text: str
    label: str
    tokens: int


def documents(case: Case) -> list[Document]:
    """Return the documents of a case, the same in every call."""
    return _ragged(case) if case.ragged else _pieces(case)


def _ragged(case: Case) -> list[Document]:
    """Return documents that are evenly spaced in the order of lengths.

    So a few documents have the same distribution of lengths as all.
    """
    every = [each for each in _every() if each.tokens >= SHORTEST]
    every.sort(key=lambda each: (each.tokens, each.text))
    places = (np.arange(case.documents) + 0.5) * len(every) / case.documents
    chosen = [every[int(place)] for place in places]
    return [replace(each, tokens=min(each.tokens, case.length)) for each in chosen]


def _pieces(case: Case) -> list[Document]:
    """Return pieces of the concatenated documents with the length of the case."""
    every = "\n".join(each.text for each in _every())
    characters = min(16 * case.length, len(every) // case.documents)  # more than it takes
    pieces = [every[k * characters : (k + 1) * characters] for k in range(case.documents)]
    found = [
        Document(piece, f"label {k % LABELS}", min(tokens, case.length))
        for k, (piece, tokens) in enumerate(zip(pieces, lengths_of(pieces), strict=True))
    ]
    if any(each.tokens < case.length for each in found):
        raise ValueError(f"there is not enough text for {case.what}: ask for fewer tokens")
    return found


@cache
def _every() -> list[Document]:
    with licences.path().open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    tokens = lengths_of([row["text"] for row in rows])
    return [Document(row["text"], row["label"], n) for row, n in zip(rows, tokens, strict=True)]


def lengths_of(texts: Sequence[str]) -> list[int]:
    """Return the number of tokens of each text."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(minilm.path())
    return [len(ids) for ids in tokenizer(list(texts), verbose=False)["input_ids"]]


def histogram(lengths: Sequence[int]) -> str:
    """Return a line with the number of documents in each range of lengths.

    Examples:
        >>> histogram([100, 130, 700])
        '2 of 64 to 255 tokens, 1 of 256 to 1,023'
    """
    edges = [4**k for k in range(20)]
    counts, _ = np.histogram(lengths, edges)
    parts = [
        f"{count} of {low:,} to {high - 1:,}"
        for count, low, high in zip(counts, edges, edges[1:], strict=False)
        if count
    ]
    return ", ".join([parts[0] + " tokens", *parts[1:]])
