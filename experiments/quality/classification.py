"""Classification of long documents: whole, cut off, in chunks, and as bags of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from experiments.framework.experiment import (
    Attempt,
    Claim,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    macro_f1_of,
    mean_of,
)
from experiments.quality.documents import Row, chunks, read_rows, tokens_of, write_rows
from experiments.quality.families import families, split
from experiments.quality.training import trained
from experiments.sources import licences, reviews

SHORT = 512
"""Tokens of what BERT reads at once."""
SEED = 0
"""Of the split, which is the same for all."""


@dataclass(frozen=True)
class Part:
    """The amount of a data set that is used.

    Attributes:
        train: Number of training documents.
        test: Number of held-out documents.
        steps: Number of training steps.
    """

    train: int
    test: int
    steps: int


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale."""

    parts: Mapping[str, Part]
    length: int = 4096
    short: int = SHORT
    tokens_per_batch: int = 1024
    learning_rate: float = 1e-4
    model: str = "minilm"


# What counts is the number of steps: a quarter as many, of 4,096 tokens and 3e-4, left models that
# read whole documents at the most frequent label, or at 65% on reviews, where these have 80%.
SIZES = {
    "default": Sizes({"licences": Part(500, 250, 400), "reviews": Part(900, 800, 200)}),
    "quick": Sizes(
        {"licences": Part(40, 20, 2), "reviews": Part(40, 20, 2)},
        length=1024,
    ),
}


@dataclass(frozen=True)
class Documents:
    """A data set that is split.

    Attributes:
        train: Training rows with text and label.
        test: Held-out rows.
        labels: All labels.
        family: Family of each held-out document.
        long: Whether each held-out document has more than 512 tokens.
    """

    train: Sequence[Row]
    test: Sequence[Row]
    labels: Sequence[str]
    family: np.ndarray
    long: np.ndarray


def licence_rows() -> tuple[list[Row], np.ndarray]:
    """Return licences of categories with at least thirty of them, and their families.

    A family has one name up to the first hyphen (gpl-2.0-plus belongs to gpl), or nearly one text.
    """
    rows = read_rows(licences.path())
    frequent = {label for label, count in Counter(x["label"] for x in rows).items() if count >= 30}
    rows = [row for row in rows if row["label"] in frequent]
    names = [[row["name"].partition("-")[0]] for row in rows]
    return rows, families([row["text"] for row in rows], alike=0.8, links=names)


def review_rows(most: int) -> tuple[list[Row], np.ndarray]:
    """Return reviews, and which of them are near-duplicates."""
    rows = read_rows(reviews.path())
    drawn = np.random.default_rng(SEED).permutation(len(rows))[:most]
    rows = [rows[number] for number in drawn.tolist()]
    return rows, families([row["text"] for row in rows], alike=0.5)


@cache
def documents(name: str, scale: str) -> Documents:
    """Return one of the two data sets, split by family."""
    sizes = SIZES[scale]
    part = sizes.parts[name]
    both = 2 * (part.train + part.test)
    rows, family = licence_rows() if name == "licences" else review_rows(both)
    train, test = split(family, part.train, part.test, SEED)
    held = [rows[number] for number in test.tolist()]
    lengths = tokens_of([row["text"] for row in held], _tokenizer(sizes))
    return Documents(
        [rows[number] for number in train.tolist()],
        held,
        sorted({row["label"] for row in rows}),
        family[test],
        np.array(lengths) > sizes.short,
    )


def _tokenizer(sizes: Sizes) -> Any:
    from longbird.applications.training.initialisation.starting_model import (
        source_of,
        tokenizer_of,
    )

    return tokenizer_of(source_of(sizes.model), sizes.length)


# ---- contestants

Classify = Callable[[Documents, Attempt, Part], tuple[Sequence[str], Mapping[str, float]]]
"""The labels that are given to held-out documents, and the cost."""


def both_sets(classify: Classify, scale: str, attempt: Attempt) -> Outcome:
    """Measure a contestant on the licences and then on the reviews."""
    columns: dict[str, list[Any]] = {}
    cost: Counter[str] = Counter()
    groups = 0
    for name, part in SIZES[scale].parts.items():
        given = documents(name, scale)
        folder = attempt.folder / name
        folder.mkdir(exist_ok=True)
        said, spent = classify(given, replace(attempt, folder=folder), part)
        cost.update(spent)
        numbers = {label: number for number, label in enumerate(given.labels)}
        true = [row["label"] for row in given.test]
        here = {
            "right": [a == b for a, b in zip(said, true, strict=True)],
            "true": [numbers[label] for label in true],
            "given": [numbers[label] for label in said],
            "long": given.long.tolist(),
            "group": (given.family + groups).tolist(),
        }
        groups += int(given.family.max()) + 1
        for which in SIZES[scale].parts:
            mine = which == name
            here[which] = [mine] * len(true)
            here[f"{which} over"] = [mine and x for x in given.long.tolist()]
            here[f"{which} up to"] = [mine and not x for x in given.long.tolist()]
        for column, values in here.items():
            columns.setdefault(column, []).extend(values)
    return Outcome(columns, dict(cost))


def by_model(
    given: Documents, attempt: Attempt, part: Part, *, sizes: Sizes, length: int, in_chunks: bool
) -> tuple[list[str], dict[str, float]]:
    """Fine-tune a model that reads this many tokens at once; scores of chunks are averaged."""
    from longbird.applications.training.engine.trained_model import load_trained

    tokenizer = _tokenizer(sizes)

    def pieces(row: Row) -> list[str]:
        return chunks(row["text"], tokenizer, length) if in_chunks else [row["text"]]

    rows = [{"text": x, "label": row["label"]} for row in given.train for x in pieces(row)]
    folder, cost = trained(
        attempt,
        "classify",
        write_rows(attempt.folder / "train.jsonl", rows),
        text="text",
        label="label",
        model=sizes.model,
        length=length,
        graph="bigbird(block=64)" if length > sizes.short else None,
        steps=part.steps,
        tokens_per_batch=sizes.tokens_per_batch,
        learning_rate=sizes.learning_rate,
    )
    model = load_trained(folder)
    task: Any = model.task
    labels: list[str] = task.labels
    owners = [number for number, row in enumerate(given.test) for _ in pieces(row)]
    examples = [{"place": "", "text": x, "label": []} for row in given.test for x in pieces(row)]
    scores = np.zeros((len(given.test), len(labels)))
    said = model.said_of(examples, sizes.length)
    for owner, (_, prediction) in zip(owners, said, strict=True):
        scores[owner] += prediction["scores"]
    return [labels[number] for number in scores.argmax(1).tolist()], cost


def by_words(given: Documents, attempt: Attempt, part: Part) -> tuple[list[str], dict[str, float]]:
    """TF-IDF of words and pairs of words with logistic regression, over whole documents.

    Cross-validation on the training documents chooses the regularisation.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, lowercase=True)
    pipeline = make_pipeline(words, LogisticRegression(max_iter=1000))
    strengths = {"logisticregression__C": [1.0, 10.0, 100.0]}
    folds = min(3, *Counter(row["label"] for row in given.train).values())
    found: Any = GridSearchCV(pipeline, strengths, cv=folds) if folds > 1 else pipeline
    found.fit([row["text"] for row in given.train], [row["label"] for row in given.train])
    return list(found.predict([row["text"] for row in given.test])), {}


def majority(given: Documents, attempt: Attempt, part: Part) -> tuple[list[str], dict[str, float]]:
    """Predict the most frequent label of the training documents."""
    [(most, _)] = Counter(row["label"] for row in given.train).most_common(1)
    return [most] * len(given.test), {}


# ---- the experiment


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    settings = asdict(sizes)

    def contestant(name: str, about: str, classify: Classify, seeded: bool) -> Contestant:
        attempt = partial(both_sets, classify, scale)
        return Contestant(name, about, attempt, {"sizes": settings}, seeded)

    def model(length: int, in_chunks: bool = False) -> Classify:
        return partial(by_model, sizes=sizes, length=length, in_chunks=in_chunks)

    short, whole, cut, parts = sizes.short, "whole document", "first tokens", "chunks"
    over, up_to = (f"{x} {short}" for x in ("over", "up to"))
    return Experiment(
        name="classification",
        title="Classification of long documents",
        asks="Does reading a whole document tell its class better than reading its beginning, or "
        "than reading it in chunks? Licences of software by category, and reviews of films by "
        f"sentiment; documents over and up to {short} tokens apart.",
        scale=scale,
        contestants=[
            contestant(
                whole,
                f"MiniLM made longer, reads {sizes.length:,} tokens through a BigBird graph",
                model(sizes.length),
                True,
            ),
            contestant(
                cut,
                f"MiniLM with full attention, reads the first {short} tokens",
                model(short),
                True,
            ),
            contestant(
                parts,
                f"MiniLM with full attention, learns chunks of {short} tokens, of which a quarter "
                "is shared with the next, each with the label of its document; the mean of what "
                "it says of all chunks of a document decides",
                model(short, in_chunks=True),
                True,
            ),
            contestant(
                "TF-IDF",
                "words and pairs of words of the whole document, with logistic regression, "
                "regularised as cross-validation on the training documents chooses",
                by_words,
                False,
            ),
            contestant("majority", "the most frequent label", majority, False),
        ],
        reference=whole,
        metrics=[
            Metric(
                f"{name}, {words}",
                f"accuracy on {name} of {words} tokens, in percent",
                mean_of("right", where=f"{name} {where}"),
                scale=100,
            )
            for name in sizes.parts
            for where, words in (("over", over), ("up to", up_to))
        ]
        + [
            Metric(
                "licences, macro F1",
                "mean F1 of the categories, all lengths, in percent",
                macro_f1_of("true", "given", where="licences"),
                scale=100,
            )
        ],
        budget="the same training documents and the same number of steps of about "
        f"{sizes.tokens_per_batch:,} tokens, or of one longer document, for all models, so that "
        "who reads less of a document reads it more often: "
        + "; ".join(
            f"{name}: {x.train:,} documents, {x.steps:,} steps" for name, x in sizes.parts.items()
        )
        + ".",
        data=[
            f"licences: {licences.NAME} (sha256 {licences.SHA256}), categories with thirty texts "
            f"or more; {sizes.parts['licences'].test:,} held out, by family: what has the same "
            "name up to the first hyphen, or shares 80% of its runs of five words. Families of "
            "more than 5% of all texts (such as BSD and MIT) are learned from.",
            f"reviews: {reviews.NAME} (sha256 {reviews.SHA256}), a sample; "
            f"{sizes.parts['reviews'].test:,} held out, near-duplicates on one side. This is not "
            "the published split.",
        ],
        claims=[
            Claim(
                f"on {name} over {short} tokens, reading the whole document beats {what}",
                whole,
                other,
                f"{name}, {over}",
            )
            for name in sizes.parts
            for other, what in (
                (cut, "reading its beginning"),
                (parts, "reading it in chunks"),
                ("TF-IDF", "TF-IDF"),
            )
        ],
        notes=[
            "The papers have 95.0 (RoBERTa-base, 512 tokens) and 95.2 (BigBird-base) percent on "
            "the test set of IMDb, with all 25,000 training reviews and models five times as "
            "large, pretrained long; these figures are not comparable with that.",
        ],
    )
