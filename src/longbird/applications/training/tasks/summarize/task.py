"""Summaries of documents: an encoder reads the document, a decoder writes the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.data.columns import (
    NAMES,
    as_text,
    find_column,
    group_of,
    value_of,
)
from longbird.applications.training.data.files import Row
from longbird.applications.training.data.truncation import LETTERS, cut_to
from longbird.applications.training.initialisation.new_model import end_of
from longbird.applications.training.metrics.summaries import KINDS, lead, rouge
from longbird.applications.training.settings.tasks import SummarizeSettings
from longbird.applications.training.tasks.summarize.generation import written
from longbird.applications.training.tasks.task import Example, Prediction, Task
from longbird.errors import InvalidValueError
from longbird.models.layers.checks import IGNORED

SHOWN = 500
"""Characters of a document that are kept, to be shown."""
MOST = 500
"""Validation documents that are summarised at the end of a run: each takes seconds."""


class Summarize(Task):
    """A summary of each document.

    While a model learns, it is measured by its loss on the validation documents, which takes
    little time and tells one step from the next; summaries are written at the end.
    """

    name = "summarize"
    settings_class = SummarizeSettings
    head = "seq2seq"
    best = "loss"
    more_is_better = False
    inputs = ("input_ids", "labels")
    on_disk = ("input_ids", "labels")

    def prepare(self, settings: SummarizeSettings, tokenizer: Any) -> None:
        """Notes how long summaries may be, and what ends them."""
        self.tokenizer, self.most = tokenizer, settings.summary_tokens
        self.end = end_of(tokenizer)
        tokenizer.padding_side = "right"  # `written` cuts it off there
        names = [name for name in tokenizer.model_input_names if name != "token_type_ids"]
        tokenizer.model_input_names = names  # an encoder-decoder takes no types of tokens
        if tokenizer.pad_token_id is None:  # padding is masked, whatever it is
            tokenizer.pad_token = tokenizer.convert_ids_to_tokens(self.end)

    def head_settings(self) -> dict[str, Any]:
        """Logits of the tokens of summaries, and none of padding."""
        return {"sparse_prediction": True}

    # ---- rows to examples

    def examples(
        self, rows: Iterable[Row], settings: SummarizeSettings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """The text, the summary and the group of each row."""
        columns: tuple[str, str] | None = None
        for row in rows:
            if columns is None:
                columns = find_columns(list(row.values), settings, say)
            text, summary = (joined_text(value_of(row, each), row, each) for each in columns)
            if not summary.strip():
                raise InvalidValueError(
                    f"{row.place}: the column {columns[1]} is empty: a document without a summary "
                    "teaches nothing, leave it out"
                )
            yield {
                "place": row.place,
                "text": text,
                "summary": summary,
                "group": group_of(row, text, settings.group),
            }

    def text_columns(self, names: list[str]) -> list[str]:
        """Not those of summaries; but an abstract can be the text, if nothing else is.

        Examples:
            >>> Summarize().text_columns(["article", "abstract"])
            ['article']
            >>> Summarize().text_columns(["abstract", "id"])
            ['abstract', 'id']
        """
        others = [name for name in names if name.lower() not in NAMES["summary"]]
        return others if any(name.lower() in NAMES["text"] for name in others) else names

    def unanswered(self, value: Any, row: Row, column: str) -> dict[str, Any]:
        """The text, of which a summary is to be written."""
        return {"text": joined_text(value, row, column)}

    # ---- examples to features

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Examples with the tokens of the document and of its summary."""
        cut = cut_to(length, [example["text"] for example in examples], tokenizer)
        summaries = [example.get("summary", "")[: LETTERS * self.most] for example in examples]
        targets = tokenizer(text_target=summaries, verbose=False)["input_ids"]
        for example, (ids, tokens), target in zip(examples, cut, targets, strict=True):
            if "summary" not in example:  # it is to be written
                target = []
            elif target[-1:] != [self.end]:
                target = [*target, self.end]
            labels = target if len(target) <= self.most else [*target[: self.most - 1], self.end]
            yield {
                **example,
                "text": example["text"][:SHOWN],
                "lead": lead(example["text"]),
                "tokens": tokens,
                "target_tokens": len(target),
                "input_ids": ids,
                "labels": labels,
            }

    def about(self, rows: Dataset, length: int) -> Iterator[str]:
        """Also how many summaries are cut."""
        yield from super().about(rows, length)
        longer = int((numbers_of(rows, "target_tokens") > self.most).sum())
        if longer:
            yield (
                f"  {longer:,} summaries are longer than {self.most:,} tokens: what is learned of "
                "them are their beginnings (`summary_tokens`)"
            )

    def lengths(self, features: Example) -> list[int]:
        """Tokens of the document and of its summary."""
        return [len(features["input_ids"]) + len(features["labels"])]

    # ---- features to batches

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Documents and summaries, each padded to the longest of their kind."""
        labels = [torch.tensor(example["labels"], dtype=torch.int64) for example in examples]
        batch = pad([{"input_ids": example["input_ids"]} for example in examples])
        return {
            "input_ids": batch["input_ids"],
            "attention_mask": batch["attention_mask"],
            "labels": pad_sequence(labels, batch_first=True, padding_value=IGNORED),
        }

    # ---- learning

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Any:
        """The outputs of the model, for which the first token of a document may be global."""
        return model(**batch, **first_is_global(model, batch))

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """The tokens of summaries."""
        return int((batch["labels"] != IGNORED).sum())

    # ---- outputs to results

    def watched(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The loss of each summary, summed over its tokens, and how many these are."""
        counted = batch["labels"] != IGNORED
        logits, each = self.run(model, batch).logits, counted.sum(1).tolist()
        logits = logits[counted] if logits.ndim == 3 else logits
        losses = F.cross_entropy(logits.float(), batch["labels"][counted], reduction="none")
        return [
            {"nats": float(nats.sum()), "predicted": count}
            for nats, count in zip(losses.double().split(each), each, strict=True)
        ]

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The summary of each document, whether it was cut off, and the loss of the true one."""
        there = batch["labels"].shape[1] > 0
        losses = self.watched(model, batch) if there else [{}] * len(batch["labels"])
        every = written(model, batch, first_is_global, self.most)
        texts = self.tokenizer.batch_decode(every, skip_special_tokens=True)
        return [
            {**loss, "summary": text.strip(), "cut_off": float(self.end not in ids[1:])}
            for loss, text, ids in zip(losses, texts, every, strict=True)
        ]

    def joined(self, row: Example, parts: Sequence[Prediction]) -> dict[str, Any]:
        """With its ROUGE, and that of the beginning of the document."""
        said = dict(parts[0])
        if "summary" not in said or "summary" not in row:
            return said
        reference = row["summary"]
        said |= rouge(said["summary"], reference)
        said |= {f"lead_{name}": x for name, x in rouge(row["lead"], reference).items()}
        words = {"summary_words": said["summary"], "reference_words": reference}
        return said | {name: float(len(text.split())) for name, text in words.items()}

    def some(self, rows: Dataset) -> Dataset:
        """As many as can be summarised in a reasonable time."""
        if len(rows) <= MOST:
            return rows
        return rows.select(np.sort(np.random.default_rng(0).permutation(len(rows))[:MOST]))

    def calibrate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], config: Any
    ) -> None:
        """Gives the model that is kept logits of all tokens, as others expect them."""
        config.sparse_prediction = False

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """The summary."""
        return {"summary": prediction["summary"]}

    def as_text(self, answer: Mapping[str, Any]) -> str:
        """Return the summary."""
        return answer["summary"] or "(empty)"

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """The loss; of summaries that were written, also ROUGE, beside that of the beginnings."""
        every = np.ones((1, len(predictions)), dtype=int)
        found = self.resampled(examples, predictions, every)
        return {
            "documents": len(predictions),
            **{name: float(values[0]) for name, values in found.items()},
        }

    def resampled(
        self,
        examples: Sequence[Example],
        predictions: Sequence[Prediction],
        counts: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """The loss is a mean over tokens, everything else one over documents."""
        means = [name for name in MEANS if name in predictions[0]]
        table = np.array([[said[name] for name in (*SUMS, *means)] for said in predictions])
        nats, predicted, *others = (counts @ table).T
        found = {name: sums / counts.sum(1) for name, sums in zip(means, others, strict=True)}
        return {**found, "loss": nats / np.maximum(predicted, 1)}

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """How little of the reference the summary has."""
        return 1 - prediction["rougeL"]

    def expected(self, example: Example) -> Any:
        """The summary that the file has."""
        return example["summary"]


SUMS = ("nats", "predicted")
MEANS = (
    *KINDS, *(f"lead_{name}" for name in KINDS), "summary_words", "reference_words", "cut_off",
)  # fmt: skip
"""What predictions have, to be averaged; `lead_rouge1` is that of the first three sentences."""


def find_columns(
    names: list[str], settings: SummarizeSettings, say: Callable[[str], None]
) -> tuple[str, str]:
    """The columns of the text and of the summary."""
    able = names
    if settings.summary is None and settings.text in (None, "text") and "text" in names:
        able = [name for name in names if name != "text"]
    summary = find_column("summary", settings.summary, able, say, alone=len(able) < len(names))
    others = [name for name in names if name != summary]  # an abstract can be either
    if settings.text == summary:
        raise InvalidValueError(f"`text` and `summary` both name the column {summary}")
    return find_column("text", settings.text, others, say), summary


def joined_text(value: Any, row: Row, column: str) -> str:
    """A text, which may be a list of its sentences."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return "\n".join(value)
    return as_text(value, row, column)


def first_is_global(model: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The first token of every document sees and is seen by all, where LED was trained so."""
    if not getattr(model, "module", model).config.global_projections:
        return {}
    marks = torch.zeros_like(batch["input_ids"])
    marks[:, 0] = 1
    return {"global_attention_mask": marks}
