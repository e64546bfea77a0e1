"""Which bases code for proteins, and on which strand, in another species.

Columns are `hits`, `false`, `missed`, `rest`, `right strand` and `judged`, over pieces of a
genome: `mcc_of` takes the first four, and `ratio_of` the last two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from longbird.bench.dna.metrics import mcc_of
from longbird.bench.dna.organisms import Organism, bacterium
from longbird.bench.dna.periodic import Periodic
from longbird.bench.quality.experiment import Attempt, Contestant, Outcome

REACHES = (48, 96, 192)
CODING_PIECE = 10_000


def for_coding(train: Sequence[str], test: str) -> list[Contestant]:
    """Which bases code for proteins, on which strand, in a species that was not learned from."""
    settings = {"train": list(train), "test": test}
    return [
        Contestant(
            "3-periodic table",
            "words of six bases in each frame, against what codes nothing, summed over "
            "neighbours; over how many is chosen on the last species that is learned from",
            partial(_periodic, train, test),
            {**settings, "reaches": REACHES},
            seeded=False,
        ),
        Contestant(
            "all coding",
            "each base codes, on a strand that is drawn",
            partial(_all_coding, test),
            settings,
            seeded=True,
        ),
    ]


def _periodic(train: Sequence[str], test: str, attempt: Attempt) -> Outcome:
    *first, last = [bacterium(name) for name in train]
    model = Periodic().count(first or [last])
    tried: dict[int, float] = {}
    for model.reach in REACHES:
        columns = coding_columns_of(last, said_by(model, last))
        counts = {name: np.array(values) for name, values in columns.items()}
        every = np.ones((1, len(counts["hits"])))
        tried[model.reach] = float(mcc_of("hits", "false", "missed", "rest")(counts, every)[0])
    model = Periodic(max(tried, key=tried.__getitem__)).count([*first, last])
    attempt.say(f"{model.reach} bases on each side")
    target = bacterium(test)
    facts = {"reach": model.reach, "validation MCC": tried}
    return Outcome(coding_columns_of(target, said_by(model, target)), facts=facts)


def said_by(model: Periodic, organism: Organism) -> dict[str, np.ndarray]:
    """Is each base said to code on each strand? [2, bases] by name."""
    return {
        name: model.coding_probability(sequence) > 0.5
        for name, sequence in organism.sequences.items()
    }


def _all_coding(test: str, attempt: Attempt) -> Outcome:
    random = np.random.default_rng(attempt.seed)
    said: dict[str, np.ndarray] = {}
    for name, sequence in bacterium(test).sequences.items():
        minus = random.integers(0, 2, len(sequence)).astype(bool)
        said[name] = np.stack([~minus, minus])
    return Outcome(coding_columns_of(bacterium(test), said))


def coding_columns_of(
    organism: Organism, said: Mapping[str, np.ndarray]
) -> dict[str, list[float]]:
    """The columns of a genome, sequence by sequence."""
    columns: dict[str, list[float]] = {}
    for name, codons in organism.codons.items():
        for column, values in coding_columns(said[name], codons >= 0).items():
            columns.setdefault(column, []).extend(values)
    return columns


def coding_columns(
    said: np.ndarray, true: np.ndarray, size: int = CODING_PIECE
) -> dict[str, list[float]]:
    """Counts over pieces of a sequence.

    Args:
        said: Is each base said to code on each strand? [2, bases]
        true: Does it?
        size: Of a piece.

    Returns:
        `hits`, `false`, `missed` and `rest` count bases on each of both strands. Of bases that
        code on one strand alone, and are said to code on one alone, `judged` says how many there
        are, and `right strand` how many are said to be on the right one.
    """
    begins = np.arange(0, said.shape[1], size)
    one = (true.sum(0) == 1) & (said.sum(0) == 1)
    tracks = {
        "hits": (said & true).sum(0),
        "false": (said & ~true).sum(0),
        "missed": (~said & true).sum(0),
        "rest": (~said & ~true).sum(0),
        "right strand": (one & (said & true).any(0)).astype(int),
        "judged": one.astype(int),
    }
    return {name: np.add.reduceat(x, begins).tolist() for name, x in tracks.items()}
