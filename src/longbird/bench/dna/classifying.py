"""Windows told apart: the classifiers that a model stands beside.

Columns are `score`, `positive` and `group`, and `apart`, which is 0 at examples of which 15% or
more are in one that is learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from longbird.bench.dna import artificial, promoters
from longbird.bench.dna.examples import Examples
from longbird.bench.dna.linear import AtContent, OneHot, Scorer, Words
from longbird.bench.quality.experiment import Attempt, Contestant, Outcome

TWIN = 0.15
"""Share of the words of 21 bases by which a held-out window is a twin of one learned from."""


def for_promoters(
    negatives: str, before: int = promoters.BEFORE, after: int = promoters.AFTER
) -> list[Contestant]:
    """Classifiers of windows around starts of transcription in E. coli."""
    load = partial(promoters.examples, negatives, before, after)
    settings = {"negatives": negatives, "before": before, "after": after}
    return _classifiers(load, settings, pool=1 if before + after <= 500 else 4)


def for_artificial(recipe: str, length: int) -> list[Contestant]:
    """Classifiers of promoters of Drosophila against what is made of them."""
    load = partial(artificial.examples, recipe, length)
    return _classifiers(load, {"recipe": recipe, "length": length}, pool=1 if length <= 500 else 4)


def _classifiers(
    load: Callable[[], Examples], settings: Mapping[str, Any], pool: int
) -> list[Contestant]:
    return [
        Contestant(
            name,
            about,
            partial(_classify, load, make),
            {**settings, **({"pool": pool} if seeded else {})},
            seeded,
        )
        for name, about, make, seeded in scorers(pool)
    ]


def scorers(pool: int = 1) -> list[tuple[str, str, Callable[[int], Scorer], bool]]:
    """Name, description, what makes one for a seed, and whether the seed changes anything."""

    def network(seed: int) -> Scorer:
        from longbird.bench.dna.cnn import Cnn

        return Cnn(seed, pool=pool)

    chosen = "logistic regression, regularised as cross-validation chooses, on"
    pooled = f", pooled by {pool} behind the first" if pool > 1 else ""
    return [
        ("A+T content", "the share of A and T", lambda _: AtContent(), False),
        ("5-mers", f"{chosen} how often each word of 5 bases is there", lambda _: Words(5), False),
        ("one-hot", f"{chosen} which base is at which place", lambda _: OneHot(), False),
        (
            "small CNN",
            f"three layers of 100 filters of 15, 9 and 5{pooled}, and the maximum over all places",
            network,
            True,
        ),
    ]


def _classify(
    load: Callable[[], Examples], make: Callable[[int], Scorer], attempt: Attempt
) -> Outcome:
    given = load()
    learned, held = given.learned, given.held_out
    scorer = make(attempt.seed).fit(learned.windows, learned.positive, learned.group)
    columns = {
        "score": scorer.scores(held.windows).tolist(),
        "positive": held.positive.tolist(),
        "group": held.group.tolist(),
        "apart": (given.likeness < TWIN).tolist(),
    }
    facts = {"positives": int(held.positive.sum()), "negatives": int((~held.positive).sum())}
    if history := getattr(scorer, "history", None):
        facts["validation AP by epoch"] = history
    return Outcome(columns, {"examples": float(len(learned.positive))}, facts)
