"""F1 of entities, which seqeval finds, and of tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import seqeval.scheme

SCHEMES: dict[str, Any] = {
    name: getattr(seqeval.scheme, name) for name in ("IOB2", "IOBES", "BILOU")
}
PREFIXES = {"IOB2": "BI", "IOBES": "BIES", "BILOU": "BILU"}


def scheme_of(labels: Iterable[str]) -> str | None:
    """The scheme that tags are written in: IOB2 (BIO), IOBES, BILOU, or none of these.

    Examples:
        >>> scheme_of(["O", "B-person", "I-person"])
        'IOB2'
        >>> scheme_of(["NOUN", "VERB"]) is None
        True
    """
    inside = [label for label in labels if label != "O"]
    if not inside or not all(label[1:2] == "-" and label[2:].strip("-") for label in inside):
        return None
    used = {label[0] for label in inside}
    return next((name for name, known in PREFIXES.items() if used <= set(known)), None)


def entities(tags: Sequence[str], scheme: str) -> list[tuple[int, int, str]]:
    """Where each entity begins and ends, and its label, read strictly: as seqeval's strict mode.

    Examples:
        >>> entities(["B-a", "I-a", "I-b", "O", "B-b"], "IOB2")
        [(0, 2, 'a'), (4, 5, 'b')]
    """
    found: Any = seqeval.scheme.Tokens(list(tags), SCHEMES[scheme]).entities
    return [(each.start, each.end, each.tag) for each in found]


class Counts(NamedTuple):
    """How often, in each document: [documents, labels] each."""

    right: np.ndarray
    said: np.ndarray
    true: np.ndarray

    def times(self, counts: np.ndarray) -> Counts:
        """In samples that have each document so often, [samples, documents]."""
        return Counts(*(counts @ each for each in self))

    def f1(self) -> np.ndarray:
        """By label; NaN for a label that is nowhere."""
        with np.errstate(invalid="ignore"):
            return 2 * self.right / (self.said + self.true)

    def share(self, of: np.ndarray) -> np.ndarray:
        """Precision or recall over all labels; 0 where there is nothing."""
        return self.right.sum(-1) / np.maximum(of.sum(-1), 1)


def count_tags(truth: Sequence[np.ndarray], said: Sequence[np.ndarray], labels: int) -> Counts:
    """Tags of units, given as numbers of labels."""
    return Counts(
        *(
            np.array([np.bincount(each, minlength=labels) for each in lists], dtype=float)
            for lists in (
                [t[t == s] for t, s in zip(truth, said, strict=True)],
                said,
                truth,
            )
        )
    )


def count_entities(
    truth: Sequence[np.ndarray], said: Sequence[np.ndarray], labels: Sequence[str], scheme: str
) -> tuple[list[str], Counts]:
    """The kinds of entities, and how often each is there."""
    kinds = sorted({label[1:].strip("-") for label in labels if label != "O"})
    names: list[str] = list(labels)
    number = {name: each for each, name in enumerate(kinds)}
    found = np.zeros((3, len(truth), len(kinds)))
    for document, pair in enumerate(zip(truth, said, strict=True)):
        true, given = (set(entities([names[tag] for tag in tags], scheme)) for tags in pair)
        for row, several in enumerate((true & given, given, true)):
            for _, _, kind in several:
                found[row, document, number[kind]] += 1
    return kinds, Counts(*found)


class Table(NamedTuple):
    """What is counted in each document; `entities` if the tags are written in a scheme."""

    labels: Sequence[str]
    tags: Counts
    scheme: str | None
    kinds: Sequence[str] = ()
    entities: Counts | None = None

    @classmethod
    def of(
        cls, truth: Sequence[np.ndarray], said: Sequence[np.ndarray], labels: Sequence[str]
    ) -> Table:
        """Counts tags and entities.

        Args:
            truth: For each document the numbers of its tags, int [units].
            said: The same as a model has it.
            labels: The names of the tags.
        """
        tags, scheme = count_tags(truth, said, len(labels)), scheme_of(labels)
        if scheme is None:
            return cls(labels, tags, None)
        return cls(labels, tags, scheme, *count_entities(truth, said, labels, scheme))

    def rates(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """The metrics of many samples at once, each [samples].

        Args:
            counts: How often each sample has each document, [samples, documents].
        """
        found: dict[str, np.ndarray] = {}
        if self.entities is not None:
            named = self.entities.times(counts)
            found["entity_f1"] = 2 * named.share(named.said + named.true)
            found["entity_precision"] = named.share(named.said)
            found["entity_recall"] = named.share(named.true)
        tags = self.tags.times(counts)
        found["accuracy"] = tags.share(tags.true)
        by_label = tags.f1()
        there = ~np.isnan(by_label)
        found["macro_f1"] = np.nansum(by_label, -1) / np.maximum(there.sum(-1), 1)
        return found

    def measure(self) -> dict[str, Any]:
        """Of all documents, each once.

        Returns:
            Precision, recall and F1 of entities (if the tags are written in a scheme: strict, over
            all entities, and F1 by kind), accuracy of the tags, and F1 by tag and its mean.
        """
        every = np.ones((1, len(self.tags.true)))
        found: dict[str, Any] = {"documents": every.size, "tags": int(self.tags.true.sum())}
        if self.entities is not None:
            found["entities"] = int(self.entities.true.sum())
            found["scheme"] = f"{self.scheme}, strict"
        found |= {name: float(values[0]) for name, values in self.rates(every).items()}
        if self.entities is not None:
            found["f1_by_entity"] = _named(self.kinds, self.entities.times(every).f1()[0])
        found["f1_by_label"] = _named(self.labels, self.tags.times(every).f1()[0])
        return found


def _named(names: Sequence[str], values: np.ndarray) -> dict[str, float]:
    """Those that are somewhere."""
    return {
        name: float(value)
        for name, value in zip(names, values, strict=True)
        if not np.isnan(value)
    }
