"""What else was tried for the reader: the third stage, shorter, in other ways.

    python recipes/reader/trials.py NAME FOLDER [--steps 300] [--start default]

FOLDER is that of train.sh; its `data` are used. Trials begin with its second stage or, with
`--start`, with any other reader. All have the same questions, steps and seed, and are measured on
the validation questions that have an answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from scoring import f1_by_kind, in_percent
from torch import Tensor

import longbird as lb
from experiments.quality.documents import read_rows
from longbird.applications.reading.default_reader import folder_of_reader
from longbird.applications.training.engine.finetune import finetune
from longbird.applications.training.engine.trained_model import load_trained
from longbird.applications.training.tasks.ask.task import Ask
from longbird.applications.training.tasks.registry import register_task

MOST_SENTENCES = 256
LONGEST = 30
"""Tokens of an answer."""


class QuestionLocal(Ask):
    """The question is not global; nor is a block of the graph, of which it would be the first."""

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Any:
        """Nothing is named as global."""
        mask = torch.zeros_like(batch["global_attention_mask"])
        return super().run(model, {**batch, "global_attention_mask": mask})


class SentencesGlobal(Ask):
    """The first token of every sentence is global, too, as in Longformer's HotpotQA."""

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Any:
        """Adds them to the question."""
        mask = batch["global_attention_mask"] + _begins(batch)
        return super().run(model, {**batch, "global_attention_mask": mask.clamp(max=1)})


class Etc(Ask):
    """BigBird-ETC: an added global token for each sentence, which knows its tokens."""

    def head_settings(self) -> dict[str, Any]:
        """With tokens for the sentences."""
        return {**super().head_settings(), "num_global_tokens": MOST_SENTENCES}

    def run(self, model: Any, batch: Mapping[str, Tensor]) -> Any:
        """Numbers the sentences."""
        number = (_begins(batch).cumsum(1) - 1).clamp(max=MOST_SENTENCES - 1)
        number = number.masked_fill(batch["global_attention_mask"] > 0, -1)
        return super().run(model, {**batch, "segment_ids": number})


class WholeSpans(Ask):
    """A softmax over all spans of up to 30 tokens, rather than over starts and over ends."""

    def span_loss(self, outputs: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """The answer is one of its mentions."""
        start, end = batch["start_positions"], batch["end_positions"]  # [rows, mentions]
        first, last = outputs.start_logits.float(), outputs.end_logits.float()  # [rows, n]
        n = first.shape[1]
        spans = [first[:, : n - more] + last[:, more:] for more in range(min(LONGEST, n))]
        every = torch.cat(spans, 1).logsumexp(1)
        counts = (start >= 0) & (end >= 0)
        mention = first.gather(1, start.clamp(min=0)) + last.gather(1, end.clamp(min=0))
        there = counts.any(1)
        right = mention.masked_fill(~counts, -torch.inf)[there].logsumexp(1)
        return (every[there] - right).sum() / 2 / len(start)


class OneMention(Ask):
    """Only the first mention of an answer counts."""

    def span_loss(self, outputs: Any, batch: Mapping[str, Tensor]) -> Tensor:
        """The others are taken away."""
        first = {name: batch[name][:, :1] for name in ("start_positions", "end_positions")}
        return super().span_loss(outputs, {**batch, **first})


def _begins(batch: Mapping[str, Tensor]) -> Tensor:
    """1 where a sentence begins, [rows, n]."""
    at = batch["sentence_positions"]  # [rows, sentences], -1 for none
    marks = torch.zeros_like(batch["global_attention_mask"])
    return marks.scatter_reduce(1, at.clamp(min=0), (at >= 0).to(marks.dtype), "amax")


TRIALS: dict[str, tuple[type[Ask], dict[str, Any]]] = {
    "as it is": (Ask, {}),
    "positions over the document": (Ask, {"positions": "document"}),
    "question not global": (
        QuestionLocal,
        {"graph": "BlockWindow(3, 64) | RandomBlocks(5, 64)"},
    ),
    "sentences global": (SentencesGlobal, {}),
    "etc": (Etc, {}),
    "whole spans": (WholeSpans, {}),
    "one mention": (OneMention, {}),
}


def with_global_tokens(start: Path, folder: Path) -> Path:
    """A reader with added global tokens, whose weights are new."""
    model = lb.LongbirdForQuestionAnswering.from_pretrained(
        start, num_global_tokens=MOST_SENTENCES, strict=False
    )
    model.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(start).save_pretrained(folder)
    return folder


def main(name: str, folder: Path, steps: int, start: str | None) -> None:
    """Trains and measures."""
    task, changed = TRIALS[name]
    options: dict[str, Any] = {"positions": "paragraph", **changed}
    register_task(task)
    data, out = folder / "data", folder / "trials" / name.replace(" ", "-")
    begin = folder_of_reader(start or folder / "2-last")
    if task is Etc:
        begin = with_global_tokens(begin, folder / "trials" / "etc-start")
    files = [data / f"3-{part}.jsonl" for part in ("paragraphs", "hotpot", "articles")]
    finetune(
        "ask", files, out, model=str(begin), length=4096, frozen_words=True,
        bf16=True, tokens_per_batch=2048, steps=steps, learning_rate=8e-5, warmup=0.05,
        hold_out=0.0, say=print, **options,
    )  # fmt: skip
    questions = read_rows(data / "validation.jsonl")
    print(f"{name}: {in_percent(f1_by_kind(load_trained(out), questions))}")


if __name__ == "__main__":
    given = argparse.ArgumentParser()
    given.add_argument("name", choices=TRIALS)
    given.add_argument("folder", type=Path)
    given.add_argument("--steps", type=int, default=300)
    given.add_argument("--start")
    asked = given.parse_args()
    main(asked.name, asked.folder, asked.steps, asked.start)
