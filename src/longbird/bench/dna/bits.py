"""Bits per base: what tables make of a corpus.

Columns are `bits` and `bases`, of which the metric is `ratio_of("bits", "bases")`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from longbird.bench.dna.corpora import by_piece, corpus
from longbird.bench.dna.markov import STRENGTHS, Markov, TwoSided, choose
from longbird.bench.quality.experiment import Attempt, Contestant, Outcome

ORDERS, WIDTHS = 12, 6
"""The longest contexts that are tried."""


def for_bits(name: str) -> list[Contestant]:
    """Tables on a corpus: of one side, of both sides, and of four bases on each side."""
    tables: list[tuple[str, str, Callable[[], Markov | TwoSided], int | None]] = [
        (
            "one-sided table",
            f"each base by up to {ORDERS} before it; how many is chosen",
            lambda: Markov(ORDERS),
            None,
        ),
        ("one-sided table, order 3", "each base by 3 before it", lambda: Markov(3), 3),
        ("one-sided table, order 7", "each base by 7 before it", lambda: Markov(7), 7),
        (
            "two-sided table",
            f"each base by up to {WIDTHS} on each side; how many is chosen",
            lambda: TwoSided(WIDTHS),
            None,
        ),
        ("two-sided table, 4 + 4", "each base by 4 on each side", lambda: TwoSided(4), 4),
    ]
    return [
        Contestant(
            title,
            about,
            partial(bits_of_table, name, make, size),
            {"corpus": name, "size": size, "strengths": STRENGTHS},
            seeded=False,
        )
        for title, about, make, size in tables
    ]


def bits_of_table(
    name: str, make: Callable[[], Markov | TwoSided], size: int | None, attempt: Attempt
) -> Outcome:
    """Counts, chooses the smoothing (and the size, if none is given), and measures."""
    given = corpus(name)
    model = make().count(given.train)
    chosen = choose(model, given.validation, size=size)
    attempt.say(f"size {chosen.size}, strength {chosen.strength:g}")
    columns: dict[str, list[float]] = {"bits": [], "bases": []}
    for stretch in given.test:
        bits, bases = by_piece(model.bits(stretch, chosen.strength)[chosen.size])
        columns["bits"] += bits.tolist()
        columns["bases"] += bases.tolist()
    facts = {"size": chosen.size, "strength": chosen.strength, "validation bits": chosen.bits}
    return Outcome(columns, {"bases": float(sum(map(len, given.train)))}, facts)
