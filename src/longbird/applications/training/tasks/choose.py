"""Multiple choice: which of several answers, or continuations, is the right one."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from datasets import Dataset
from torch import Tensor

from longbird.applications.training.data.arrow_columns import numbers_of
from longbird.applications.training.data.columns import NAMES, as_text, find_column, group_of
from longbird.applications.training.data.files import Row
from longbird.applications.training.data.truncation import LETTERS
from longbird.applications.training.settings.tasks import ChooseSettings
from longbird.applications.training.tasks.task import Example, Prediction, Task
from longbird.errors import InvalidValueError

NUMBERED = re.compile(r"(ending|choice|option|answer)[_ -]?([0-9]+|[a-z])", re.IGNORECASE)
"""Columns that hold one choice each, such as ending0 to ending3 of SWAG."""


class Choose(Task):
    """One of several choices for each question."""

    name = "choose"
    settings_class = ChooseSettings
    head = "multiple-choice"
    best = "accuracy"
    inputs = ("input_ids", "token_type_ids", "labels")

    # ---- rows to examples

    def examples(
        self, rows: Iterable[Row], settings: ChooseSettings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """The question with its text, the choices, and the number of the right one."""
        known: dict[Any, _Columns] = {}
        for row in rows:
            names = tuple(row.values)
            if names not in known:
                known[names] = _Columns(list(names), settings, say)
            yield known[names].example(row, settings.group)

    # ---- examples to features

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Examples with the tokens of question and choice, [choices, n]; n differs."""
        typed = "token_type_ids" in tokenizer.model_input_names
        for example in examples:
            choices = [choice[: LETTERS * length] for choice in example["choices"]]
            texts = [example["text"][: LETTERS * length]] * len(choices)
            whole = [len(ids) for ids in tokenizer(texts, choices, verbose=False)["input_ids"]]
            cut = tokenizer(
                texts, choices, truncation="longest_first", max_length=length,
                return_token_type_ids=typed,
            )  # fmt: skip
            if min(map(len, cut["input_ids"])) < 2:  # one token marks a choice that is not there
                raise InvalidValueError(f"{example['place']}: the question and a choice are empty")
            yield {
                **example,
                "tokens": sum(whole),
                "longest": max(whole),
                "input_ids": cut["input_ids"],
                "token_type_ids": cut["token_type_ids"]
                if typed
                else [[0] * len(ids) for ids in cut["input_ids"]],
                "labels": example["label"],
            }

    def about(self, rows: Dataset, length: int) -> Iterator[str]:
        """What becomes of questions that are too long."""
        longer = int((numbers_of(rows, "longest") > length).sum())
        if longer:
            yield (
                f"  {longer:,} are longer, with a choice, than the {length:,} tokens that the "
                "model reads: the end of their text is cut off"
            )

    def lengths(self, features: Example) -> list[int]:
        """Tokens of all choices together, which are read at once."""
        return [sum(map(len, features["input_ids"]))]

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Inputs [batch, choices, n]; a choice that a question has not is a single token."""
        most = max(len(example["input_ids"]) for example in examples)
        flat: list[dict[str, Any]] = []
        for example in examples:
            ids, types = example["input_ids"], example["token_type_ids"]
            ids = [*ids, *([ids[0][:1]] * (most - len(ids)))]
            types = [*types, *([[0]] * (most - len(types)))]
            flat += [
                {"input_ids": each, "token_type_ids": kinds}
                for each, kinds in zip(ids, types, strict=True)
            ]
        batch = {name: x.unflatten(0, (len(examples), most)) for name, x in pad(flat).items()}
        if not batch["token_type_ids"].any():  # a model without them takes none
            del batch["token_type_ids"]
        return {**batch, "labels": torch.tensor([example["labels"] for example in examples])}

    # ---- learning

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """The mean over the questions, among the choices that each has."""
        return F.cross_entropy(_among_choices(outputs.logits, batch), batch["labels"])

    # ---- outputs to results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """The scores of the choices of each question."""
        logits = _among_choices(model(**batch).logits, batch)
        scores = logits.softmax(-1).cpu().tolist()
        there = _choices(batch).sum(1).tolist()
        return [{"scores": row[:count]} for row, count in zip(scores, there, strict=True)]

    def joined(self, row: Example, parts: Sequence[Prediction]) -> dict[str, Any]:
        """With the choices, to be shown."""
        return {**parts[0], "choices": row["choices"]}

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """The number of the choice, its text, and the scores of all."""
        scores = prediction["scores"]
        best = scores.index(max(scores))
        return {"label": best, "choice": prediction["choices"][best], "scores": scores}

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Accuracy and mean reciprocal rank."""
        every = np.ones((1, len(predictions)))
        rates = self.resampled(examples, predictions, every)
        return {
            "documents": len(predictions),
            **{name: float(values[0]) for name, values in rates.items()},
        }

    def resampled(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], counts: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The metrics of all samples at once."""
        ranks = np.array([_rank(*pair) for pair in zip(examples, predictions, strict=True)])
        drawn = counts.sum(1)
        return {
            "accuracy": counts @ (ranks == 1) / drawn,
            "mean_reciprocal_rank": counts @ (1 / ranks) / drawn,
        }

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """The score that was not given to the right choice."""
        return 1 - prediction["scores"][example["label"]]

    def expected(self, example: Example) -> Any:
        """The right choice."""
        number = example["label"]
        return {"label": number, "choice": example["choices"][number]}


def _choices(batch: Mapping[str, Tensor]) -> Tensor:
    """Which choices a question has, bool [batch, choices]: a single token stands for none."""
    return batch["attention_mask"].sum(-1) > 1


def _among_choices(logits: Tensor, batch: Mapping[str, Tensor]) -> Tensor:
    """Logits [batch, choices], those of choices that are not there at -inf."""
    return logits.float().masked_fill(~_choices(batch), -torch.inf)


def _rank(example: Example, prediction: Prediction) -> int:
    """Of the right choice; of equal scores the first choice is before the others."""
    scores, right = prediction["scores"], example["label"]
    better = sum(score > scores[right] for score in scores)
    return 1 + better + sum(score == scores[right] for score in scores[:right])


class _Columns:
    """Which columns hold question, text, choices and the right one."""

    def __init__(
        self, names: list[str], settings: ChooseSettings, say: Callable[[str], None]
    ) -> None:
        self.say: Callable[[str], None] | None = say
        numbered = [name for name in names if NUMBERED.fullmatch(name)]
        self.choices = numbered if settings.choices is None and len(numbered) > 1 else []
        others = [name for name in names if name not in self.choices]
        if not self.choices:
            self.choices = [find_column("choices", settings.choices, names, say)]
            others.remove(self.choices[0])
        self.several = len(self.choices) > 1
        wanted = "label" if "label" in others else "right choice"
        self.right = find_column(wanted, settings.label, others, say, option="label")
        others.remove(self.right)
        self.before: list[str] = []
        self.start: str | None = None
        if settings.text is None and {"sent1", "sent2"} <= set(others):  # SWAG
            say("the column sent1 is taken as the text, and sent2 begins every choice")
            self.before, self.start = ["sent1"], "sent2"
            return
        questions = [name for name in others if name.lower() in NAMES["question"]]
        texts = [name for name in others if name.lower() in (*NAMES["text"], "context", "passage")]
        if settings.text is not None:
            texts = [find_column("text", settings.text, others, say)]
        if len(questions) + len(texts) == 0:
            texts = [find_column("text", None, others, say)]
        # The question comes first, so that it is whole where a long text is cut.
        self.before = [*questions[:1], *(name for name in texts[:1] if name not in questions)]
        if len(self.before) > 1 or self.before[0] not in ("question", "text"):
            say(f"question and text are the columns {', '.join(self.before)}")

    def example(self, row: Row, group: str | None) -> dict[str, Any]:
        """What a row holds."""
        text = "\n".join(as_text(row.values[name], row, name) for name in self.before)
        choices, names = self._choices(row)
        right = self._right(row, choices, names)
        if self.start is not None:
            begin = as_text(row.values[self.start], row, self.start)
            choices = [f"{begin} {choice}" for choice in choices]
        return {
            "place": row.place,
            "text": text,
            "choices": choices,
            "label": right,
            "group": group_of(row, text, group),
        }

    def _choices(self, row: Row) -> tuple[list[str], list[str]]:
        """The choices, and what they are called if the file says."""
        names: list[Any] = []
        if self.several:
            values: Any = [row.values[name] for name in self.choices]
        else:
            values = row.values[self.choices[0]]
            if isinstance(values, str):  # a table has only text
                with contextlib.suppress(json.JSONDecodeError):
                    values = json.loads(values)
            if isinstance(values, dict) and isinstance(values.get("text"), list):  # ARC
                names, values = values.get("label") or [], values["text"]
        if not isinstance(values, list) or len(values) < 2:
            raise InvalidValueError(
                f"{row.place}: the choices are {values!r:.60}, expected a list of two or more"
            )
        for value in values:
            if not isinstance(value, (str, int, float)):
                raise InvalidValueError(f"{row.place} has the choice {value!r:.60}, expected text")
        return [str(value) for value in values], [str(name) for name in names]

    def _right(self, row: Row, choices: list[str], names: list[str]) -> int:
        """The number of the right choice, given by name, text, letter or number from 0."""
        value = row.values[self.right]
        text = str(value)
        found = [number for number, name in enumerate(names) if name == text]
        if not found and isinstance(value, str):
            found = [number for number, choice in enumerate(choices) if choice == text]
            if len(found) > 1:
                raise InvalidValueError(
                    f"{row.place}: {self.right} is {value!r:.60}, which {len(found)} of the "
                    "choices are: name the right one by its letter or its number"
                )
        if not found and isinstance(value, str) and re.fullmatch("[A-Za-z]", text):
            found = [ord(text.upper()) - ord("A")]
        if not found and not isinstance(value, bool) and re.fullmatch("[0-9]{1,9}", text):
            found = [int(text)]
            if self.say is not None:
                self.say(f"the column {self.right} has the number of the choice, counted from 0")
                self.say = None
        if len(found) != 1 or found[0] >= len(choices):
            raise InvalidValueError(
                f"{row.place}: {self.right} is {value!r:.60}, expected one of the "
                f"{len(choices)} choices: its text, its letter (A to "
                f"{chr(ord('A') + min(26, len(choices)) - 1)}) or its number (0 to "
                f"{len(choices) - 1})"
            )
        return found[0]
