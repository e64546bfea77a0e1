"""Questions about whole articles of SQuAD: read at once, or one paragraph that is found first."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial

import numpy as np

from experiments.framework.experiment import (
    Attempt,
    Claim,
    Experiment,
    Metric,
    Outcome,
    mean_of,
)
from experiments.quality.bm25 import Bm25
from experiments.quality.documents import Row
from experiments.quality.question_sets import (
    EVERY_WORD,
    SEED,
    TEST,
    in_articles,
    of_squad,
    split_squad,
)
from experiments.quality.ways import (
    Way,
    contestant,
    load,
    one_paragraph,
    paragraphs,
    read,
    ways,
)
from experiments.sources import questions
from longbird.applications.search.embedder import Embedder
from longbird.applications.training.metrics import squad


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        questions: Number of questions for each of six held-out articles.
        length: Number of tokens that the reader reads at once.
        retriever: Model that embeds paragraphs and questions.
    """

    questions: int = 250
    length: int = 4096
    retriever: str = "minilm"


SIZES = {"default": Sizes(), "quick": Sizes(questions=6)}


@cache
def held_out(count: int) -> Sequence[Row]:
    """Return questions that have an answer, with their whole articles; the draw is fixed."""
    articles = split_squad()["test"]
    every = [row for row in of_squad(articles) if row["answers"]]
    draw = random.Random(SEED)
    some = draw.sample(every, min(count, len(every)))
    return list(in_articles(some, articles, draw, EVERY_WORD))


def title_of(row: Row) -> str:
    """Return the title of a question's article, from its first paragraph."""
    return row["context"][0][0]


def texts(row: Row) -> list[str]:
    """Return the paragraphs of a question's document."""
    return ["".join(parts) for _, parts in row["context"]]


Choose = Callable[[Sequence[Row]], Sequence[int]]
"""The paragraph that is read for each question."""


def best(scores: Callable[[list[str], list[str]], np.ndarray], rows: Sequence[Row]) -> list[int]:
    """Return the number of the best paragraph for each question.

    Args:
        scores: Function that returns scores [questions, paragraphs], called once per article.
        rows: The questions.
    """
    chosen = [0] * len(rows)
    for title in {title_of(row) for row in rows}:
        numbers = [number for number, row in enumerate(rows) if title_of(row) == title]
        asked = [rows[number]["question"] for number in numbers]
        found = scores(texts(rows[numbers[0]]), asked).argmax(1)
        for number, paragraph in zip(numbers, found.tolist(), strict=True):
            chosen[number] = paragraph
    return chosen


def by_words(rows: Sequence[Row]) -> list[int]:
    """Return the paragraph with the highest BM25 score in the article of each question."""
    return best(lambda paragraphs, asked: Bm25(paragraphs).scores(asked), rows)


def by_vectors(model: str, rows: Sequence[Row]) -> list[int]:
    """Return the paragraph whose vector is nearest to that of each question."""
    embedder = Embedder.from_pretrained(model)
    return best(
        lambda paragraphs, asked: (
            embedder.embed_queries(asked) @ embedder.embed(paragraphs).vectors.T
        ),
        rows,
    )


def right(rows: Sequence[Row]) -> list[int]:
    """Return the paragraph that each question is about."""
    return [row["paragraph"] for row in rows]


def measured(way: Way, sizes: Sizes, attempt: Attempt) -> Outcome:
    """Measure the answers of a way to read; every question is answered."""
    rows = held_out(sizes.questions)
    reader, task = load(way)
    _, said = read(reader, rows, way, attempt.folder, attempt.say)
    scores = [
        squad.score(task.answer(each)["answer"], row["answers"], False)
        for each, row in zip(said, rows, strict=True)
    ]
    titles = sorted({title_of(row) for row in rows})
    return Outcome(
        {
            "exact_match": [exact for exact, _ in scores],
            "f1": [f1 for _, f1 in scores],
            "group": [titles.index(title_of(row)) for row in rows],
        }
    )


def retrieved(
    name: str, about: str, choose: Choose, sizes: Sizes
) -> tuple[Way, Callable[[Attempt], Outcome]]:
    """Return a way to read only one paragraph, which is chosen first."""

    def attempt(attempt: Attempt) -> Outcome:
        chosen = choose(held_out(sizes.questions))
        found = measured(Way(name, about, one_paragraph(chosen), twice=False), sizes, attempt)
        asked = right(held_out(sizes.questions))
        hits = [float(a == b) for a, b in zip(chosen, asked, strict=True)]
        return Outcome({**found.documents, "hit": hits}, facts={"hits": float(np.mean(hits))})

    return Way(name, about, paragraphs), attempt


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    alone = Way(
        "paragraphs", "every paragraph alone, and the best answer counts", paragraphs, twice=False
    )
    entries = [(way, partial(measured, way, sizes)) for way in (*ways(sizes.length), alone)]
    entries += [
        retrieved(
            "vectors, then read",
            "MiniLM's vectors choose the paragraph that is read alone",
            partial(by_vectors, sizes.retriever),
            sizes,
        ),
        retrieved(
            "BM25, then read", "BM25 chooses the paragraph that is read alone", by_words, sizes
        ),
        retrieved(
            "paragraph given",
            "the paragraph that the question is about is read alone: what finding it is worth",
            right,
            sizes,
        ),
    ]
    whole, given = "whole", "paragraph given"
    return Experiment(
        name="articles",
        title="Whole articles of SQuAD: one reader, several ways to find an answer in 4,000 words",
        asks="Does a reader of the whole article find answers better than one that reads chunks, "
        "every paragraph alone, or the one paragraph that a retriever chooses?",
        scale=scale,
        contestants=[
            contestant(way, attempt, asdict(sizes)) for way, attempt in entries
        ],
        reference=whole,
        metrics=[
            Metric("answer F1", "words of the answer, in percent", mean_of("f1"), scale=100),
            Metric("exact match", "of the answer, in percent", mean_of("exact_match"), scale=100),
        ],
        budget="nothing is trained: one reader, the one that ships, reads in all ways.",
        data=[
            f"{questions.NAME} (sha256 {questions.SHA256}): SQuAD 2.0 development set, up to "
            f"{sizes.questions} questions that have an answer, about {len(TEST)} articles "
            f"({', '.join(title.replace('_', ' ') for title in TEST)}) of which the reader has "
            "seen nothing; intervals draw whole articles.",
        ],
        claims=[
            Claim(f"answers are better than with {other}", whole, other, "answer F1")
            for other in ("whole, once", "first 512", "chunks", "chunks, once", "paragraphs",
                          "vectors, then read", "BM25, then read", "dense")
        ]
        + [Claim("knowing the paragraph is still worth five points", given, whole, "answer F1",
                 margin=5)],
        notes=[
            "The reader was trained on single paragraphs and on whole articles, with its graph: "
            "dense attention is not what it could be after training with it.",
            "Questions were written with their paragraph in view, and some make sense only there; "
            "what has another right answer elsewhere in the article counts as wrong.",
            "Every question that is asked here has an answer, and the best one is always given.",
        ],
    )  # fmt: skip
