"""Summaries of manual pages: what does the section NAME say of a page, by all the others?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from longbird.bench.quality.documents import Row, read_rows, tokens_of, write_rows
from longbird.bench.quality.experiment import (
    Attempt,
    Claim,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    mean_of,
)
from longbird.bench.quality.families import families, split
from longbird.bench.quality.training import trained
from longbird.data import manual
from longbird.tasks.metrics.summaries import rouge, sentences

SEED = 0
"""Of the split, which is the same for all."""
HEADING = re.compile(r"^[A-Z][A-Z0-9 ,/_-]*\n", re.MULTILINE)
"""The title of a section, in a line of its own."""


@dataclass(frozen=True)
class Sizes:
    """A scale of the experiment."""

    train: int = 600
    test: int = 200
    steps: int = 200
    length: int = 4096
    short: int = 512
    tokens_per_batch: int = 4096
    learning_rate: float = 3e-4
    summary_tokens: int = 32
    beams: int = 1
    model: str = "minilm"


SIZES = {
    "default": Sizes(),
    "tiny": Sizes(train=40, test=10, steps=2, length=1024, tokens_per_batch=1024),
}


@dataclass(frozen=True)
class Pages:
    """The pages, split.

    Attributes:
        train: Rows with text and summary to learn from.
        test: Those that are held out.
        family: Of each held-out page.
        long: Does each held-out page have more tokens than a short model reads?
    """

    train: Sequence[Row]
    test: Sequence[Row]
    family: np.ndarray
    long: np.ndarray


def page_families(rows: Sequence[Row]) -> np.ndarray:
    """Pages on one name, with one summary but for its numbers, or with nearly one text."""
    links = [
        [
            *(f"name {name.lower()}" for name in row["names"]),
            f"summary {re.sub('[0-9.]+', '0', row['summary'].lower())}",
        ]
        for row in rows
    ]
    return families([row["text"] for row in rows], alike=0.6, links=links)


@cache
def pages(scale: str) -> Pages:
    """All pages, split by family."""
    from longbird.tasks.starting import source_of, tokenizer_of

    sizes, rows = SIZES[scale], read_rows(manual.path())
    family = page_families(rows)
    train, test = split(family, sizes.train, sizes.test, SEED)
    held = [rows[number] for number in test.tolist()]
    tokenizer = tokenizer_of(source_of(sizes.model), sizes.length)
    lengths = tokens_of([row["text"] for row in held], tokenizer)
    return Pages(
        [rows[number] for number in train.tolist()],
        held,
        family[test],
        np.array(lengths) > sizes.short,
    )


# ---- contestants

Summarize = Callable[[Pages, Attempt], tuple[Sequence[str], dict[str, float]]]
"""Summaries of the held-out pages, and the cost."""


def measured(summarize: Summarize, scale: str, attempt: Attempt) -> Outcome:
    """The ROUGE of each summary."""
    given = pages(scale)
    written, cost = summarize(given, attempt)
    each = [rouge(text, row["summary"]) for text, row in zip(written, given.test, strict=True)]
    columns: dict[str, Any] = {
        name: [scores[name] for scores in each] for name in ("rouge1", "rouge2", "rougeL")
    }
    long = given.long.tolist()
    columns |= {"long": long, "short": [not x for x in long], "group": given.family.tolist()}
    examples = [
        {"page": row["page"], "summary": row["summary"], "written": text}
        for text, row in zip(written[:20], given.test, strict=False)
    ]
    return Outcome(columns, cost, {"examples": examples})


def by_model(
    given: Pages, attempt: Attempt, *, sizes: Sizes, length: int
) -> tuple[list[str], dict[str, float]]:
    """An encoder-decoder that starts with MiniLM's weights and reads so many tokens."""
    from longbird.tasks.trained import load_trained

    rows = ({"text": row["text"], "summary": row["summary"]} for row in given.train)
    folder, cost = trained(
        attempt,
        "summarize",
        write_rows(attempt.folder / "train.jsonl", rows),
        text="text",
        summary="summary",
        model=sizes.model,
        length=length,
        graph="bigbird(block=64)" if length > sizes.short else None,
        steps=sizes.steps,
        tokens_per_batch=sizes.tokens_per_batch,
        learning_rate=sizes.learning_rate,
        summary_tokens=sizes.summary_tokens,
        beams=sizes.beams,
    )
    examples = ({"place": row["page"], "text": row["text"]} for row in given.test)
    said = load_trained(folder).said_of(examples, sizes.tokens_per_batch)
    return [prediction["summary"] for _, prediction in said], cost


def first_sentence(text: str) -> str:
    """That of a text, which may have none."""
    return next(iter(sentences(text[:4000])), "")


def of_description(given: Pages, attempt: Attempt) -> tuple[list[str], dict[str, float]]:
    """The first sentence of DESCRIPTION, or of the page if there is no such section."""
    return [
        first_sentence(row["description"] or without_headings(row["text"])) for row in given.test
    ], {}


def of_page(given: Pages, attempt: Attempt, count: int) -> tuple[list[str], dict[str, float]]:
    """The first sentences of the page."""
    texts = (without_headings(row["text"])[:4000] for row in given.test)
    return ["\n".join(sentences(text)[:count]) for text in texts], {}


def without_headings(text: str) -> str:
    r"""A page without the titles of its sections.

    Examples:
        >>> without_headings("SYNOPSIS\nls [-l]\n\nEXIT STATUS\nNone. It\nNEVER ENDS")
        'ls [-l]\n\nNone. It\nNEVER ENDS'
    """
    return HEADING.sub("", text)


# ---- the experiment


def experiment(scale: str) -> Experiment:
    """The experiment at a scale."""
    sizes = SIZES[scale]
    settings = {"sizes": asdict(sizes)}

    def contestant(name: str, about: str, summarize: Summarize, seeded: bool) -> Contestant:
        return Contestant(name, about, partial(measured, summarize, scale), settings, seeded)

    whole, cut, first = "whole page", "first tokens", "first sentence of DESCRIPTION"
    return Experiment(
        name="summarisation",
        title="Summaries of manual pages",
        asks="Does reading a whole manual page give a better line for its section NAME than "
        f"reading its first {sizes.short} tokens, or than its first sentence?",
        scale=scale,
        contestants=[
            contestant(
                whole,
                "an encoder-decoder with MiniLM's weights in both, which reads "
                f"{sizes.length:,} tokens through a BigBird graph",
                partial(by_model, sizes=sizes, length=sizes.length),
                True,
            ),
            contestant(
                cut,
                "the same with full attention, which reads the first "
                f"{sizes.short} tokens of a page",
                partial(by_model, sizes=sizes, length=sizes.short),
                True,
            ),
            contestant(
                first,
                "or of the page, if there is no such section",
                of_description,
                False,
            ),
            contestant(
                "first sentence of the page", "titles left out", partial(of_page, count=1), False
            ),
            contestant(
                "first three sentences of the page",
                "titles left out",
                partial(of_page, count=3),
                False,
            ),
        ],
        reference=whole,
        metrics=[
            Metric(
                "ROUGE-L",
                "F1 of the longest common subsequence of words, stemmed, in percent",
                mean_of("rougeL"),
                scale=100,
            ),
            Metric("ROUGE-1", "the same of words", mean_of("rouge1"), scale=100),
            Metric("ROUGE-2", "the same of pairs of words", mean_of("rouge2"), scale=100),
            Metric(
                f"ROUGE-L, over {sizes.short}",
                f"on pages of more than {sizes.short} tokens",
                mean_of("rougeL", where="long"),
                scale=100,
            ),
            Metric(
                f"ROUGE-L, up to {sizes.short}",
                "on the others",
                mean_of("rougeL", where="short"),
                scale=100,
            ),
        ],
        budget=f"{sizes.train:,} pages to learn from and {sizes.steps:,} steps of about "
        f"{sizes.tokens_per_batch:,} tokens for both models, so that who reads less of a page "
        "reads it more often.",
        data=[
            f"pages: {manual.NAME}, "
            + ", ".join(f"{name} {version}" for name, version, _ in manual.PACKAGES)
            + f" (sha256 {', '.join(sha256[:16] for *_, sha256 in manual.PACKAGES)}); the section "
            "NAME is not in the text; the summary is what it says after the names of the page. "
            f"{sizes.test:,} pages held out, by family: pages that share a name, a summary but "
            "for its numbers, or 60% of their runs of five words.",
        ],
        claims=[
            Claim("the whole page gives better lines than its beginning", whole, cut, "ROUGE-L"),
            Claim(
                f"so it does on pages over {sizes.short} tokens",
                whole,
                cut,
                f"ROUGE-L, over {sizes.short}",
            ),
            Claim("a trained model beats the first sentence", whole, first, "ROUGE-L"),
        ],
        notes=[
            "The names of a page, which NAME begins with, are not to be written: they stand in "
            "nearly every page, and would raise all figures.",
        ],
    )
