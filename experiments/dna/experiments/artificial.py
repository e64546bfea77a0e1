"""Promoters of Drosophila against negatives made of them: what a score of 99.9 means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from experiments.dna import artificial
from experiments.dna.classifying import BASELINES, Budget, Set, contestants, models
from experiments.dna.corpora import corpus
from experiments.dna.examples import Examples
from experiments.dna.experiments.sources import FLY
from experiments.dna.metrics import auroc_of, f1_of
from experiments.dna.models import PRETRAINED, TINY, TWIN, Plan, Start
from experiments.dna.splits import TEST
from experiments.framework.experiment import Claim, Experiment, Metric

RECIPES = ("permuted", "uniform")
LENGTHS = (300, 2000)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        plan: Plan of the model.
        budgets: Budgets by the number of bases of a window.
        learned: Number of promoters for training and validation.
        held_out: Number of held-out promoters.
        epochs: Maximum number of epochs of the small network.
        most: Maximum number of stretches for pretraining.
    """

    plan: Plan
    budgets: dict[int, Budget]
    learned: int
    held_out: int
    epochs: int
    most: int | None = None


SIZES = {
    "default": Sizes(
        Plan(tokens="bpe", length=512, steps=400),
        {300: Budget(150, 4096), 2000: Budget(150, 8192)},
        learned=1500,
        held_out=1500,
        epochs=6,
    ),
    "quick": Sizes(TINY, {300: Budget(2, 1024), 2000: Budget(1, 4096)}, 20, 20, epochs=1, most=20),
}


@cache
def examples(recipe: str, length: int, learned: int, held_out: int) -> Examples:
    """Return some promoters and their negatives."""
    given = artificial.examples(recipe, length)
    promoters = len(given.positive) // 2
    drawn = np.random.default_rng(0).permutation(promoters)
    held = given.side[drawn] == TEST
    some = np.concatenate([drawn[~held][:learned], drawn[held][:held_out]])
    some.sort()
    chosen = np.zeros(2 * promoters, bool)
    chosen[some] = chosen[promoters + some] = True
    return given.where(chosen)


def name_of(recipe: str, length: int) -> str:
    """Return the name of a set."""
    return f"{recipe} {length:,}"


def experiment(scale: str, model: Path | None = None) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    words = "what lies before genes on the chromosomes that are learned from"
    start = Start(
        sizes.plan, words, lambda: corpus("Drosophila upstream").train[: sizes.most], model
    )
    sets = [
        Set(
            name_of(recipe, length),
            partial(examples, recipe, length, sizes.learned, sizes.held_out),
            {
                "recipe": recipe,
                "length": length,
                "learned": sizes.learned,
                "held_out": sizes.held_out,
            },
            pool=1 if length <= 500 else 4,
            epochs=sizes.epochs,
            budget=sizes.budgets[length],
        )
        for recipe in RECIPES
        for length in LENGTHS
    ]
    short, long = (name_of("permuted", length) for length in LENGTHS)
    easy = name_of("uniform", LENGTHS[1])
    return Experiment(
        name="artificial",
        title="Promoters of Drosophila against artificial negatives",
        asks="BigBird's paper has an F1 of 99.9 for promoters against negatives that were made of "
        "them, by substituting 12 of 20 pieces. What does such a score mean?",
        scale=scale,
        contestants=contestants(sets, [*models(start), *BASELINES]),
        reference=PRETRAINED,
        metrics=[
            Metric(
                f"{what}, {each.name}",
                f"{about}, negatives: {each.name} bases",
                of(score, "positive", each.name),
                scale=scaled,
            )
            for each in sets
            for what, about, of, score, scaled in (
                ("AUROC", "the chance that a promoter has the higher score", auroc_of, "score", 1),
                ("F1", "of promoters, in percent", f1_of, "said", 100),
            )
        ],
        budget=f"{start.words} Then, "
        + "; ".join(f"windows of {n:,} bases: {x.words}" for n, x in sizes.budgets.items())
        + f"; of four looks at one group of windows in ten, the best is kept. All learn from "
        f"{2 * sizes.learned:,} windows. The small CNN has {sizes.epochs} epochs at most.",
        data=[
            f"{FLY}: 17,253 distinct sequences of 2,000 bases before genes, on their strand, of "
            f"which {sizes.learned:,} are learned from and {sizes.held_out:,} of chromosome 2R "
            "held out, each with one negative that is made of it, on the same side. Windows are "
            "the last bases before the gene. Neighbours that overlap are a group of the "
            "bootstrap.",
        ],
        claims=[
            Claim(
                "5-mers alone nearly solve uniform bases",
                "5-mers",
                "A+T content",
                f"AUROC, {easy}",
            ),
            Claim(
                "no network is needed: 5-mers are within 0.01 of the pretrained model, uniform "
                "bases",
                "5-mers",
                PRETRAINED,
                f"AUROC, {easy}",
                -0.01,
            ),
            *(
                Claim(text.format(name), better, worse, f"AUROC, {name}")
                for name in (short, long)
                for text, better, worse in (
                    ("pretraining helps, {}", PRETRAINED, TWIN),
                    ("the pretrained model beats 5-mers, {}", PRETRAINED, "5-mers"),
                    ("the pretrained model beats the small CNN, {}", PRETRAINED, "small CNN"),
                )
            ),
        ],
        notes=[
            "Negatives: permuted has the 12 pieces in another order, so that composition and "
            "nearly all words stay; uniform has random bases there, equally frequent, which no "
            "genome has. A score against uniform says whether DNA is told from random letters, "
            "and nothing of promoters.",
            "These are sequences before annotated genes (dm3), not mapped starts of "
            "transcription.",
        ],
        sources=[
            "M. Zaheer et al., Big Bird, 2020: F1 99.9 on human promoters (EPDnew), "
            "negatives by substitution."
        ],
        family="dna",
    )
