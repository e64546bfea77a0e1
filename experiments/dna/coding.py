"""Which bases code for proteins, and on which strand, in another species: tables and models.

Columns are `hits`, `false`, `missed`, `rest`, `right strand` and `judged`, over pieces of a
genome: `mcc_of` takes the first four, and `ratio_of` the last two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments.dna.bases import letters
from experiments.dna.metrics import mcc_of
from experiments.dna.organisms import Organism, bacterium
from experiments.dna.periodic import Periodic
from experiments.dna.splits import stretches
from experiments.dna.tracks import along
from experiments.framework.experiment import Attempt, Contestant, Outcome

if TYPE_CHECKING:
    from longbird.applications.dna.runs import TrainedDna

REACHES = (48, 96, 192)
CODING_PIECE = 10_000


@dataclass(frozen=True)
class Species:
    """Species for training and for the test.

    Attributes:
        train: Training species; the last one is for validation.
        test: Test species.
        every: One in this many of its pieces is measured.
    """

    train: tuple[str, ...]
    test: str
    every: int = 1

    def columns(self, said: Mapping[str, np.ndarray]) -> dict[str, list[float]]:
        """Return the columns of predictions about the test species, [2, bases] by name."""
        return {
            name: values[:: self.every]
            for name, values in coding_columns_of(bacterium(self.test), said).items()
        }


def baselines(given: Species) -> list[Contestant]:
    """Return the baselines."""
    settings = asdict(given)
    return [
        Contestant(
            "3-periodic table",
            "words of six bases in each frame, against what codes nothing, summed over "
            "neighbours; over how many is chosen on the last species that is learned from",
            partial(_periodic, given),
            {**settings, "reaches": REACHES},
            seeded=False,
        ),
        Contestant(
            "all coding",
            "each base codes, on a strand that is drawn",
            partial(_all_coding, given),
            settings,
            seeded=True,
        ),
    ]


def _periodic(given: Species, attempt: Attempt) -> Outcome:
    *first, last = [bacterium(name) for name in given.train]
    model = Periodic().count(first or [last])
    tried: dict[int, float] = {}
    for model.reach in REACHES:
        columns = coding_columns_of(last, said_by(model, last))
        counts = {name: np.array(values) for name, values in columns.items()}
        every = np.ones((1, len(counts["hits"])))
        tried[model.reach] = float(mcc_of("hits", "false", "missed", "rest")(counts, every)[0])
    model = Periodic(max(tried, key=tried.__getitem__)).count([*first, last])
    attempt.say(f"{model.reach} bases on each side")
    facts = {"reach": model.reach, "validation MCC": tried}
    return Outcome(given.columns(said_by(model, bacterium(given.test))), facts=facts)


def said_by(model: Periodic, organism: Organism) -> dict[str, np.ndarray]:
    """Return whether a table predicts that each base codes on each strand, [2, bases] by name."""
    return {
        name: model.coding_probability(sequence) > 0.5
        for name, sequence in organism.sequences.items()
    }


def _all_coding(given: Species, attempt: Attempt) -> Outcome:
    random = np.random.default_rng(attempt.seed)
    said: dict[str, np.ndarray] = {}
    for name, sequence in bacterium(given.test).sequences.items():
        minus = random.integers(0, 2, len(sequence)).astype(bool)
        said[name] = np.stack([~minus, minus])
    return Outcome(given.columns(said))


def said_by_model(trained: TrainedDna, given: Species) -> dict[str, np.ndarray]:
    """Return whether a model predicts it for each base of the pieces that are measured."""
    said: dict[str, np.ndarray] = {}
    number = 0
    for name, sequence in bacterium(given.test).sequences.items():
        said[name] = np.zeros((2, len(sequence)), bool)
        for begin in range(0, len(sequence), CODING_PIECE):
            end = min(begin + CODING_PIECE, len(sequence))
            if number % given.every == 0:
                scores = along(trained, sequence, begin, end)
                said[name][:, begin:end] = scores.T > 0.5
            number += 1
    return said


def coding_columns_of(
    organism: Organism, said: Mapping[str, np.ndarray]
) -> dict[str, list[float]]:
    """Return the columns of a genome, sequence by sequence."""
    columns: dict[str, list[float]] = {}
    for name, codons in organism.codons.items():
        for column, values in coding_columns(said[name], codons >= 0).items():
            columns.setdefault(column, []).extend(values)
    return columns


def coding_columns(
    said: np.ndarray, true: np.ndarray, size: int = CODING_PIECE
) -> dict[str, list[float]]:
    """Return counts over pieces of a sequence.

    Args:
        said: Whether each base is predicted to code on each strand, [2, bases].
        true: Whether it does.
        size: Number of bases per piece.

    Returns:
        `hits`, `false`, `missed` and `rest` count bases on both strands. Of the bases that code on
            one strand only, and are predicted to code on one only, `judged` is the number, and
            `right strand` how many are predicted on the right one.
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


def write_genes(organism: Organism, folder: Path, most: int | None = None) -> list[Path]:
    """Write a genome and its genes as FASTA and BED, as a user would have them.

    Args:
        organism: The organism.
        folder: Output folder.
        most: Maximum number of bases per sequence.
    """
    stem = organism.name.replace(". ", "-")
    genome, genes = folder / f"{stem}.fa", folder / f"{stem}.bed"
    with genome.open("w", encoding="ascii") as file, genes.open("w", encoding="ascii") as bed:
        for name, sequence in organism.sequences.items():
            file.write(f">{name}\n{letters(sequence[:most])}\n")
            for strand, codons in zip("+-", organism.codons[name][:, :most], strict=True):
                for begin, end in stretches(codons >= 0):
                    bed.write(f"{name}\t{begin}\t{end}\tCDS\t0\t{strand}\n")
    return [genome, genes]
