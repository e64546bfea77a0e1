"""Genes of E. coli found with those of two other bacteria, by base and strand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from experiments.dna.classifying import Budget
from experiments.dna.coding import (
    CODING_PIECE,
    Species,
    baselines,
    said_by_model,
    write_genes,
)
from experiments.dna.experiments.sources import ECOLI, OTHERS
from experiments.dna.metrics import mcc_of
from experiments.dna.models import PRETRAINED, TINY, TWIN, Plan, Start
from experiments.dna.organisms import bacterium
from experiments.dna.tracks import contestants, finetuned
from experiments.framework.experiment import (
    Attempt,
    Claim,
    Experiment,
    Metric,
    Outcome,
    ratio_of,
)

TRAIN, TEST = ("B. theta", "S. aureus"), "E. coli"
MCC = "MCC"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        plan: Plan of the model.
        budget: Budget of learning genes.
        window: Number of tokens of a window; another contestant uses the length of the model.
        every: One in this many pieces of the test species is measured.
        most: Maximum number of bases of each training sequence.
    """

    plan: Plan
    budget: Budget
    window: int
    every: int
    most: int | None = None


SIZES = {
    "default": Sizes(Plan(), Budget(360, 8192), window=512, every=3),
    "quick": Sizes(TINY, Budget(2, 1024), window=128, every=200, most=2000),
}


def learned_of(sizes: Sizes) -> list[np.ndarray]:
    """Return the sequences of the training species."""
    every = [x[: sizes.most] for name in TRAIN for x in bacterium(name).sequences.values()]
    return [x for x in every if len(x) >= sizes.plan.length]


def attempt(
    sizes: Sizes, species: Species, which: Callable[[Attempt], Path], window: int, attempt: Attempt
) -> Outcome:
    """Train a model on genes, and measure it on the test species."""
    files = [x for name in TRAIN for x in write_genes(bacterium(name), attempt.folder, sizes.most)]
    trained, cost = finetuned(
        "coding", files, which(attempt), attempt, sizes.budget, length=window
    )
    attempt.say(f"measuring on {TEST}")
    return Outcome(species.columns(said_by_model(trained, species)), cost)


def experiment(scale: str, model: Path | None = None) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    species = Species(TRAIN, TEST, sizes.every)
    words = "B. theta and S. aureus" + (f", {sizes.most} bases each" if sizes.most else "")
    start = Start(sizes.plan, words, partial(learned_of, sizes), model)
    settings = {**asdict(species), **asdict(sizes.budget), "most": sizes.most, **start.settings}
    short, long = sizes.window, sizes.plan.length
    longer = f"{PRETRAINED}, {long:,} tokens"
    models = contestants(
        partial(attempt, sizes, species),
        settings,
        [
            (
                PRETRAINED,
                f"pretrained, then trained on genes in windows of {short:,} tokens",
                start.pretrained,
                short,
            ),
            (TWIN, "the same model with new weights, trained on genes alone", start.twin, short),
            (
                longer,
                f"the first in windows of {long:,} tokens, in as many tokens of training, so that "
                "a step has fewer windows",
                start.pretrained,
                long,
            ),
        ],
    )
    table = "3-periodic table"
    return Experiment(
        name="coding",
        title="Genes of E. coli by those of two other bacteria",
        asks="Is each base of E. coli part of a protein, on each strand? Learned from B. theta "
        "and S. aureus, which are as far from it as bacteria are.",
        scale=scale,
        contestants=[*models, *baselines(species)],
        reference=PRETRAINED,
        metrics=[
            Metric(
                MCC,
                "Matthews' correlation over bases and strands",
                mcc_of("hits", "false", "missed", "rest"),
            ),
            Metric(
                "right strand",
                "of bases that code on one strand and are said to code on one, those on the right "
                "one, in percent",
                ratio_of("right strand", "judged"),
                scale=100,
            ),
        ],
        budget=f"{start.words} Then {sizes.budget.words}; the model is that of the last "
        "step. Windows are short, since the training loss fell faster with them in trials. The "
        "table counts all genes of both species, and chooses by the second.",
        data=[
            f"{ECOLI}: held out as a species. Measured is one in {sizes.every} pieces of "
            f"{CODING_PIECE:,} bases.",
            f"{OTHERS}: learned from. Genes are the CDS of each annotation, without pseudogenes.",
        ],
        claims=[
            Claim("pretraining helps", PRETRAINED, TWIN, MCC),
            Claim(f"{long:,} tokens beat {short:,}", longer, PRETRAINED, MCC),
            Claim("the pretrained model beats the 3-periodic table", PRETRAINED, table, MCC),
            Claim("the model without pretraining beats the 3-periodic table", TWIN, table, MCC),
            Claim("the pretrained model beats calling all coding", PRETRAINED, "all coding", MCC),
        ],
        notes=[
            "87.9% of E. coli is coding, so that calling all of it coding has an F1 of 0.935: F1 "
            "is not in the table, MCC is.",
            "Statistics of one bacterium transfer badly: a table of both others needs more than 2 "
            "bits for a base of E. coli. Genes of a relative would be easier; a gene finder that "
            "trains itself on the genome at hand, as Prodigal does, is better than all of these.",
        ],
        family="dna",
    )
