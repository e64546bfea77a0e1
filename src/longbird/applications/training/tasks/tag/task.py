"""Tags for the words of documents, or labels for spans of their characters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from torch import Tensor

from longbird.applications.documents.windows import owned, windows
from longbird.applications.reading.model_outputs import with_accents
from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.data.files import Row
from longbird.applications.training.metrics import tagging
from longbird.applications.training.settings.tasks import TagSettings
from longbird.applications.training.tasks.tag.rows import tagged
from longbird.applications.training.tasks.tag.units import (
    Tokens,
    Units,
    special_tokens,
    tokens_of,
)
from longbird.applications.training.tasks.task import Example, Prediction, Task
from longbird.errors import InvalidValueError
from longbird.models.layers.checks import IGNORED

OUTSIDE = "O"
SHOWN = 100
"""Entities or words of a document in the list of the worst."""


class Tag(Task):
    """A tag for each word, or labels for spans of characters.

    Every token of a word has a label: the first the tag, the others what goes on with it (I- after
    B-). So a model that learned from words also finds spans in plain text. The tag of a word is
    that of its first token.
    """

    name = "tag"
    settings_class = TagSettings
    head = "token-classification"
    inputs = ("input_ids", "labels", "windows")
    cuts_long_documents = False

    def __init__(self, labels: Sequence[str] = ()) -> None:
        self.labels = list(labels)
        self._know_labels()

    def _know_labels(self) -> None:
        self.number = {label: number for number, label in enumerate(self.labels)}
        self.scheme = tagging.scheme_of(self.labels)
        # By tag: that of the tokens of a word after its first.
        again = {
            label: f"I{label[1:]}" if self.scheme == "IOB2" and label[0] == "B" else label
            for label in self.labels
        }
        self.goes_on = np.array(
            [self.number.get(again[label], number) for label, number in self.number.items()]
        )
        self.best = "macro_f1" if self.scheme is None else "entity_f1"

    # ---- rows to examples

    def examples(
        self, rows: Iterable[Row], settings: TagSettings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """The text of each row, its words with tags or its spans, and the group."""
        return tagged(rows, settings, say)

    def documents(
        self,
        rows: Iterable[Row],
        settings: TagSettings,
        say: Callable[[str], None],
        text: str | None,
    ) -> Iterator[dict[str, Any]]:
        """Yield texts, or words joined by spaces; then the answer has the text, too."""
        for example in tagged(rows, settings, say, labelled=False, text=text):
            given = example["words"] is not None
            yield {**example, "shown": {"text": example["text"]} if given else {}}

    def learn(self, examples: Iterable[Example]) -> None:
        """Takes the tags that there are; for spans, those of the scheme IOB2."""
        counts: Counter[str] = Counter()
        for example in examples:
            counts.update(example["tags"] or ())
            for _, _, label in example["spans"] or ():
                counts[f"B-{label}"] += 1
            if example["spans"] is not None:
                counts[OUTSIDE] += 1
        if not counts:
            return  # no rows, which has a message of its own
        if len(counts) < 2:
            raise InvalidValueError(
                f"the training files have no tag but {next(iter(counts))}, expected two or more: "
                "there is nothing to tell apart"
            )
        if len(counts) > 10_000:
            raise InvalidValueError(
                f"the training files have {len(counts):,} different tags, such as "
                f"{', '.join(list(counts)[:3])}: is `label` the column that was meant?"
            )
        names = set(counts)
        if tagging.scheme_of(names) == "IOB2":
            names |= {f"{prefix}{name[1:]}" for name in names - {OUTSIDE} for prefix in "BI"}
            names.add(OUTSIDE)
        self.labels = sorted(names)
        self._know_labels()

    def head_settings(self) -> dict[str, Any]:
        """What the configuration says of the head."""
        return {
            "num_labels": len(self.labels),
            "id2label": dict(enumerate(self.labels)),
            "label2id": dict(self.number),
        }

    @classmethod
    def of_model(cls, config: Any) -> Tag:
        """The task that a model was trained for."""
        return cls([config.id2label[number] for number in range(config.num_labels)])

    # ---- examples to features

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Whole documents with the labels of their tokens, and the windows that they are read in.

        `windows` are their begins and ends in `input_ids`, `starts` and `ends` the characters of
        what has a tag (a unit: a word, or a token), `at` its first token, and `truth` its tag.
        """
        before, after = special_tokens(tokenizer)
        size = length - len(before) - len(after)
        for example in examples:
            tokens = tokens_of(example["text"], tokenizer)
            units = self._units(example, tokens)
            n = len(tokens.ids)
            if len(before) + n + len(after) == 0:
                raise InvalidValueError(
                    f"{example['place']} has no tokens: leave the empty text out"
                )
            labels = np.concatenate(
                [np.full(len(before), IGNORED), units.labels, np.full(len(after), IGNORED)]
            )
            places = windows(len(before), len(before) + n, size)
            yield {
                "place": example["place"],
                "text": example["text"],
                "group": example.get("group", ""),
                "tokens": len(labels),
                "input_ids": np.concatenate([before, tokens.ids, after]).astype(np.int32),
                "labels": labels.astype(np.int32),
                "windows": np.array(places, dtype=np.int32).ravel(),
                "starts": units.starts.astype(np.int32),
                "ends": units.ends.astype(np.int32),
                "at": np.where(units.at < 0, -1, units.at + len(before)).astype(np.int32),
                "truth": units.truth.astype(np.int32),
                "widened": units.widened,
                "unseen": units.unseen,
            }

    def _units(self, example: Example, tokens: Tokens) -> Units:
        if example["words"] is not None:
            return self._words(example, tokens, np.array(example["words"]).reshape(-1, 2))
        if example["spans"] is not None:
            return self._spans(example, tokens)
        if self.scheme == "IOB2":
            return Units.of_tokens(tokens, np.full(len(tokens.ids), IGNORED))
        words = [match.span() for match in re.finditer(r"\w+|[^\w\s]", example["text"])]
        return self._words(example, tokens, np.array(words, dtype=np.int64).reshape(-1, 2))

    def _words(self, example: Example, tokens: Tokens, words: np.ndarray) -> Units:
        """Units that are words [words, 2]; a token is of the word that has its last character."""
        starts, ends = words.T
        known = example["tags"] is not None
        truth = np.array(
            [self._label(tag, example) for tag in example["tags"]]
            if known
            else [IGNORED] * len(words),
            dtype=np.int64,
        )
        at = np.full(len(words), -1)
        labels = np.full(len(tokens.ids), IGNORED)
        if len(words):
            of = np.searchsorted(starts, tokens.ends - 1, "right") - 1
            inside = (of >= 0) & (tokens.ends - 1 < ends[of]) & (tokens.starts < tokens.ends)
            where = np.flatnonzero(inside)
            seen, first = np.unique(of[where], return_index=True)
            at[seen] = where[first]
            if known:
                labels[where] = self.goes_on[truth[of[where]]]
                labels[at[seen]] = truth[seen]
        return Units(starts, ends, at, truth, labels, 0, int((at < 0).sum()))

    def _spans(self, example: Example, tokens: Tokens) -> Units:
        """Units that are tokens: one that shares a character with a span has its label."""
        spans, labels = example["spans"], np.full(len(tokens.ids), IGNORED)
        real = tokens.starts < tokens.ends
        labels[real] = self._label(OUTSIDE, example)
        widened = unseen = 0
        # What stands for no characters may be anywhere.
        ends, starts = (np.maximum.accumulate(x) for x in (tokens.ends, tokens.starts))
        free = real.copy()
        for begin, close, label in spans:
            low, high = np.searchsorted(ends, begin, "right"), np.searchsorted(starts, close)
            mine = low + np.flatnonzero(free[low:high])
            first, inside = (self._label(f"{prefix}-{label}", example) for prefix in "BI")
            if len(mine) == 0:  # a span before it has the token
                unseen += 1
                continue
            free[mine], labels[mine], labels[mine[0]] = False, inside, first
            widened += bool(tokens.starts[mine[0]] < begin or tokens.ends[mine[-1]] > close)
        return Units.of_tokens(tokens, labels)._replace(widened=widened, unseen=unseen)

    def _label(self, tag: str, example: Example) -> int:
        number = self.number.get(tag)
        if number is None:
            raise InvalidValueError(
                f"{example['place']} has the tag {tag!r}, which the model does not know; it knows "
                f"{', '.join(self.labels[:20])}"
            )
        return number

    def about(self, rows: Dataset, length: int) -> Iterator[str]:
        """What becomes of long documents and of spans between tokens."""
        longer = int((numbers_of(rows, "tokens") > length).sum())
        if longer:
            yield (
                f"  {longer:,} are longer than the {length:,} tokens that the model reads at "
                "once: they are read in windows that overlap, so that no label is lost"
            )
        widened, unseen = (int(numbers_of(rows, name).sum()) for name in ("widened", "unseen"))
        if widened:
            yield (
                f"  {widened:,} spans begin or end inside a token: they are taken as the whole "
                "token"
            )
        if unseen:
            yield f"  {unseen:,} words or spans have no token of their own: they teach nothing"

    # ---- windows

    def lengths(self, features: Example) -> list[int]:
        """Tokens of each window."""
        places = _places(features)
        special = len(features["input_ids"]) - (places[-1][1] - places[0][0])
        return [end - begin + special for begin, end in places]

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """A window with the special tokens around it, and the labels that belong to it."""
        places, ids, labels = _places(row), row["input_ids"], row["labels"]
        (begin, end), (first, last) = places[part], owned(places)[part]
        before, after = ids[: places[0][0]], ids[places[-1][1] :]
        return {
            "input_ids": [*before, *ids[begin:end], *after],
            "labels": [
                *(IGNORED for _ in before),
                *(IGNORED for _ in range(begin, first)),
                *labels[first:last],
                *(IGNORED for _ in range(last, end)),
                *(IGNORED for _ in after),
            ],
        }

    def joined(self, row: Example, parts: Sequence[Prediction]) -> dict[str, Any]:
        """The tag and its score for each unit, from the window where it has most context."""
        places = _places(row)
        tags, scores = np.zeros(row["tokens"], dtype=np.int64), np.zeros(row["tokens"])
        before = places[0][0]
        for (begin, _), (first, last), part in zip(places, owned(places), parts, strict=True):
            inside = slice(before + first - begin, before + last - begin)
            tags[first:last], scores[first:last] = part["tags"][inside], part["scores"][inside]
        at = np.array(row["at"], dtype=np.int64)
        return {
            "text": row["text"],
            "starts": row["starts"],
            "ends": row["ends"],
            "tags": np.where(at < 0, self.number.get(OUTSIDE, 0), tags[at]),
            "scores": np.where(at < 0, 0.0, scores[at]),
        }

    # ---- learning

    def class_weights(self, examples: Iterable[Example]) -> Tensor:
        """Weights that make every tag count as much as every other, [labels]."""
        counts = np.zeros(len(self.labels))
        for example in examples:
            labels = np.array(example["labels"], dtype=np.int64)
            counts += np.bincount(labels[labels >= 0], minlength=len(counts))
        used = max(1, int((counts > 0).sum()))
        return torch.tensor(
            np.where(counts > 0, counts.sum() / (used * np.maximum(counts, 1)), 1.0),
            dtype=torch.float32,
        )

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """The mean over the tokens with a label."""
        labels = batch["labels"].flatten()
        each = F.cross_entropy(
            outputs.logits.float().flatten(0, 1), labels, ignore_index=IGNORED, reduction="none"
        )
        if weights is not None:
            each = each * weights.to(each.device)[labels.clamp(min=0)]
        return each.sum() / max(1, self.items(batch))

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """Tokens with a label."""
        return int((batch["labels"] != IGNORED).sum())

    # ---- outputs to results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The tag of each token of a window, and its score."""
        inputs = {name: x for name, x in batch.items() if name != "labels"}
        scores, tags = model(**inputs).logits.float().softmax(-1).max(-1)
        lengths = batch["attention_mask"].sum(1).tolist()
        left = not bool(batch["attention_mask"][:, 0].all())
        rows = [slice(-n, None) if left else slice(n) for n in lengths]
        return [
            {"tags": tag[row], "scores": score[row]}
            for tag, score, row in zip(tags.cpu().numpy(), scores.cpu().numpy(), rows, strict=True)
        ]

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """Entities with their characters in the text, or words with their tags."""
        scores = prediction["scores"]
        return self._shown(prediction, prediction["tags"], lambda a, b: float(scores[a:b].mean()))

    def as_text(self, answer: Mapping[str, Any]) -> str:
        """Return the number of entities or words, and a line for each."""
        [(kind, shown)] = answer.items()
        singular = {"entities": "entity", "words": "word"}[kind]
        lines = [f"{len(shown)} {kind if len(shown) != 1 else singular}"]
        for one in shown:
            score = f" ({one['score']:.2f})" if "score" in one else ""
            text = " ".join(one["text"].split())
            lines.append(f"  {one['label']}{score}, {one['start']} to {one['end']}: {text}")
        return "\n".join(lines)

    def expected(self, example: Example) -> Any:
        """The same as it should be."""
        found = self._shown(example, np.array(example["truth"], dtype=np.int64))
        return {name: value[:SHOWN] for name, value in found.items()}

    def _shown(
        self,
        where: Mapping[str, Any],
        tags: np.ndarray,
        score: Callable[[int, int], float] | None = None,
    ) -> dict[str, Any]:
        names = [self.labels[tag] for tag in tags]
        if self.scheme is None:
            found = [(number, number + 1, name) for number, name in enumerate(names)]
        else:
            found = tagging.entities(names, self.scheme)
        shown: list[dict[str, Any]] = []
        for first, last, label in found:
            text, start = where["text"], where["starts"][first]
            end = with_accents(text, where["ends"][last - 1])
            shown.append({"start": start, "end": end, "text": text[start:end], "label": label})
            if score is not None:
                shown[-1]["score"] = score(first, last)
        return {"words" if self.scheme is None else "entities": shown}

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Entity F1, accuracy of tags, and F1 by tag."""
        return self._table(examples, predictions).measure()

    def resampled(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], counts: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The metrics of all samples at once."""
        return self._table(examples, predictions).rates(counts)

    def _table(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> tagging.Table:
        truth = [np.array(example["truth"], dtype=np.int64) for example in examples]
        return tagging.Table.of(truth, [each["tags"] for each in predictions], self.labels)

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """The share of its units that have a wrong tag."""
        wrong = np.array(example["truth"], dtype=np.int64) != prediction["tags"]
        return float(wrong.mean()) if len(wrong) else 0.0


def _places(row: Example) -> list[tuple[int, int]]:
    """The windows of a document: where each begins and ends."""
    flat = row["windows"]
    return list(zip(flat[::2], flat[1::2], strict=True))
