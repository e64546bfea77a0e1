"""HotpotQA: answers and supporting sentences in ten paragraphs, which are read in several ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial

from experiments.framework.experiment import (
    Attempt,
    Claim,
    Experiment,
    Metric,
    Outcome,
    mean_of,
)
from experiments.quality.documents import Row
from experiments.quality.question_sets import split_hotpot
from experiments.quality.ways import Way, contestant, load, read, ways
from experiments.sources import questions

PUBLISHED = {"answer F1": 75.7, "supporting F1": 86.8, "joint F1": 67.7}
"""Of BigBird-ITC base on the development set, trained on 90,447 questions."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        validation: Number of questions that choose the threshold of supporting sentences.
        test: Number of held-out questions.
        length: Number of tokens that the reader reads at once.
    """

    validation: int = 300
    test: int = 1001
    length: int = 4096


SIZES = {"default": Sizes(), "quick": Sizes(validation=6, test=8)}


@cache
def held_out(sizes: Sizes) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the validation questions and the held-out questions."""
    split = split_hotpot()
    return split["validation"][: sizes.validation], split["test"][: sizes.test]


def measured(way: Way, sizes: Sizes, attempt: Attempt) -> Outcome:
    """Measure a way to read; every question is answered."""
    reader, task = load(way)
    validation, test = held_out(sizes)
    task.calibrate(
        *read(reader, validation, way, attempt.folder, attempt.say), reader.model.config
    )
    examples, said = read(reader, test, way, attempt.folder, attempt.say)
    scores = task.scores(examples, said)
    kept = ("exact_match", "f1", "sp_f1", "joint_f1")
    columns = {name: scores[name].tolist() for name in kept}
    columns["comparison"] = [float(row["type"] == "comparison") for row in test]
    return Outcome(columns, facts={"support": task.support})


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    whole, cut, chunks, dense = "whole", "first 512", "chunks", "dense"
    return Experiment(
        name="hotpotqa",
        title="HotpotQA: one reader, several ways to read ten paragraphs",
        asks="Two of ten paragraphs must be read together to answer a question. Does a reader of "
        "all of them at once answer better than the same reader with the first 512 tokens, or "
        "with chunks of 512 of which the best answer counts?",
        scale=scale,
        contestants=[
            contestant(
                way,
                partial(measured, way, sizes),
                asdict(sizes),
                PUBLISHED if way.name == whole else {},
            )
            for way in ways(sizes.length)
        ],
        reference=whole,
        metrics=[
            Metric("answer F1", "words of the answer, in percent", mean_of("f1"), scale=100),
            Metric(
                "supporting F1", "sentences that support it, in percent", mean_of("sp_f1"),
                scale=100,
            ),
            Metric("joint F1", "of both, in percent", mean_of("joint_f1"), scale=100),
            Metric("exact match", "of the answer, in percent", mean_of("exact_match"), scale=100),
            Metric(
                "answer F1, comparisons",
                "of questions that compare two things, in percent",
                mean_of("f1", "comparison"),
                scale=100,
            ),
        ],
        budget="nothing is trained: one reader, the one that ships, reads in all ways.",
        data=[
            f"{questions.NAME} (sha256 {questions.SHA256}): HotpotQA development set "
            f"(distractor), {sizes.test:,} held-out questions that share no paragraph with those "
            f"that the reader learned from or was chosen by; {sizes.validation} others choose for "
            "each way from which probability on a sentence is said to support an answer.",
        ],
        claims=[
            Claim("answers are better by five points than with 512 tokens", whole, cut,
                  "answer F1", margin=5),
            Claim("answers are better than in chunks", whole, chunks, "answer F1"),
            Claim("answers are better than in chunks with one look", whole, "chunks, once",
                  "answer F1"),
            Claim("a second look makes answers better", whole, "whole, once", "answer F1"),
            Claim("joint F1 is above that of 512 tokens", whole, cut, "joint F1"),
            Claim("joint F1 is above that of chunks", whole, chunks, "joint F1"),
            Claim("answers are better than with dense attention", whole, dense, "answer F1"),
        ],
        notes=[
            "The reader was trained on whole contexts and on short ones, with its graph: the "
            "other ways have a reader that was not trained for them alone. Dense attention in "
            "particular is not what it could be after training with it.",
            "Every question of HotpotQA has an answer, and the best one is always given.",
            "Published figures are of a model five times as large, pretrained at this length, and "
            "trained on fifteen times as many questions; they are on the whole development set.",
        ],
        sources=["BigBird: Zaheer et al. 2020, Table 2 (base, ITC)"],
    )  # fmt: skip
