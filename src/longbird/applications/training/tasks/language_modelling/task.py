"""Language modelling on raw text: masked, or of the next token.

Nothing of a document is lost: one that is longer than the model is cut into consecutive pieces,
each a row of its own. Nothing is padded out, either: a short document stays one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.applications.training.data.columns import as_text, find_column, group_of, value_of
from longbird.applications.training.data.files import Row, cut, rows, text_reader
from longbird.applications.training.metrics import language
from longbird.applications.training.settings.tasks import CausalSettings, MaskedSettings
from longbird.applications.training.tasks.language_modelling.masking import masked
from longbird.applications.training.tasks.task import Example, Prediction, Task
from longbird.errors import InvalidValueError
from longbird.models.layers.checks import IGNORED

AT_ONCE = 2**18
"""Characters that the tokenizer is given at once."""
SHOWN = 500
"""Characters of a piece that are kept, to be shown."""


class LanguageModelling(Task):
    """What masked and causal models have in common."""

    best = "loss"
    more_is_better = False
    inputs = ("input_ids", "begins")
    rows_are = "pieces"
    on_disk = ("input_ids", "begins")
    masked: ClassVar[bool]
    whole_words: bool = False

    def prepare(self, settings: CausalSettings, tokenizer: Any) -> None:
        """Notes what of the settings and of the tokenizer it needs."""
        self.settings = settings
        self.special = np.array(sorted(tokenizer.all_special_ids), dtype=np.int64)
        if tokenizer.pad_token_id is None:
            if tokenizer.eos_token_id is None:
                raise InvalidValueError("the tokenizer has no token for padding (pad_token)")
            tokenizer.pad_token = tokenizer.eos_token  # padding is masked, whatever it is
        self.unknown = tokenizer.unk_token_id

    def head_settings(self) -> dict[str, Any]:
        """Logits of the tokens that are to be predicted, and of no others."""
        return {"sparse_prediction": True}

    # ---- rows to examples

    def rows(self, paths: Iterable[str | Path], settings: CausalSettings) -> Iterator[Row]:
        """The rows of files; a text file comes in parts, so that it may be larger than memory."""
        return rows(paths, settings.encoding, text_reader(settings.documents, _most(settings)))

    def examples(
        self, rows: Iterable[Row], settings: CausalSettings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """Texts, those of one document with the same number."""
        document, column, group, before = -1, "", [], None
        for row in rows:
            goes_on = row.line == 0 and row.file == before
            if row.file != before:
                column, before = (
                    find_column("text", settings.text, list(row.values), say),
                    row.file,
                )
            text = as_text(value_of(row, column), row, column)
            if not goes_on:
                document += 1
                group = group_of(row, text[: _most(settings)], settings.group)
            for part in cut(text, _most(settings)):
                yield {"place": row.place, "document": document, "text": part, "group": group}

    def learn(self, examples: Iterable[Example]) -> None:
        """Looks whether some of the documents can be held out."""
        groups: set[tuple[str, ...]] = set()
        for example in examples:
            if len(groups) < 2:
                groups.add(tuple(example["group"]))
        if len(groups) == 1 and self.settings.hold_out and not self.settings.validation:
            raise InvalidValueError(
                "there is one document, so that none can be held out for validation: let each "
                "paragraph or line of a text file be one (`documents=paragraph`), give files with "
                "`validation`, or hold nothing out (`hold_out=0`)"
            )

    # ---- examples to features

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Pieces of at most `length` tokens, one after the other."""
        waiting: list[dict[str, Any]] = []
        for example in examples:
            waiting.append(example)
            if sum(len(each["text"]) for each in waiting) >= AT_ONCE:
                yield from self._pieces(waiting, tokenizer, length)
                waiting = []
        if waiting:
            yield from self._pieces(waiting, tokenizer, length)

    def _pieces(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int
    ) -> Iterator[dict[str, Any]]:
        encoded = tokenizer(
            [example["text"] for example in examples],
            truncation=True,
            max_length=length,
            return_overflowing_tokens=True,
        )
        sources = encoded["overflow_to_sample_mapping"]
        starts = [
            0 if number == 0 or source != sources[number - 1] else _start(piece)
            for number, (piece, source) in enumerate(zip(encoded.encodings, sources, strict=True))
        ]
        for number, (piece, source) in enumerate(zip(encoded.encodings, sources, strict=True)):
            example = examples[source]
            text, ids = example["text"], piece.ids
            last = number + 1 == len(sources) or sources[number + 1] != source
            start, end = starts[number], len(text) if last else starts[number + 1]
            ordinary = int((~np.isin(ids, self.special)).sum())
            if not ordinary:
                continue
            if not self.masked and not piece.special_tokens_mask[0]:
                start = piece.offsets[0][1]  # nothing predicts the first token
            yield {
                "place": example["place"],
                "document": example["document"],
                "text": text[start : start + SHOWN],
                "tokens": len(ids),
                "ordinary": ordinary,
                "unknown": ids.count(self.unknown),
                "bytes": len(text[start:end].encode("utf-8", "replace")),
                "input_ids": ids,
                "begins": self._begins(piece),
            }

    def _begins(self, piece: Any) -> list[bool]:
        """Which tokens begin what is drawn: a word, or each of them."""
        if not self.whole_words:
            return [True] * len(piece.ids)
        words = piece.word_ids
        return [
            word is None or number == 0 or word != words[number - 1]
            for number, word in enumerate(words)
        ]

    # ---- learning

    def counted(self, labels: Tensor) -> Tensor:
        """Which labels [batch, n] the loss is a mean over, bool."""
        raise NotImplementedError

    def items(self, batch: Mapping[str, Tensor]) -> int:
        """The tokens to predict."""
        return int(self.counted(batch["labels"]).sum())

    # ---- outputs to results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The loss of each row, summed over its tokens, how many these are, and how many right."""
        model.config.sparse_prediction = True  # also of a model that was trained elsewhere
        logits, counted = model(**batch).logits, self.counted(batch["labels"])
        targets, each = batch["labels"][counted], counted.sum(1).tolist()
        losses = [
            F.cross_entropy(some.float(), right, reduction="none")
            for some, right in zip(logits.split(1024), targets.split(1024), strict=True)
        ]
        none = torch.zeros(0, device=logits.device)
        by_row = torch.cat([*losses, none]).double().split(each)
        found = (logits.argmax(-1) == targets).split(each)
        return [
            {"nats": float(nats.sum()), "predicted": count, "right": int(right.sum())}
            for nats, right, count in zip(by_row, found, each, strict=True)
        ]

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """The mean loss of a document."""
        return {"loss": prediction["nats"] / max(prediction["predicted"], 1)}

    def whole_documents(self, examples: Any, predictions: list[Any]) -> tuple[Any, list[Any]]:
        """Documents of their pieces."""
        wholes: dict[int, dict[str, Any]] = {}
        said: dict[int, dict[str, Any]] = {}
        for example, prediction in zip(examples, predictions, strict=True):
            number = example["document"]
            if number not in wholes:
                wholes[number], said[number] = dict(example), dict(prediction)
                continue
            for name in ("tokens", "ordinary", "unknown", "bytes"):
                wholes[number][name] += example[name]
            for name in ("nats", "predicted", "right"):
                said[number][name] += prediction[name]
        return list(wholes.values()), list(said.values())

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Loss, accuracy, perplexity and bits per byte."""
        sums = self._sums(examples, predictions).sum(0)
        counts = dict(zip(language.SUMS, sums.tolist(), strict=True))
        measured = language.measure(sums, self.masked)
        return {
            "documents": len(predictions),
            "bytes": int(counts["bytes"]),
            "predicted_tokens": int(counts["predicted"]),
            **{name: float(value) for name, value in measured.items()},
        }

    def resampled(
        self,
        examples: Sequence[Example],
        predictions: Sequence[Prediction],
        counts: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """The metrics of all samples at once."""
        return language.measure(counts @ self._sums(examples, predictions), self.masked)

    @staticmethod
    def _sums(examples: Sequence[Example], predictions: Sequence[Prediction]) -> np.ndarray:
        """[documents, 6], as `language.SUMS` names them."""
        return np.array(
            [
                [said.get(name, example.get(name)) for name in language.SUMS]
                for example, said in zip(examples, predictions, strict=True)
            ],
            dtype=float,
        )

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """The mean loss of a document."""
        return prediction["nats"] / max(prediction["predicted"], 1)

    def expected(self, example: Example) -> Any:
        """Its text, which stands beside it."""
        return ""


class CausalModelling(LanguageModelling):
    """Every token is predicted from those before it."""

    name = "causal"
    settings_class = CausalSettings
    head = "causal-lm"
    masked = False

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """The same in every epoch."""
        return {"input_ids": row["input_ids"], "labels": row["input_ids"]}

    def counted(self, labels: Tensor) -> Tensor:
        """All but the first of each document."""
        there = labels != IGNORED
        return there & (there.cumsum(1) > 1)


class Masked(LanguageModelling):
    """Some tokens are hidden, and predicted from those around them."""

    name = "mlm"
    settings_class = MaskedSettings
    head = "masked-lm"
    masked = True

    def prepare(self, settings: CausalSettings, tokenizer: Any) -> None:
        """Also which token hides another, and which may replace one."""
        super().prepare(settings, tokenizer)
        assert isinstance(settings, MaskedSettings)
        self.whole_words, self.rate = settings.whole_words, settings.mask
        if tokenizer.mask_token_id is None:
            raise InvalidValueError(
                "the tokenizer has no token that hides another (mask_token): use one that has, as "
                "`longbird tokenizer train` makes them, or choose `objective=causal`"
            )
        self.mask = tokenizer.mask_token_id
        known = np.array(sorted(tokenizer.get_vocab().values()), dtype=np.int64)
        self.ordinary = np.setdiff1d(known, self.special)

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """With masks of this epoch; where a model is measured, those of no seed."""
        key = (0, 0, number) if epoch is None else (self.settings.seed, 1 + epoch, number)
        ids, labels = masked(
            np.array(row["input_ids"]),
            np.array(row["begins"]),
            self.special,
            self.ordinary,
            self.mask,
            self.rate,
            np.random.default_rng(key),
        )
        return {"input_ids": ids.tolist(), "labels": labels.tolist()}

    def counted(self, labels: Tensor) -> Tensor:
        """Those that were drawn."""
        return labels != IGNORED


def _most(settings: CausalSettings) -> int:
    """Characters of a text that are looked at together: many pieces, and little memory."""
    return max(2**18, 64 * settings.length)


def _start(piece: Any) -> int:
    """Where the text of a piece begins."""
    marks = zip(piece.offsets, piece.special_tokens_mask, strict=True)
    return next((begin for (begin, _), special in marks if not special), 0)
