"""Promoters of E. coli, against random and against intergenic places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from experiments.dna import promoters
from experiments.dna.classifying import BASELINES, Budget, Set, contestants, models
from experiments.dna.examples import Examples
from experiments.dna.experiments.sources import ECOLI, REGULATION
from experiments.dna.metrics import auroc_of, average_precision_of
from experiments.dna.models import PRETRAINED, TINY, TWIN, Plan, Start
from experiments.dna.organisms import bacterium
from experiments.dna.splits import TEST, by_fifth, stretches
from experiments.framework.experiment import Claim, Experiment, Metric

HELD_OUT = 2
"""The fifth of E. coli that promoters, scans and profiles hold out."""
WIDE = (250, 50)
"""Bases before and behind a start in the wide windows."""
WIDER = f"{PRETRAINED}, {sum(WIDE)} bases"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        plan: Plan of the model.
        budget: Budget with random negatives; with the others, half of it.
        share: One in this many examples is used.
        epochs: Maximum number of epochs of the small network.
    """

    plan: Plan
    budget: Budget
    share: int = 1
    epochs: int = 30


SIZES = {
    "default": Sizes(Plan(), Budget()),
    "quick": Sizes(TINY, Budget(2, 1024), share=20, epochs=1),
}


def learned_of(gap: int, share: int) -> list[np.ndarray]:
    """Return what is not held out of E. coli, or a share of it, for pretraining."""
    sequence = bacterium("E. coli").sequences[promoters.SEQUENCE]
    sides = by_fifth(len(sequence), HELD_OUT, gap, circular=True)
    [(first, last)] = stretches(sides == TEST)
    kept = np.concatenate([sequence[last + gap :], sequence[: first - gap]])  # over the origin
    return [kept[: len(kept) // share]]


def start_of(sizes: Sizes, model: Path | None) -> Start:
    """Return what models of E. coli start from, the same for all experiments with this fifth."""
    gap, share = sizes.plan.length, sizes.share
    words = f"E. coli without its third fifth and {gap:,} bases on both sides of that"
    words += f", a part in {share} of it" if share > 1 else ""
    return Start(sizes.plan, words, partial(learned_of, gap, share), model)


def some(load: partial[Examples], share: int) -> Examples:
    """Return one in this many examples."""
    given = load()
    return given.where(np.arange(len(given.positive)) % share == 0)


def set_of(negatives: str, sizes: Sizes) -> Set:
    """Return the windows of a recipe for negatives."""
    near = partial(promoters.examples, negatives, held_out=HELD_OUT)
    wide = partial(promoters.examples, negatives, *WIDE, held_out=HELD_OUT)
    budget = sizes.budget
    if negatives != "random":
        budget = replace(budget, steps=-(-budget.steps // 2))
    return Set(
        negatives,
        partial(some, near, sizes.share) if sizes.share > 1 else near,
        {"negatives": negatives, "before": promoters.BEFORE, "after": promoters.AFTER}
        | ({"share": sizes.share} if sizes.share > 1 else {}),
        epochs=sizes.epochs,
        budget=budget,
        wider=partial(some, wide, sizes.share) if sizes.share > 1 else wide,
    )


def negatives_in_words() -> str:
    """Describe the recipes for the page."""
    return (
        "Negatives: random are places of the whole genome and both strands, 11 for each promoter; "
        f"intergenic are places of which nothing of -{promoters.BEFORE}..+{promoters.AFTER} is in "
        f"a gene on any strand, 3 for each. None lies within {promoters.CLEAR} bases of a known "
        "start on its strand. The recipe decides the score: most random places are inside of "
        "genes, which have fewer A and T."
    )


def experiment(scale: str, model: Path | None = None) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    start = start_of(sizes, model)
    sets = [set_of(name, sizes) for name in promoters.RATIOS]
    kinds = models(start)
    wider = replace(
        kinds[0],
        name=WIDER,
        about=f"the same, with {WIDE[0]} bases before the start and {WIDE[1]} from it on, in as "
        "many tokens of training, so that it sees fewer windows",
        wide=True,
    )
    metrics = [
        Metric(f"{what}, {name}", f"{about}, {name} negatives", of("score", "positive", name))
        for name in promoters.RATIOS
        for what, about, of in (
            ("AUROC", "the chance that a promoter has a higher score than a negative", auroc_of),
            ("AP", "average precision", average_precision_of),
        )
    ]
    claims = [
        Claim(text.format(name), better, worse, f"AUROC, {name}")
        for name in promoters.RATIOS
        for text, better, worse in (
            ("pretraining helps against {} negatives", PRETRAINED, TWIN),
            ("the pretrained model beats one-hot regression, {} negatives", PRETRAINED, "one-hot"),
            ("the pretrained model beats the small CNN, {} negatives", PRETRAINED, "small CNN"),
            (f"{sum(WIDE)} bases beat 80, {{}} negatives", WIDER, PRETRAINED),
            ("the pretrained model beats A+T content, {} negatives", PRETRAINED, "A+T content"),
        )
    ]
    return Experiment(
        name="promoters",
        title="Promoters of E. coli",
        asks="Does a pretrained model tell starts of transcription from other places better than "
        "composition, words, a regression on single bases and a small CNN do, and does it do so "
        "because it was pretrained?",
        scale=scale,
        contestants=contestants(sets, [*kinds, wider, *BASELINES]),
        reference=PRETRAINED,
        metrics=metrics,
        budget=f"{start.words} Then {sets[0].budget.words} with random negatives, "
        f"{sets[1].budget.words} with intergenic ones, of which the best of four looks at one "
        "group of training windows in ten is kept. The small CNN has 30 epochs at most, chosen "
        "in the same way. The time of the first attempt of a model has its pretraining.",
        data=[
            ECOLI,
            f"{REGULATION}: 1,301 starts with experimental evidence. The third fifth of the "
            "circle is held out, with a gap of one window; groups of the bootstrap are stretches "
            f"of {promoters.BLOCK:,} bases.",
        ],
        claims=claims,
        notes=[
            negatives_in_words(),
            "The twin has as few steps as the pretrained model: a difference between them says "
            "what pretraining saves, and not that more steps would not do the same.",
            "None of these figures is the precision of a scan: a genome has a thousand places for "
            "each start. `python -m experiments scan` has that.",
            "188 of the starts with evidence are first bases of genes, where nothing better is "
            "known.",
        ],
        family="dna",
    )
