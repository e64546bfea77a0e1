"""Bits per base of E. coli: short and long windows, single bases and BPE, beside tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from experiments.dna.bits import PASSES, bits_of_model, tables
from experiments.dna.corpora import GAP, PIECE, Corpus, corpus
from experiments.dna.experiments.sources import ECOLI
from experiments.dna.models import ABOUT, TINY, Plan, pretrained
from experiments.framework.experiment import (
    Attempt,
    Claim,
    Contestant,
    Experiment,
    Metric,
    Outcome,
    ratio_of,
)
from longbird.applications.dna.runs import load

CORPUS = "E. coli"
BITS = "bits per base"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a scale.

    Attributes:
        plans: By the kind of token, the plan of the model with long windows.
        short: Number of tokens of short windows, with as many steps of as many tokens.
        passes: Number of passes that are measured, which is a sample of the held-out tokens.
        most: Maximum number of bases of each stretch of the corpus.
    """

    plans: dict[str, Plan]
    short: int
    passes: int
    most: int | None = None

    def corpus(self) -> Corpus:
        """Return the training, validation and held-out stretches."""
        given = corpus(CORPUS)
        parts = (given.train, given.validation, given.test)
        return Corpus(*([each[: self.most] for each in part] for part in parts))


SIZES = {
    "default": Sizes(
        {
            "base": Plan(steps=450),
            "bpe": Plan(tokens="bpe", steps=225),
        },
        short=512,
        passes=2,
    ),
    "quick": Sizes(
        {"base": TINY, "bpe": replace(TINY, tokens="bpe")}, short=64, passes=1, most=10_000
    ),
}
NAMES = {"base": "single bases", "bpe": "BPE"}


def name_of(tokens: str, length: int) -> str:
    """Return the name of a contestant."""
    return f"{NAMES[tokens]}, {length:,} tokens"


def measured(sizes: Sizes, folder: Path, batch: int) -> dict[str, list[float]]:
    """Return the columns of a run over the held-out stretch."""
    trained = load(folder)
    columns: dict[str, list[float]] = {"bits": [], "bases": []}
    for stretch in sizes.corpus().test:
        bits, bases = bits_of_model(trained, stretch, sizes.passes, batch)
        begins = np.arange(0, len(stretch), PIECE)
        columns["bits"] += np.add.reduceat(np.nan_to_num(bits), begins).tolist()
        columns["bases"] += np.add.reduceat(bases, begins).tolist()
    return columns


def attempt(sizes: Sizes, plan: Plan, attempt: Attempt) -> Outcome:
    """Pretrain and measure a model."""
    train = sizes.corpus().train
    run, cost = pretrained(attempt.folder, plan, train, attempt.seed, attempt.say)
    attempt.say("measuring")
    return Outcome(measured(sizes, run, plan.batch), cost)


def untrained(sizes: Sizes, plan: Plan, attempt: Attempt) -> Outcome:
    """Measure a model without training."""
    nothing = replace(plan, steps=1, learning_rate=0.0, batch=plan.length)
    some = [sizes.corpus().train[0][: 2 * plan.length]]
    run, _ = pretrained(attempt.folder, nothing, some, attempt.seed, _quiet)
    return Outcome(measured(sizes, run, plan.batch))


def _quiet(_: str) -> None:
    """Discard a message."""


def experiment(scale: str, model: Path | None = None) -> Experiment:
    """Return the experiment at a scale."""
    if model is not None:
        raise ValueError(
            "bits is about pretraining itself: leave --model out. `longbird dna evaluate` "
            "measures the bits per base of a model on any genome"
        )
    sizes = SIZES[scale]
    contestants: list[Contestant] = []
    for tokens, plan in sizes.plans.items():
        for length in (plan.length, sizes.short):
            own = replace(plan, length=length)
            contestants.append(
                Contestant(
                    name_of(tokens, length),
                    f"pretrained with {own.words}",
                    partial(attempt, sizes, own),
                    {**asdict(own), "passes": sizes.passes, "most": sizes.most},
                )
            )
    base, bpe = sizes.plans["base"], sizes.plans["bpe"]
    long, short, pieces = (
        name_of("base", base.length),
        name_of("base", sizes.short),
        name_of("bpe", bpe.length),
    )
    twin = f"{long}, random twin"
    contestants.append(
        Contestant(
            twin,
            "the same with new weights, not trained",
            partial(untrained, sizes, base),
            {**asdict(base), "passes": sizes.passes, "most": sizes.most},
        )
    )
    both, wide = "two-sided table, 4 + 4", "two-sided table, 6 + 6"
    contestants += tables(sizes.corpus, {"corpus": CORPUS, "most": sizes.most})
    claims = [
        Claim("longer windows save bits, single bases", long, short, BITS),
        Claim("longer windows save bits, BPE", pieces, name_of("bpe", sizes.short), BITS),
        Claim("single bases save bits against BPE", long, pieces, BITS),
        Claim("pretraining saves bits", long, twin, BITS),
        Claim("the model is below the table of 4 + 4 bases", long, both, BITS),
        Claim("the model is below the table of 6 + 6 bases", long, wide, BITS),
        Claim("short windows are enough to be below 4 + 4 bases", short, both, BITS),
    ]
    seen = {name: plan.steps * plan.batch for name, plan in sizes.plans.items()}
    return Experiment(
        name="bits",
        title="Bits per base of E. coli",
        asks=f"What does a window of {base.length:,} tokens save against one of {sizes.short:,}, "
        "and does a small model say more of a base than a table of its neighbours does?",
        scale=scale,
        contestants=contestants,
        reference=long,
        metrics=[
            Metric(
                BITS,
                "bits of all predicted tokens over their bases, a ratio of sums, N left out",
                ratio_of("bits", "bases"),
                more_is_better=False,
            )
        ],
        budget=f"the same steps and tokens for long and short windows: {seen['base']:,} bases as "
        f"tokens, and {seen['bpe']:,} tokens of BPE (five bases each), on either strand. "
        f"{ABOUT} Tables count all that is learned from, on both strands.",
        data=[
            f"{ECOLI}. The last fifth of the circle is held out, with a gap of {GAP:,} bases; "
            f"tables choose by 5% beside it, which models do not read. Documents are pieces of "
            f"{PIECE:,} bases. A pass hides one token in {PASSES}, and {PASSES} passes would hide "
            f"each token once: measured are {sizes.passes} of them, a sample of "
            f"{sizes.passes / PASSES:.0%} of the tokens. Tables are measured on all.",
        ],
        claims=claims,
        notes=[
            "Models see both sides of a hidden token: theirs is a pseudo-likelihood, to be "
            "compared with two-sided tables. One-sided tables are what can be said from left to "
            "right, and stand here to show the difference. No figure here is comparable with the "
            "paper's 1.12, which is of human DNA and an undescribed held-out set.",
            "With BPE, where tokens begin and end tells how long the hidden one is. Windows do "
            "not overlap, so that tokens at their ends see one side less: in short windows there "
            "are more of these.",
            "Ribosomal operons and insertion sequences of the held-out fifth have copies outside "
            "of it, for models and for tables alike.",
        ],
        family="dna",
    )
