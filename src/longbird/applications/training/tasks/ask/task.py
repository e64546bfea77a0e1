"""Questions about documents: where the answer is, of what type, and which sentences support it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch.nn.functional as F
from datasets import Dataset
from torch import Tensor

from longbird.applications.documents.sentences import sentences
from longbird.applications.reading.confidence import Confidence
from longbird.applications.reading.model_outputs import (
    NONE,
    TYPES,
    join,
    log_softmax,
    margin,
    window_outputs,
)
from longbird.applications.reading.second_pass import combined_passes
from longbird.applications.training.data.files import Row
from longbird.applications.training.metrics import hotpot, squad
from longbird.applications.training.settings.tasks import AskSettings
from longbird.applications.training.tasks.ask.calibration import fitted_confidence, is_better_twice
from longbird.applications.training.tasks.ask.features import (
    best_passages,
    encoded,
    features_of,
    inputs_of_window,
    window_to_learn,
)
from longbird.applications.training.tasks.ask.loss import sentence_loss, span_loss
from longbird.applications.training.tasks.ask.questions import Question, questions
from longbird.applications.training.tasks.task import Example, Prediction, Task
from longbird.errors import InvalidValueError

LABELS = ("start_positions", "end_positions", "answer_types", "sentence_support")
"""What the loss takes, and the model does not."""


class Ask(Task):
    """The answer to a question about a document.

    Args:
        typed: Are there answers other than words of the document: yes, no, or none?
        supported: Are there sentences that support an answer?
        no_answer: By how much the logit of no answer must exceed those of answers; None if there
            always is one.
        support: The probability from which on a sentence supports the answer.
        positions: Count from the beginning of the document ("document", or None), or anew in each
            paragraph.
        confidence: The fields of `Confidence`, once it is fitted.
        twice: Are the best passages of a long document read again? None until that is decided, by
            what gives better answers to held-out questions.
    """

    name = "ask"
    settings_class = AskSettings
    head = "question-answering"
    best = "f1"
    inputs = (
        "input_ids", "token_type_ids", "first", "last", "windows", "starts_of_mentions",
        "ends_of_mentions", "answer_types", "sentence_tokens", "sentence_support", "paragraphs",
    )  # fmt: skip
    joins = (
        "first", "windows", "sentence_tokens", "paragraphs", "starts", "ends", "skipped",
        "names",
    )  # fmt: skip
    on_disk = tuple({*inputs, *joins})

    def __init__(
        self,
        typed: bool = False,
        supported: bool = False,
        no_answer: float | None = 0.0,
        support: float = 0.5,
        positions: str | None = None,
        confidence: Mapping[str, Any] | None = None,
        twice: bool | None = None,
    ) -> None:
        self.typed, self.supported, self.twice = typed, supported, twice
        self.no_answer, self.support = no_answer, support
        self.positions = positions
        self.confidence = None if confidence is None else Confidence(**confidence)
        self.longest, self.length = AskSettings.answer_tokens, AskSettings.length

    def prepare(self, settings: AskSettings, tokenizer: Any) -> None:
        """Takes what the run says of answers and positions."""
        self.longest, self.length = settings.answer_tokens, settings.length
        if settings.positions is not None:
            self.positions = settings.positions

    # ---- rows to examples

    def examples(
        self, rows: Iterable[Row], settings: AskSettings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """The questions of the rows."""
        columns = {
            "question": settings.question,
            "context": settings.context,
            "answer": settings.answer,
            "separator": settings.separator,
            "group": settings.group,
        }
        count = lost = 0
        for each in questions(rows, columns, say):
            count += 1
            lost += each.kind == "span" and not each.spans
            yield {"place": each.place, "group": each.together, "asked": each}
        if lost:
            say(
                f"{lost:,} of {count:,} answers do not stand in their documents: nothing is "
                "learned of where they are, and no answer to them can be exactly right"
            )

    def learn(self, examples: Iterable[Example]) -> None:
        """Looks which kinds of answers there are, and whether sentences support them."""
        kinds: set[str] = set()
        found = False
        for example in examples:
            asked: Question = example["asked"]
            kinds.add(asked.kind)
            found |= bool(asked.spans)
            self.supported |= asked.support is not None
        self.typed = kinds != {"span"}
        self.no_answer = 0.0 if "none" in kinds else None
        if "span" in kinds and not found:
            raise InvalidValueError(
                "no answer of the training files stands in its document: answers must be words of "
                "the document, yes, no, or empty"
            )
        if kinds == {"none"}:
            raise InvalidValueError("no question of the training files has an answer")
        if self.supported:
            self.best = "quality"

    def head_settings(self) -> dict[str, Any]:
        """What the configuration says of the head."""
        return {
            "num_answer_types": len(TYPES) if self.typed else 0,
            "supporting_sentences": self.supported,
        }

    def start_from(self, config: Any) -> None:
        """A model that was trained before counts positions as it did then."""
        before = (getattr(config, "task_specific_params", None) or {}).get(self.head, {})
        self.positions = self.positions or before.get("positions", "document")
        config.task_specific_params = self._kept()

    def _kept(self) -> dict[str, Any]:
        """What the configuration of the model says of the task."""
        kept: dict[str, Any] = {
            "no_answer": self.no_answer,
            "support": self.support,
            "positions": self.positions,
            "twice": bool(self.twice),
            "length": self.length,
            "answer_tokens": self.longest,
        }
        if self.confidence is not None:
            kept["confidence"] = self.confidence.as_json()
        return {self.head: kept}

    @classmethod
    def of_model(cls, config: Any) -> Ask:
        """The task that a model was trained for."""
        if config.num_answer_types not in (0, len(TYPES)):
            raise InvalidValueError(
                f"the model tells {config.num_answer_types} types of answers apart, expected "
                f"{len(TYPES)} ({', '.join(TYPES)}) or 0"
            )
        chosen = dict((getattr(config, "task_specific_params", None) or {}).get(cls.head, {}))
        chosen.setdefault("twice", False)
        for name in ("length", "answer_tokens"):  # which `prepare` takes of the run
            chosen.pop(name, None)
        return cls(bool(config.num_answer_types), config.supporting_sentences, **chosen)

    # ---- examples to features

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield every window of each document; to learn from, the window with the answer."""
        for asked, tokens in encoded(examples, tokenizer, length):
            places = [(each.start, each.end) for each in asked.sentences]
            if training:
                window = window_to_learn(asked, tokens, length)
                yield features_of(asked, tokens, [window], places)
                continue
            if self.supported and not places:  # not in the file: as the reader finds them
                places = sentences(asked.text)
            yield features_of(asked, tokens, tokens.windows(length), places)

    def about(self, rows: Any, length: int) -> Iterator[str]:
        """What becomes of documents that are longer than the model."""
        pairs = zip(rows["tokens"], rows["windows"], strict=True)
        longer = [len(windows) for tokens, windows in pairs if tokens > length]
        if longer:
            what = "they are read in windows that overlap, and the best answer counts"
            if max(longer) == 1:
                what = "the window with the answer is learned from"
            yield f"  {len(longer):,} are longer than the {length:,} tokens of `length`: {what}"

    # ---- windows

    def lengths(self, features: Example) -> list[int]:
        """Tokens of each window with the question."""
        around = len(features["input_ids"]) - (features["last"] - features["first"])
        return [around + stop - start for start, stop in features["windows"]]

    def inputs_of(self, row: Example, part: int, number: int, epoch: int | None) -> dict[str, Any]:
        """The inputs of a window; all but the document is global: the question."""
        rows = self.length if self.positions == "paragraph" else None
        return inputs_of_window(row, part, rows)

    def joined(self, row: Example, parts: Sequence[Prediction]) -> dict[str, Any]:
        """What was said of the windows of a document as one answer.

        The best span is that of highest logit, where the type is likely to be a span. An answer
        in any window is an answer; that there is none must be so in all of them.
        """
        found = join(row, parts, self.typed, self.supported)
        names = json.loads(row["names"])
        support = {
            (title, index): logit
            for (title, index), logit in zip(names, found["sentences"], strict=False)
        }
        return {**found, "support": support}

    def second_look(
        self,
        rows: Dataset,
        predictions: list[dict[str, Any]],
        read: Callable[[Dataset], list[dict[str, Any]]],
    ) -> list[dict[str, Any]]:
        """Read the best passages of long documents alone, and take the answers found there."""
        again = None if self.twice is False else best_passages(rows, predictions)
        if again is None:
            return predictions
        return [
            self._looked_twice(*both) if both[1] else both[0]
            for both in zip(predictions, read(again), strict=True)
        ]

    def _looked_twice(self, first: Prediction, second: Prediction) -> dict[str, Any]:
        """The answer of the second look, and what supports it of both."""
        found = combined_passes(first, second)
        return {**found, "support": dict(zip(first["support"], found["sentences"], strict=False))}

    def batch(
        self,
        examples: Sequence[dict[str, Any]],
        pad: Callable[[Sequence[dict[str, Any]]], dict[str, Tensor]],
    ) -> dict[str, Tensor]:
        """Leave token types out where the tokenizer has none: some models then have their own."""
        batch = pad(examples)
        if batch["token_type_ids"].any():
            return batch
        return {name: x for name, x in batch.items() if name != "token_type_ids"}

    # ---- learning

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Any:
        """The question is global; the loss is computed here, over all mentions of an answer."""
        unused = (*LABELS, "paragraph_positions")
        if not self.supported:
            unused = (*unused, "sentence_positions")
        given = {name: x for name, x in batch.items() if name not in unused}
        if "position_ids" in given:
            config = getattr(model, "module", model).config  # of one among several processes, too
            given["position_ids"] = given["position_ids"] + config.first_position
            if config.positions == "none":
                raise InvalidValueError(
                    'positions="paragraph" needs a model with a table of positions, and this one '
                    "has none: leave it out"
                )
        return model(**given)

    def loss(self, outputs: Any, batch: Mapping[str, Tensor], weights: Tensor | None) -> Tensor:
        """Where the answer is, its type, and which sentences support it."""
        loss = self.span_loss(outputs, batch)
        if self.typed:
            loss = loss + F.cross_entropy(
                outputs.answer_type_logits.float(), batch["answer_types"].long()
            )
        if self.supported:
            loss = loss + sentence_loss(outputs.sentence_logits, batch)
        return loss

    def span_loss(self, outputs: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """The answer is one of its mentions, whichever: their probabilities are added."""
        return span_loss(outputs.start_logits, outputs.end_logits, batch)

    # ---- outputs to results

    def predictions(self, model: Any, batch: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Of each window: its best span, the logits of the types, and those of sentences."""
        outputs = self.run(model, batch)
        return window_outputs(outputs, batch, self.longest, self.typed, self.supported)

    def answer(self, prediction: Prediction) -> dict[str, Any]:
        """A prediction as the user sees it; start and end are characters of the document."""
        span, types = prediction["span"], prediction["types"]
        kind, sure = "span", 1.0
        if types is not None:
            silent = self.no_answer is not None and margin(types) > self.no_answer
            kind = "none" if silent else TYPES[int(np.argmax(types[:NONE]))]
            sure = float(np.exp(log_softmax(types)[TYPES.index(kind)]))
        if kind == "span" and span is None:
            kind = "none"
        found: dict[str, Any] = {
            "answer": "" if kind == "none" else kind,
            "type": kind,
            "start": None,
            "end": None,
            "score": sure,
        }
        if kind == "span" and span is not None:
            found |= {"answer": span["text"], "start": span["start"], "end": span["end"]}
            found["score"] = sure * span["chance"]
        if self.supported:
            found["supporting_facts"] = [list(fact) for fact in self._facts(prediction)]
        return found

    def _facts(
        self, prediction: Prediction, support: float | None = None
    ) -> list[tuple[str, int]]:
        least = self.support if support is None else support
        return [
            fact
            for fact, logit in prediction["support"].items()
            if logit >= np.log(least / (1 - least))
        ]

    def scores(
        self,
        examples: Sequence[Example],
        predictions: Sequence[Prediction],
        support: float | None = None,
    ) -> dict[str, np.ndarray]:
        """By metric, the score of each question; NaN for one that it does not apply to.

        `quality` chooses the best model: joint F1 where sentences support the answer, else F1.
        """
        table: list[dict[str, float]] = []
        for example, prediction in zip(examples, predictions, strict=True):
            gold = _gold(example)
            given, rights = self.answer(prediction)["answer"], gold["answers"]
            if gold["metric"] == "hotpot":
                facts = self._facts(prediction, support)
                true = [(title, index) for title, index in gold["support"]]
                each = (hotpot.score(given, right, facts, true) for right in rights)
                table.append(max(each, key=lambda found: found["f1"]))
                continue
            exact, f1 = squad.score(given, rights, gold["metric"] == "squad2")
            side = "has_answer" if rights else "no_answer"
            table.append(
                {"exact_match": exact, "f1": f1, f"{side}_exact_match": exact, f"{side}_f1": f1}
            )
        names = list(dict.fromkeys(name for row in table for name in row))
        if "no_answer_f1" not in names:  # then all have an answer
            names = [name for name in names if not name.startswith("has_answer")]
        scores = {name: np.array([row.get(name, np.nan) for row in table]) for name in names}
        if self.supported:
            scores["quality"] = np.array([row.get("joint_f1", row["f1"]) for row in table])
        return scores

    def measure(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """The metrics of SQuAD and HotpotQA."""
        scores = self.scores(examples, predictions)
        thresholds: dict[str, Any] = {"no_answer": self.no_answer} if self.typed else {}
        if self.supported:
            thresholds["support"] = self.support
        return {
            "documents": len(examples),
            **{name: float(np.nanmean(values)) for name, values in scores.items()},
            "thresholds": thresholds,
        }

    def resampled(
        self,
        examples: Sequence[Example],
        predictions: Sequence[Prediction],
        counts: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """All samples at once: every metric is a mean over questions."""
        found: dict[str, np.ndarray] = {}
        for name, values in self.scores(examples, predictions).items():
            applies = ~np.isnan(values)
            among = counts[:, applies].sum(1)
            sums = counts[:, applies] @ values[applies]
            found[name] = sums[among > 0] / among[among > 0]
        return found

    def calibrate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction], config: Any
    ) -> None:
        """Chooses the thresholds, and keeps them in the configuration of the model."""
        golds = [_gold(example) for example in examples]
        if self.twice is None:
            self.twice = is_better_twice(golds, predictions)
        if not self.twice:
            predictions = [each.get("first", each) for each in predictions]
        sides = {bool(gold["answers"]) for gold in golds}
        if self.no_answer is not None and self.typed and sides == {True, False}:
            margins = np.array([margin(each["types"]) for each in predictions])
            self.no_answer = np.inf
            answered = self.scores(examples, predictions)["f1"]
            self.no_answer = -np.inf
            silent = self.scores(examples, predictions)["f1"]
            self.no_answer = squad.best_threshold(margins, answered, silent)
        if self.supported and any(gold["support"] is not None for gold in golds):
            tenths = sorted(np.arange(1, 10) / 10, key=lambda tenth: abs(tenth - 0.5))
            joint = [
                np.nanmean(self.scores(examples, predictions, tenth)["joint_f1"])
                for tenth in tenths
            ]
            self.support = float(tenths[int(np.argmax(joint))])
        self.confidence = fitted_confidence(golds, predictions)
        config.task_specific_params = self._kept()

    def wrongness(self, example: Example, prediction: Prediction) -> float:
        """How wrong an answer is; of answers that are as wrong, the surer is worse."""
        scores = self.scores([example], [prediction])
        reached = scores["quality" if self.supported else "f1"][0]
        return (1 - reached) * (1 + self.answer(prediction)["score"])

    def expected(self, example: Example) -> Any:
        """The answers, and what supports them."""
        gold = _gold(example)
        if gold["support"] is None:
            return gold["answers"]
        answer = gold["answers"][0] if gold["answers"] else ""
        return {"answer": answer, "supporting_facts": gold["support"]}


def _gold(example: Example) -> dict[str, Any]:
    """What is right."""
    return json.loads(example["gold"])
