"""Properties of bins along E. coli, and ChIP peaks with a known motif."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from experiments.dna.classifying import Budget
from experiments.dna.experiments import promoters
from experiments.dna.experiments.promoters import HELD_OUT, start_of
from experiments.dna.experiments.sources import ECOLI, REGULATION
from experiments.dna.metrics import auroc_of, average_precision_of
from experiments.dna.models import PRETRAINED, TWIN, write_fasta
from experiments.dna.motif import CHIP
from experiments.dna.organisms import bacterium
from experiments.dna.profile import BIN, PEAKS, TARGETS, profile, write_tracks
from experiments.dna.profiling import CONTEXT, baselines, profile_outcome
from experiments.dna.promoters import BLOCK, SEQUENCE
from experiments.dna.splits import TEST
from experiments.dna.tracks import along, contestants, finetuned
from experiments.framework.experiment import (
    Attempt,
    Claim,
    Experiment,
    Metric,
    Outcome,
)

BUDGETS = {"default": Budget(300, 8192), "quick": Budget(2, 1024)}
SHORT = 1024
"""Tokens of the windows of a contestant that has less context."""
SEARCH = f"{CHIP} search"


def attempt(
    budget: Budget, which: Callable[[Attempt], Path], window: int, attempt: Attempt
) -> Outcome:
    """Train a model on all targets at once."""
    sequence = bacterium("E. coli").sequences[SEQUENCE]
    bins = profile(context=CONTEXT, held_out=HELD_OUT)
    held = np.flatnonzero(bins.side == TEST) * bins.size
    begin, end = int(held[0]), int(held[-1]) + bins.size
    file = attempt.folder / "genome.fa"
    write_fasta(file, [sequence], [SEQUENCE])
    trained, cost = finetuned(
        "profile",
        [file, *write_tracks(attempt.folder)],
        which(attempt),
        attempt,
        budget,
        bin=bins.size,
        length=window,
        test_on=(f"{SEQUENCE}:{begin + 1}-{end}",),
    )
    scores = np.zeros(bins.labels.shape)
    scores[begin // bins.size : end // bins.size] = along(trained, sequence, begin, end)
    return Outcome(profile_outcome(scores, bins).documents, cost)


def experiment(scale: str, model: Path | None = None) -> Experiment:
    """Return the experiment at a scale."""
    sizes, budget = promoters.SIZES[scale], BUDGETS[scale]
    plan = sizes.plan if scale == "default" else replace(sizes.plan, length=512)
    sizes = replace(sizes, plan=plan)
    start = start_of(sizes, model)
    settings = {**asdict(budget), "held_out": HELD_OUT, "bin": BIN, **start.settings}
    long = plan.length
    short = min(SHORT, long // 2)
    shorter = f"{PRETRAINED}, {short:,} tokens"
    models = contestants(
        partial(attempt, budget),
        settings,
        [
            (
                PRETRAINED,
                f"pretrained, then trained on all targets at once in windows of {long:,} tokens",
                start.pretrained,
                long,
            ),
            (
                TWIN,
                "the same model with new weights, trained on the targets alone",
                start.twin,
                long,
            ),
            (
                shorter,
                f"the first in windows of {short:,} tokens, in as many tokens of training",
                start.pretrained,
                short,
            ),
        ],
    )
    words = "5-mers of the bin"
    chip = "AP, ChIP peak"
    return Experiment(
        name="profile",
        title="Properties of bins along E. coli",
        asks=f"Which bins of {BIN} bases have genes, starts, binding sites, repeats, or a peak of "
        f"a ChIP whose protein binds {CHIP}? Does a model with thousands of bases around a bin "
        "tell more than the words of it do, and than looking for the motif?",
        scale=scale,
        contestants=[*models, *baselines(held_out=HELD_OUT)],
        reference=PRETRAINED,
        metrics=[
            Metric(
                chip,
                "average precision of bins with a peak of the ChIP",
                average_precision_of("score ChIP peak", "true ChIP peak"),
            ),
            *(
                Metric(
                    f"AUROC, {name}",
                    f"the chance that a bin with a {name} has the higher score",
                    auroc_of(f"score {name}", f"true {name}"),
                )
                for name in reversed(TARGETS)
            ),
        ],
        budget=f"{start.words} Then {budget.words}, all targets at once; the model is "
        "that of the last step.",
        data=[
            f"{ECOLI}, with its genes and the two replicates of a ChIP; {REGULATION}. The third "
            f"fifth is held out, with a gap of one window; a peak is one of the {PEAKS} highest, "
            f"a bin has a label if one of its bases has. Groups of the bootstrap are stretches of "
            f"{BLOCK:,} bases.",
        ],
        claims=[
            Claim("pretraining helps to find ChIP peaks", PRETRAINED, TWIN, chip),
            Claim(f"{long:,} tokens beat {short:,}, ChIP peaks", PRETRAINED, shorter, chip),
            *(
                Claim(
                    f"{long:,} tokens beat {short:,}, {name}",
                    PRETRAINED,
                    shorter,
                    f"AUROC, {name}",
                )
                for name in TARGETS[:-1]
            ),
            Claim(f"the model beats looking for {CHIP}", PRETRAINED, SEARCH, chip),
            Claim("the model beats words, ChIP peaks", PRETRAINED, words, chip),
            *(
                Claim(f"the model beats words, {name}", PRETRAINED, words, f"AUROC, {name}")
                for name in TARGETS[:-1]
            ),
        ],
        notes=[
            f"{SEARCH} knows the motif and nothing else; how far from a bin it looks is chosen on "
            "what is not held out. Its figures for other targets than the ChIP mean nothing.",
            "Labels are as incomplete as their databases; most bins without a known start or site "
            "have been looked at by nobody.",
        ],
        family="dna",
    )
