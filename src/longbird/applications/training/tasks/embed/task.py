"""Embeddings: vectors by which a query finds its documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from scipy.sparse import csr_array
from torch import Tensor

from longbird.applications.training.data.arrow_columns import lists_of, numbers_of
from longbird.applications.training.data.files import Row
from longbird.applications.training.data.truncation import cut_to
from longbird.applications.training.metrics import ranking
from longbird.applications.training.settings.tasks import EmbedSettings
from longbird.applications.training.tasks.embed.columns import Columns, normal
from longbird.applications.training.tasks.embed.loss import (
    NEGATIVE,
    NO_CLASS,
    NOTHING,
    POSITIVE,
    QUERY,
    contrastive_loss,
)
from longbird.applications.training.tasks.task import Example, Prediction, Task
from longbird.errors import InvalidValueError

SHOWN = 500
"""Characters of a text that are kept, to be shown."""
ABOUT = ("kinds", "keys", "classes")
"""What is known of each text of an example; see `tasks.embed.loss`."""


class Embed(Task):
    """Queries and their documents, or texts with a label, close together; all others apart."""

    name = "embed"
    settings_class = EmbedSettings
    head = "embedding"
    best = "ndcg_at_10"
    rows_are = "examples"
    new_batches = True
    inputs = ("input_ids", *ABOUT)

    def prepare(self, settings: EmbedSettings, tokenizer: Any) -> None:
        """Notes what of the settings it needs."""
        self.settings = settings

    # ---- rows to examples

    def examples(
        self, rows: Iterable[Row], settings: EmbedSettings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """The texts of each row, with what each is to the others."""
        known: dict[Any, Columns] = {}
        for row in rows:
            names = tuple(row.values)
            if names not in known:
                known[names] = Columns(names, settings, say)
                if len({each.query is None for each in known.values()}) > 1:
                    raise InvalidValueError(
                        f"{row.place} is where texts with a label and pairs of texts meet: learn "
                        "from the one or the other"
                    )
            yield from known[names].examples(row, settings.group)

    # ---- examples to features

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Examples with the tokens of each text, [texts, n]; n differs."""
        for example in examples:
            texts = example["texts"]
            ids, whole = zip(*cut_to(length, texts, tokenizer), strict=True)
            classes = [_number(example["class"])] * len(texts)
            yield {
                "place": example["place"],
                "text": texts[0][:SHOWN],
                "shown": [text[:SHOWN] for text in texts],
                "tokens": sum(whole),
                "longest": max(whole),
                "input_ids": list(ids),
                "kinds": example["kinds"],
                "keys": [_number(normal(text)) for text in example["texts"]],
                "classes": [
                    NO_CLASS if kind == NEGATIVE and len(texts) > 1 else each
                    for kind, each in zip(example["kinds"], classes, strict=True)
                ],
                # To a text alone, another of its label is drawn in every epoch.
                "drawn": training and len(example["kinds"]) == 1,
            }

    def about(self, rows: Dataset, length: int) -> Iterator[str]:
        """What becomes of texts that are too long, and of those that have nothing to find."""
        longer = int((numbers_of(rows, "longest") > length).sum())
        if longer:
            yield (
                f"  {longer:,} have a text that is longer than the {length:,} tokens that the "
                "model reads: its end is cut off"
            )
        alone = _alone(rows)
        if alone.any():
            yield (
                f"  {int(alone.sum()):,} have a label that no other text has, and so nothing to "
                "find: others are told apart from them"
            )

    def check(self, parts: Mapping[str, Dataset], settings: EmbedSettings) -> None:
        """Looks whether there is something to learn, and something to measure it with."""
        train = parts["train"]
        flat = {name: lists_of(train, name)[0] for name in ABOUT}
        if not np.any(flat["kinds"] == QUERY):
            classes = len(np.unique(flat["classes"]))
            if classes < 2:
                raise InvalidValueError(
                    "all texts to learn from have the same label: there is nothing to tell apart"
                )
            if _alone(train).all():
                raise InvalidValueError(
                    f"the {len(train):,} texts to learn from have {classes:,} labels, and no two "
                    "texts have the same: there is nothing that belongs together. Is `label` the "
                    "column that was meant?"
                )
        elif not np.any(flat["kinds"] == NEGATIVE):
            documents = len(np.unique(flat["keys"][flat["kinds"] == POSITIVE]))
            if documents < 2:
                raise InvalidValueError(
                    f"there is {documents} document to learn from, and other documents are what "
                    "it is told apart from: give more pairs, or a column of negatives (`negative`)"
                )
        several = lists_of(train, "kinds")[1].max() > 2
        tokens = int(lists_of(train, "lengths")[0].sum())
        if not several and len(train) * settings.tokens_per_batch < 2 * tokens:
            raise InvalidValueError(
                f"two texts that belong together have {tokens // len(train):,} tokens on average, "
                f"so that a batch of {settings.tokens_per_batch:,} (`tokens_per_batch`) has no "
                "others to tell them apart from. A larger batch takes no more memory: that "
                "depends on `tokens_at_once`"
            )
        for part in ("validation", "test"):
            if part in parts and _alone(parts[part]).all():
                raise InvalidValueError(
                    f"no two texts for {part} have the same label, so that there is nothing to "
                    "find: let whole labels be held out with `group` and the column of the label, "
                    "or more texts with `hold_out`, or give other files"
                )

    def lengths(self, features: Example) -> list[int]:
        """Tokens of all texts together, which are read at once."""
        return [sum(map(len, features["input_ids"])) * (2 if features["drawn"] else 1)]

    def reader(self, rows: Dataset) -> Callable[[int, int | None], Example]:
        """A text alone is read with another of its label, which its epoch decides."""
        partners = Partners(rows)

        def read(number: int, epoch: int | None) -> Example:
            row = rows[number]
            if epoch is None or len(row["kinds"]) > 1:
                return row
            key = (self.settings.seed, 1 + epoch, number)
            other = partners.drawn(number, np.random.default_rng(key))
            if other is None:
                return row
            both = {name: [*row[name], *rows[other][name]] for name in self.inputs}
            return {**both, "kinds": [QUERY, POSITIVE]}

        return read

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """All texts of all examples, one after the other, with what is known of each."""
        sizes = [len(example["kinds"]) for example in examples]
        about = {
            name: torch.tensor([each for example in examples for each in example[name]])
            for name in ABOUT
        }
        ids = [{"input_ids": each} for example in examples for each in example["input_ids"]]
        numbers = torch.arange(len(examples)).repeat_interleave(torch.tensor(sizes))
        return {**pad(ids), **about, "examples": numbers}

    def uncounted(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Texts that are nothing to anybody."""
        return {**batch, "kinds": torch.full_like(batch["kinds"], NOTHING)}

    # ---- learning

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """The embeddings of all texts, [texts, w]."""
        return model(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            tokens_at_once=self.settings.tokens_at_once,
        ).embeddings

    def loss(self, outputs: Tensor, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """The mean over the queries, each among the documents of the batch."""
        texts = {name: batch[name] for name in (*ABOUT, "examples")}
        return contrastive_loss(outputs, texts, self.settings.temperature, self.settings.symmetric)

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """The queries."""
        return int((batch["kinds"] == QUERY).sum())

    def tokens_kept(self, tokens: int) -> int:
        """Those of a part; the others are computed again."""
        return min(tokens, max(self.settings.tokens_at_once, self.settings.length))

    # ---- outputs to results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The embeddings of the texts of each example, [texts, w]."""
        vectors = self.run(model, batch).float().cpu().numpy()
        ends = np.flatnonzero(np.diff(batch["examples"].cpu().numpy())) + 1
        return [{"vectors": each} for each in np.split(vectors, ends)]

    def whole_documents(self, examples: Any, predictions: list[Any]) -> tuple[Any, list[Any]]:
        """Queries, each with how well it finds its documents among those of all examples."""
        queries, documents = _Texts(), _Texts()
        wanted: set[tuple[int, int]] = set()  # numbers of query and document
        labels: set[tuple[int, int]] = set()  # numbers of text and label
        for example, said in zip(examples, predictions, strict=True):
            texts = list(zip(example["keys"], said["vectors"], example["shown"], strict=True))
            if len(texts) == 1:
                labels.add((queries.add(*texts[0], example["place"]), example["classes"][0]))
                continue
            query = queries.add(*texts[0], example["place"])
            for text, kind in zip(texts[1:], example["kinds"][1:], strict=True):
                document = documents.add(*text, example["place"])
                if kind == POSITIVE:
                    wanted.add((query, document))
        found = (
            _by_label(queries, np.array(sorted(labels)))
            if labels
            else _by_pair(queries, documents, np.array(sorted(wanted)))
        )
        wholes, said = zip(*found, strict=True)
        return list(wholes), list(said)

    def write_beside(self, model: Path) -> None:
        """Lets sentence-transformers cut texts where they were cut in the run."""
        file = model / "sentence_bert_config.json"
        if file.is_file():  # not for pooling that it does not have
            settings = json.loads(file.read_text("utf-8"))
            settings["max_seq_length"] = self.settings.length
            file.write_text(json.dumps(settings, indent=2) + "\n", "utf-8")

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """The documents that come first, and the rank of the first that is right."""
        reciprocal = prediction["metrics"][ranking.METRICS.index("mean_reciprocal_rank")]
        return {"rank": round(1 / float(reciprocal)), "first": prediction["first"]}

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """The means over the queries."""
        means = np.mean([said["metrics"] for said in predictions], axis=0).tolist()
        return {
            "documents": predictions[0]["documents"],
            "queries": len(predictions),
            **dict(zip(ranking.METRICS, means, strict=True)),
        }

    def resampled(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], counts: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The metrics of all samples of queries at once; the documents stay."""
        table = np.array([said["metrics"] for said in predictions])
        means = counts @ table / counts.sum(1, keepdims=True)
        return dict(zip(ranking.METRICS, means.T, strict=True))

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """How far behind others the first right document is."""
        return -float(prediction["metrics"][-1])

    def expected(self, example: Example) -> Any:
        """What was to be found, or some of it."""
        return [text[:200] for text in example["wanted"]]


class _Texts:
    """Texts that differ, with their vectors."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.vectors: list[np.ndarray] = []
        self.shown: list[str] = []
        self.places: list[str] = []

    def add(self, key: int, vector: np.ndarray, shown: str, place: str) -> int:
        """The number of a text, which may be there already."""
        if key not in self.numbers:
            self.numbers[key] = len(self.vectors)
            self.vectors.append(vector)
            self.shown.append(shown)
            self.places.append(place)
        return self.numbers[key]


Found = Iterator[tuple[dict[str, Any], dict[str, Any]]]
"""Queries, and how well each finds its documents."""


def _by_label(texts: _Texts, labels: np.ndarray) -> Found:
    """Every text finds the others of its label, or of one of its labels."""
    _, label = np.unique(labels[:, 1], return_inverse=True)
    of_text = csr_array((np.ones(len(labels)), (labels[:, 0], label)))  # [texts, labels]
    several = of_text.sum(0) > 1
    queries = np.flatnonzero(of_text @ several > 0)
    if len(queries) == 0:
        raise InvalidValueError("no two texts have the same label: there is nothing to find")
    vectors = np.stack(texts.vectors)

    def wanted(block: slice) -> np.ndarray:
        return (of_text[queries[block]] @ of_text.T).toarray() > 0

    found = ranking.ranked(vectors[queries], vectors, wanted, themselves=queries)
    return _said(texts, queries, texts, wanted, found)


def _by_pair(queries: _Texts, documents: _Texts, pairs: np.ndarray) -> Found:
    """Every query finds the documents that stand beside it."""
    every = np.arange(len(queries.vectors))

    def wanted(block: slice) -> np.ndarray:
        here = every[block]
        there = pairs[slice(*np.searchsorted(pairs[:, 0], [here[0], here[-1] + 1]))]
        belongs = np.zeros((len(here), len(documents.vectors)), dtype=bool)
        belongs[there[:, 0] - here[0], there[:, 1]] = True
        return belongs

    found = ranking.ranked(np.stack(queries.vectors), np.stack(documents.vectors), wanted)
    return _said(queries, every, documents, wanted, found)


def _said(
    queries: _Texts,
    numbers: np.ndarray,
    documents: _Texts,
    wanted: Callable[[slice], np.ndarray],
    found: Iterable[tuple[np.ndarray, np.ndarray]],
) -> Found:
    for at, (metrics, first) in enumerate(found):
        number = int(numbers[at])
        right = np.flatnonzero(wanted(slice(at, at + 1))[0])
        right = right[(right != number) | (queries is not documents)]
        yield (
            {
                "place": queries.places[number],
                "text": queries.shown[number],
                "wanted": [documents.shown[each] for each in right[:3]],
            },
            {
                "metrics": metrics,
                "documents": len(documents.vectors),
                "first": [documents.shown[each][:200] for each in first[:3]],
            },
        )


class Partners:
    """Which texts have the same label."""

    def __init__(self, rows: Dataset) -> None:
        if len(rows) == 0 or len(rows[0]["kinds"]) > 1:
            self.order = np.zeros(0, dtype=np.int64)
            return
        self.classes, self.keys = (lists_of(rows, name)[0] for name in ("classes", "keys"))
        self.order = np.argsort(self.classes, kind="stable")
        self.sorted = self.classes[self.order]

    def drawn(self, number: int, draw: np.random.Generator) -> int | None:
        """The row of another text with the same label; None if there is none."""
        low, high = (
            np.searchsorted(self.sorted, self.classes[number], side) for side in ("left", "right")
        )
        others = self.order[low:high]
        others = others[self.keys[others] != self.keys[number]]
        return int(draw.choice(others)) if len(others) else None


def _alone(rows: Dataset) -> np.ndarray:
    """Which rows are texts with a label that no other text has, bool [rows]."""
    keys, sizes = lists_of(rows, "keys")
    classes, _ = lists_of(rows, "classes")
    first = np.cumsum(sizes) - sizes
    texts = np.unique(np.stack([classes[first], keys[first]]), axis=1)
    labels, counts = np.unique(texts[0], return_counts=True)
    return (sizes == 1) & (counts[np.searchsorted(labels, classes[first])] == 1)


def _number(text: str) -> int:
    """A number of 64 bits that is a text's own, and not `NO_CLASS`."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big", signed=True) or 1
