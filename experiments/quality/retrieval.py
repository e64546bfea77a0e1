"""Retrieval with vectors of long documents: late chunks, plain chunks, and one vector for all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial

import numpy as np

from experiments.framework.experiment import (
    Attempt,
    Claim,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    mean_of,
)
from experiments.quality.bm25 import Bm25
from experiments.quality.documents import chunks
from experiments.sources import questions
from longbird.applications.search.embedder import Embedder
from longbird.applications.training.initialisation.starting_model import source_of, tokenizer_of
from longbird.applications.training.metrics.ranking import METRICS, measured

BETWEEN = "\n\n"
"""What divides the paragraphs of a document."""
SEED = 0
"""Of the questions that are drawn."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        articles: Number of articles of SQuAD.
        squad: Number of questions about them.
        hotpot: Number of questions of HotpotQA, each with ten paragraphs.
        length: Number of tokens that a long model reads at once.
        short: Number of tokens that a short model reads.
        model: Sentence embedding model.
    """

    articles: int = 35
    squad: int = 6000
    hotpot: int = 400
    length: int = 4096
    short: int = 512
    model: str = "minilm"


SIZES = {
    "default": Sizes(),
    "quick": Sizes(articles=2, squad=20, hotpot=4, length=1024),
}


@dataclass(frozen=True)
class Documents:
    """Documents in paragraphs, and questions about them.

    Attributes:
        paragraphs: Paragraphs of each document.
        asked: The questions.
        document: Number of the document of each question.
        wanted: Numbers of the paragraphs in it that should be found.
        own: Whether a question searches only its own document, rather than all.
    """

    paragraphs: Sequence[Sequence[str]]
    asked: Sequence[str]
    document: Sequence[int]
    wanted: Sequence[Sequence[int]]
    own: bool

    @property
    def begins(self) -> np.ndarray:
        """Number of the first paragraph of each document, and of all, [documents + 1]."""
        return np.cumsum([0, *map(len, self.paragraphs)])


@cache
def squad(scale: str) -> Documents:
    """Return articles, and questions that are answered by one paragraph."""
    sizes = SIZES[scale]
    articles = json.loads(questions.squad().read_text("utf-8"))["data"][: sizes.articles]
    every = [
        (asked["question"], number, at)
        for number, article in enumerate(articles)
        for at, paragraph in enumerate(article["paragraphs"])
        for asked in paragraph["qas"]
        if not asked["is_impossible"]
    ]
    drawn = np.sort(np.random.default_rng(SEED).permutation(len(every))[: sizes.squad])
    some = [every[number] for number in drawn.tolist()]
    return Documents(
        [[_one_line(x["context"]) for x in article["paragraphs"]] for article in articles],
        [question for question, _, _ in some],
        [document for _, document, _ in some],
        [[at] for _, _, at in some],
        own=False,
    )


@cache
def hotpot(scale: str) -> Documents:
    """Return ten paragraphs for each question, of which two are needed."""
    sizes = SIZES[scale]
    every = json.loads(questions.hotpotqa().read_text("utf-8"))
    drawn = np.sort(np.random.default_rng(SEED).permutation(len(every))[: sizes.hotpot])
    paragraphs: list[list[str]] = []
    wanted: list[list[int]] = []
    for number in drawn.tolist():
        needed = {title for title, _ in every[number]["supporting_facts"]}
        context = every[number]["context"]
        paragraphs.append([_one_line(f"{title}. {''.join(lines)}") for title, lines in context])
        wanted.append([at for at, (title, _) in enumerate(context) if title in needed])
    return Documents(
        paragraphs,
        [every[number]["question"] for number in drawn.tolist()],
        list(range(len(drawn))),
        wanted,
        own=True,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


# ---- how well

Scores = tuple[np.ndarray, np.ndarray]
"""Of each question with all paragraphs, and with all documents."""
Search = Callable[[Documents], Scores]


def found(search: Search, scale: str, attempt: Attempt) -> Outcome:
    """Measure how well the paragraphs and articles of SQuAD, and those of HotpotQA, are found."""
    columns: dict[str, list[float]] = {}
    for name, given in (("squad", squad(scale)), ("hotpot", hotpot(scale))):
        attempt.say(f"{name}: {len(given.asked):,} questions")
        paragraphs, articles = search(given)
        here = {"squad": [float(name == "squad")] * len(given.asked)}
        here["hotpot"] = [1 - x for x in here["squad"]]
        # Questions on one article of SQuAD are drawn together, those of HotpotQA alone.
        here["group"] = [x if name == "squad" else -1 - x for x in given.document]
        here |= {f"paragraph {k}": x for k, x in ranks_of_paragraphs(given, paragraphs).items()}
        here |= {f"article {k}": x for k, x in ranks_of_documents(given, articles).items()}
        for column, values in here.items():
            columns.setdefault(column, []).extend(values)
    return Outcome(columns)


def ranks_of_paragraphs(given: Documents, scores: np.ndarray) -> dict[str, list[float]]:
    """Return the metrics of each question by name; ties keep the order of paragraphs."""
    begins, rows = given.begins, list[np.ndarray]()
    for number, (document, wanted) in enumerate(zip(given.document, given.wanted, strict=True)):
        begin, end = begins[document : document + 2] if given.own else (0, begins[-1])
        relevant = np.zeros(begins[-1], dtype=bool)
        relevant[begins[document] + np.array(wanted)] = True
        order = np.argsort(-scores[number, begin:end], kind="stable")
        rows.append(measured(relevant[begin:end][order][None])[0])
    return _by_name(rows)


def ranks_of_documents(given: Documents, scores: np.ndarray) -> dict[str, list[float]]:
    """Return the same metrics for documents."""
    rows: list[np.ndarray] = []
    for number, document in enumerate(given.document):
        order = np.argsort(-scores[number], kind="stable")
        right = np.ones(1, dtype=bool) if given.own else order == document
        rows.append(measured(right[None])[0])
    return _by_name(rows)


def _by_name(rows: Sequence[np.ndarray]) -> dict[str, list[float]]:
    return {name: [float(row[at]) for row in rows] for at, name in enumerate(METRICS)}


def best_of_each(given: Documents, scores: np.ndarray) -> np.ndarray:
    """Return the score of the best paragraph of each document, [questions, documents]."""
    return np.maximum.reduceat(scores, given.begins[:-1], axis=1)


def all_alike(given: Documents, scores: np.ndarray) -> np.ndarray:
    """Return the score of its document for each paragraph, [questions, paragraphs]."""
    return np.repeat(scores, np.diff(given.begins), axis=1)


# ---- contestants


def by_words(given: Documents) -> Scores:
    """Score paragraphs and whole documents by BM25."""
    every = [text for document in given.paragraphs for text in document]
    whole = [BETWEEN.join(document) for document in given.paragraphs]
    return Bm25(every).scores(given.asked), Bm25(whole).scores(given.asked)


def by_chunks(given: Documents, *, sizes: Sizes, late: bool) -> Scores:
    """Score paragraphs by vectors, and a document by its best paragraph."""
    embedder = _embedder(sizes)
    texts, ranges = _joined(given)
    vectors = embedder.embed(texts, units=ranges, context="document" if late else "alone").vectors
    scores = embedder.embed_queries(given.asked) @ vectors.T
    return scores, best_of_each(given, scores)


def by_document(given: Documents, *, sizes: Sizes, whole: bool) -> Scores:
    """Score documents by one vector each, of all or of the first tokens."""
    embedder = _embedder(sizes)
    texts, _ = _joined(given)
    if not whole:
        tokenizer = tokenizer_of(source_of(sizes.model), sizes.length)
        texts = [chunks(text, tokenizer, sizes.short)[0] for text in texts]
    scores = embedder.embed_queries(given.asked) @ embedder.embed(texts).vectors.T
    return all_alike(given, scores), scores


@cache
def _embedder(sizes: Sizes) -> Embedder:
    return Embedder.from_pretrained(sizes.model, length=sizes.length)


def _joined(given: Documents) -> tuple[list[str], list[list[tuple[int, int]]]]:
    """Return documents as texts, and where their paragraphs are."""
    texts = [BETWEEN.join(paragraphs) for paragraphs in given.paragraphs]
    return texts, [list(_ranges(paragraphs)) for paragraphs in given.paragraphs]


def _ranges(paragraphs: Sequence[str]) -> Iterator[tuple[int, int]]:
    at = 0
    for text in paragraphs:
        yield at, at + len(text)
        at += len(text) + len(BETWEEN)


# ---- the experiment


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]

    def contestant(name: str, about: str, search: Search) -> Contestant:
        attempt = partial(found, search, scale)
        return Contestant(name, about, attempt, {"sizes": asdict(sizes)}, seeded=False)

    late, plain, whole, cut = "late chunks", "plain chunks", "whole documents", "first tokens"
    rank = "mean of 1 / rank, 0 behind the tenth, in percent"
    return Experiment(
        name="retrieval",
        title="Retrieval with vectors of long documents",
        asks="Do vectors of paragraphs that have seen their whole document (late chunking) find "
        "the paragraph or the document of a question better than vectors of paragraphs alone, or "
        "one vector for the document? MiniLM as it is, made longer without any training.",
        scale=scale,
        contestants=[
            contestant(
                late,
                f"each document is read whole, {sizes.length:,} tokens at once through a BigBird "
                "graph, in windows that overlap if it is longer; the vector of a paragraph is the "
                "mean over its tokens",
                partial(by_chunks, sizes=sizes, late=True),
            ),
            contestant(
                plain,
                "each paragraph is read alone, with full attention",
                partial(by_chunks, sizes=sizes, late=False),
            ),
            contestant(
                whole,
                "each document is read whole, and has one vector, the mean over its tokens; its "
                "paragraphs come in their order",
                partial(by_document, sizes=sizes, whole=True),
            ),
            contestant(
                cut,
                f"the same with the first {sizes.short} tokens of a document, with full attention",
                partial(by_document, sizes=sizes, whole=False),
            ),
            contestant("BM25", "words of paragraphs, and of whole documents", by_words),
        ],
        reference=late,
        metrics=[
            *(
                Metric(
                    f"SQuAD, {what}, MRR@10",
                    rank,
                    mean_of(f"{what} mrr_at_10", "squad"),
                    scale=100,
                )
                for what in ("paragraph", "article")
            ),
            Metric(
                "SQuAD, paragraph, recall@10",
                "share of questions whose paragraph is among the first ten, in percent",
                mean_of("paragraph recall_at_10", "squad"),
                scale=100,
            ),
            Metric(
                "SQuAD, article, recall@1",
                "share of questions whose article comes first, in percent",
                mean_of("article recall_at_1", "squad"),
                scale=100,
            ),
            Metric(
                "HotpotQA, nDCG@10",
                "of the two supporting paragraphs among the ten of a question, in percent",
                mean_of("paragraph ndcg_at_10", "hotpot"),
                scale=100,
            ),
        ],
        budget="nothing is trained; every contestant sees all documents.",
        data=[
            f"{questions.NAME} (sha256 {questions.SHA256}): SQuAD 2.0 development set, "
            f"{sizes.articles} articles of about 4,000 words, up to {sizes.squad:,} questions "
            "that have an answer, searched in the paragraphs of all articles; intervals draw "
            "whole articles.",
            "The same package: HotpotQA development set (distractor), "
            f"{sizes.hotpot:,} questions, each searched in its own ten paragraphs, which are one "
            "document only because they stand together: here the context says nothing.",
        ],
        claims=[
            Claim(f"late chunking finds paragraphs better than {other}", late, other, metric)
            for other in (plain, whole, "BM25")
            for metric in ("SQuAD, paragraph, MRR@10",)
        ]
        + [
            Claim(f"late chunking finds articles better than {other}", late, other, metric)
            for other in (plain, whole, cut, "BM25")
            for metric in ("SQuAD, article, MRR@10",)
        ],
        notes=[
            "MiniLM was tuned to find answers to questions, and its authors name the training set "
            "of SQuAD among its data: this kind of question is not new to it.",
            "With one vector a document, all its paragraphs score alike, and come in their order.",
        ],
    )
