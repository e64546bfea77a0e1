"""Summaries of manual pages: the line in the section NAME, from all other sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

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
from experiments.quality.documents import Row, read_rows, tokens_of, write_rows
from experiments.quality.families import families, split
from experiments.quality.training import trained
from experiments.sources import manual
from longbird.applications.training.data.token_store import cache_key
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.metrics.summaries import rouge, sentences

SEED = 0
"""Of the split, which is the same for all."""
HEADING = re.compile(r"^[A-Z][A-Z0-9 ,/_-]*\n", re.MULTILINE)
"""The title of a section, in a line of its own."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        train: Number of training pages.
        test: Number of held-out pages.
        steps: Number of training steps.
        length: Number of tokens that the model of whole pages reads.
        short: Number of tokens that the other model reads.
        tokens_per_batch: Tokens per step.
        learning_rate: Peak learning rate.
        summary_tokens: Maximum number of tokens per summary.
        beams: Number of beams.
        model: Model that initialises encoder and decoder.
        opening: Characters per passage in the first two stages of training.
        lead_steps: Number of steps of the first stage, which copies the first sentence of a
            passage.
        lead_learning_rate: Peak learning rate of the first stage.
        opening_steps: Number of steps of the second stage, which summarises the opening of
            DESCRIPTION.
        opening_tokens: Tokens per step of the second stage.
    """

    train: int = 1500
    test: int = 200
    steps: int = 150
    length: int = 4096
    short: int = 512
    tokens_per_batch: int = 1024
    learning_rate: float = 1e-4
    summary_tokens: int = 32
    beams: int = 1
    model: str = "minilm"
    opening: int = 500
    lead_steps: int = 400
    lead_learning_rate: float = 4e-4
    opening_steps: int = 250
    opening_tokens: int = 2048


SIZES = {
    "default": Sizes(),
    "quick": Sizes(train=40, test=10, steps=2, length=1024, lead_steps=2, opening_steps=2),
}
GRAPH = "bigbird(block=64)"
LEAD_WORDS = range(4, 21)
"""Of the first sentence of a stretch: about as many as a summary has, or more."""


@dataclass(frozen=True)
class Pages:
    """The pages, split.

    Attributes:
        train: Training rows with text and summary.
        test: Held-out rows.
        family: Family of each held-out page.
        long: Whether each held-out page has more tokens than the short model reads.
    """

    train: Sequence[Row]
    test: Sequence[Row]
    family: np.ndarray
    long: np.ndarray


def page_families(rows: Sequence[Row]) -> np.ndarray:
    """Return families of pages with one name, one summary, or nearly one text."""
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
    """Return all pages, split by family."""
    from longbird.applications.training.initialisation.starting_model import (
        source_of,
        tokenizer_of,
    )

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
    """Return the ROUGE of each summary."""
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


def leads(rows: Sequence[Row], characters: int) -> Iterator[Row]:
    r"""Return passages of pages, each with its first sentence as the summary.

    Examples:
        >>> page = {"text": "NOTES\nIt lists the files.  Hidden ones are left out.\n\nSee also."}
        >>> list(leads([page], 500))[0]["summary"]
        'It lists the files.'
    """
    for row in rows:
        every = [" ".join(each.split()) for each in without_headings(row["text"]).split("\n\n")]
        for number, paragraph in enumerate(every):
            first = first_sentence(paragraph)
            stretch = " ".join(every[number : number + 4])[:characters]
            if len(first.split()) in LEAD_WORDS and 2 * len(stretch) > 3 * len(first):
                yield {"text": stretch, "summary": first}


def learned(
    attempt: Attempt, sizes: Sizes, rows: Iterable[Row], **options: Any
) -> tuple[Path, dict[str, float]]:
    """Train an encoder-decoder on texts and summaries, and return the run and its cost."""
    pairs = ({"text": row["text"], "summary": row["summary"]} for row in rows)
    return trained(
        attempt,
        "summarize",
        write_rows(attempt.folder / "train.jsonl", pairs),
        text="text",
        summary="summary",
        summary_tokens=sizes.summary_tokens,
        beams=sizes.beams,
        **options,
    )


def openings(rows: Sequence[Row], characters: int) -> list[str]:
    """Return the opening of each page's description."""
    return [" ".join(described(row)[:characters].split()) for row in rows]


def beginner(given: Pages, attempt: Attempt, sizes: Sizes) -> Path:
    """Return the run that all others start from; the first attempt makes it.

    MiniLM is not a decoder, and needs hundreds of steps until it uses the text at all. It learns
    that
    sooner from short passages, of which a step has eight, than from whole pages: first to copy
    their
    first sentence, and then to write the line of NAME.
    """
    folder = attempt.shared / f"beginner-{cache_key(asdict(sizes))}"
    texts = openings(given.train, sizes.opening)
    pairs = ({**row, "text": text} for row, text in zip(given.train, texts, strict=True))
    stages = (
        (
            leads(given.train, sizes.opening),
            {
                "steps": sizes.lead_steps,
                "learning_rate": sizes.lead_learning_rate,
                "tokens_per_batch": sizes.tokens_per_batch,
            },
        ),
        (
            pairs,
            {
                "steps": sizes.opening_steps,
                "learning_rate": sizes.learning_rate,
                "tokens_per_batch": sizes.opening_tokens,
            },
        ),
    )
    model, run = sizes.model, folder
    for number, (rows, budget) in enumerate(stages):
        stage = replace(attempt, folder=folder / str(number), seed=SEED)
        stage.folder.mkdir(parents=True, exist_ok=True)
        run, _ = learned(
            stage, sizes, rows, model=model, length=sizes.length, graph=GRAPH, **budget
        )
        model = str(RunFolder(run).model)
    return run


def written(run: Path, rows: Sequence[Row], texts: Iterable[str], sizes: Sizes) -> list[str]:
    """Return the summaries that a trained model writes of these pages."""
    from longbird.applications.training.engine.trained_model import load_trained

    examples = (
        {"place": row["page"], "text": text} for row, text in zip(rows, texts, strict=True)
    )
    said = load_trained(run).said_of(examples, sizes.tokens_per_batch)
    return [prediction["summary"] for _, prediction in said]


def by_opening(
    given: Pages, attempt: Attempt, *, sizes: Sizes
) -> tuple[list[str], dict[str, float]]:
    """Measure the model that all others start from, which reads the opening of DESCRIPTION."""
    run = beginner(given, attempt, sizes)
    return written(run, given.test, openings(given.test, sizes.opening), sizes), {}


def by_model(
    given: Pages, attempt: Attempt, *, sizes: Sizes, length: int
) -> tuple[list[str], dict[str, float]]:
    """Train and measure an encoder-decoder that reads this many tokens of a page."""
    run, cost = learned(
        attempt,
        sizes,
        given.train,
        model=str(RunFolder(beginner(given, attempt, sizes)).model),
        length=length,
        graph=GRAPH if length > sizes.short else "Full()",
        steps=sizes.steps,
        learning_rate=sizes.learning_rate,
        tokens_per_batch=sizes.tokens_per_batch,
    )
    return written(run, given.test, (row["text"] for row in given.test), sizes), cost


def described(row: Row) -> str:
    """Return the section DESCRIPTION of a page, or the page if there is none."""
    return row["description"] or without_headings(row["text"])


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, or an empty string."""
    return next(iter(sentences(text[:4000])), "")


def of_description(given: Pages, attempt: Attempt) -> tuple[list[str], dict[str, float]]:
    """Return the first sentence of the description."""
    return [first_sentence(described(row)) for row in given.test], {}


def of_page(given: Pages, attempt: Attempt, count: int) -> tuple[list[str], dict[str, float]]:
    """Return the first sentences of the page."""
    texts = (without_headings(row["text"])[:4000] for row in given.test)
    return ["\n".join(sentences(text)[:count]) for text in texts], {}


def without_headings(text: str) -> str:
    r"""Return a page without the titles of its sections.

    Examples:
        >>> without_headings("SYNOPSIS\nls [-l]\n\nEXIT STATUS\nNone. It\nNEVER ENDS")
        'ls [-l]\n\nNone. It\nNEVER ENDS'
    """
    return HEADING.sub("", text)


# ---- the experiment


def experiment(scale: str) -> Experiment:
    """Return the experiment at a scale."""
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
                "an encoder-decoder, begun with MiniLM's weights in both, which reads "
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
                "opening of DESCRIPTION",
                f"what both begin with, which reads {sizes.opening} characters there",
                partial(by_opening, sizes=sizes),
                False,
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
        budget=f"{sizes.train:,} pages to learn from. Once, for all attempts and seeds, an "
        f"encoder-decoder learns from stretches of {sizes.opening} characters of those pages: to "
        f"write their first sentence ({sizes.lead_steps:,} steps of {sizes.tokens_per_batch:,} "
        f"tokens, learning rate {sizes.lead_learning_rate:g}), then the line of NAME from the "
        f"opening of DESCRIPTION ({sizes.opening_steps:,} steps of {sizes.opening_tokens:,}, "
        f"{sizes.learning_rate:g}). The first attempt bears the cost. Both models "
        f"that read pages go on from there with {sizes.steps:,} steps "
        f"({sizes.learning_rate:g}) of about {sizes.tokens_per_batch:,} tokens, or of one longer "
        "page, so that who reads less of a page reads it more often. The stages before were "
        "chosen on 150 of the training pages: with both, ROUGE-L was 29.6 there, without the "
        "first 21.5, and 24.1 for the first sentence.",
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
