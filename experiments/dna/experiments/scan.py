"""A whole fifth of E. coli scanned for transcription starts, at every position and strand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from experiments.dna import promoters, scanning
from experiments.dna.classifying import BASELINES, models
from experiments.dna.experiments.promoters import (
    HELD_OUT,
    SIZES,
    negatives_in_words,
    set_of,
    start_of,
)
from experiments.dna.experiments.sources import ECOLI, REGULATION
from experiments.dna.metrics import (
    average_precision_of,
    false_at_recall_of,
    precision_at_recall_of,
)
from experiments.dna.models import PRETRAINED, TWIN
from experiments.dna.organisms import bacterium
from experiments.dna.peaks import TOLERANCE
from experiments.framework.experiment import Claim, Experiment, Metric

NEGATIVES = "random"
RECALLS = (0.25, 0.5, 0.75)
STEPS = {"default": 13, "quick": 2001}
"""Bases between the windows that a model reads."""
MOST = {"default": None, "quick": 50_000}
"""Bases that are scanned, if not all of the fifth."""


def experiment(scale: str, model: Path | None = None) -> Experiment:
    """Return the experiment at a scale."""
    sizes = SIZES[scale]
    start = start_of(sizes, model)
    given = set_of(NEGATIVES, sizes)
    given = replace(given, budget=replace(given.budget, step=STEPS[scale]))
    first, last = scanning.stretch(HELD_OUT, MOST[scale])
    length = len(bacterium("E. coli").sequences[promoters.SEQUENCE])
    at, _ = promoters.starts(experimental=False)
    inside = int(((first <= at) & (at < last)).sum())
    columns = {"score": "score", "true": "hit", "found": "found"}
    metrics = [
        Metric("AP", "average precision of calls", average_precision_of(**columns)),
        *(
            Metric(
                f"precision at recall {recall:g}",
                f"the share of right calls where {recall:.0%} of the starts are found, in percent",
                precision_at_recall_of(**columns, recall=recall),
                scale=100,
            )
            for recall in RECALLS
        ),
        *(
            Metric(
                f"false calls per Mb at recall {recall:g}",
                "wrong calls on both strands of a million bases; none where the calls that are "
                "kept do not reach that recall",
                false_at_recall_of(**columns, recall=recall, share=(last - first) / 1e6),
                more_is_better=False,
            )
            for recall in RECALLS[:2]
        ),
    ]
    return Experiment(
        name="scan",
        title="E. coli scanned for starts of transcription",
        asks="Of the places that a classifier of promoters calls in a whole stretch of genome, "
        "how many are starts?",
        scale=scale,
        contestants=scanning.contestants(
            given, [*models(start), *BASELINES], HELD_OUT, MOST[scale]
        ),
        reference=PRETRAINED,
        metrics=metrics,
        budget=f"{start.words} Then {given.budget.words}. Models score every "
        f"{given.budget.step} bases, and places between them have what lies between; the others "
        "score every base.",
        data=[
            ECOLI,
            f"{REGULATION}: learned from 1,301 starts with experimental evidence outside of the "
            f"third fifth, scanned are the {last - first:,} bases of that fifth on both strands, "
            f"which have {inside:,} of all 3,544 known starts, experimental or not: one of "
            f"{2 * (last - first) / max(1, inside):,.0f} places. Groups of the bootstrap are "
            f"stretches of {promoters.BLOCK:,} bases.",
        ],
        claims=[
            Claim("pretraining helps a scan", PRETRAINED, TWIN, "AP"),
            Claim("the pretrained model beats one-hot regression", PRETRAINED, "one-hot", "AP"),
            Claim("the pretrained model beats the small CNN", PRETRAINED, "small CNN", "AP"),
        ],
        notes=[
            negatives_in_words(),
            f"A call is the highest score within {TOLERANCE} bases; it is right if a start is "
            f"within {TOLERANCE} bases on its strand that no higher call has found. The 20 "
            "highest calls for each start that there is are kept: a precision of 0 means that "
            "these do not reach the recall.",
            "Not all starts are known: some calls that count as wrong may be right. The whole "
            f"genome has {length:,} bases; AUROC is not in the table, since a scan with 0.9 can "
            "be wrong nearly always (the JSON file has that of single bases).",
        ],
        family="dna",
    )
