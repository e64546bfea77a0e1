"""The options of runs on genomes, and of scans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from longbird.applications.training.settings.definition import Definition, option, redefined
from longbird.applications.training.settings.groups import ClassWeights, ModelOptions, Settings
from longbird.applications.training.settings.groups import OptimisationOptions as Optimisation
from longbird.errors import InvalidValueError

TOKENS = ("base", "kmer", "bpe")
NEGATIVES = ("random", "intergenic", "permuted", "shuffled", "uniform")
"""Kinds of negatives for promoters; see `longbird.applications.dna.negatives`."""


ENDINGS = ("bed", "bedgraph", "gff3", "bw", "parquet")
"""Endings of the files that a scan writes."""
ALTERNATIVE_ENDINGS = {"bigwig": "bw", "bdg": "bedgraph", "bg": "bedgraph", "gff": "gff3"}


@dataclass(frozen=True)
class DnaSettings(Settings):
    """The options of every run on genomes.

    `train` has the genomes to pretrain on, or genomes that are each followed by their labels.
    """

    title: ClassVar[str] = "Genome"

    model: str = redefined(ModelOptions, "model", "scratch:tiny")
    tokens: Literal["base", "kmer", "bpe"] = option(
        "base", "With scratch:SIZE, what one token is: base, kmer or bpe."
    )
    k: int = option(6, "Number of bases of a k-mer.", least=1, most=8)
    vocabulary: int = option(4096, "Number of tokens of bpe.", least=10, most=2**20)
    alias: tuple[str, ...] = option(
        (),
        "Sequence name alias in labels: other=name, or a file with another name, a tab and the "
        "name in the genome on each line.",
    )
    circular: tuple[str, ...] = option(
        (), "Circular sequence, or all.", shown="those that GenBank calls circular"
    )
    validation_on: tuple[str, ...] = option(
        (),
        "Part of the genome that chooses the best model: a sequence, chr1:1-5000, 5/5 for the "
        "last fifth of each, the file of a genome, or none.",
        shown="whole sequences, or 5/5",
    )
    test_on: tuple[str, ...] = option(
        (), "Part of the genome that the best model is measured on at the end."
    )


@dataclass(frozen=True)
class DnaPretrainingSettings(DnaSettings):
    """The options of masked language modelling of genomes."""

    learning_rate: float = redefined(Optimisation, "learning_rate", 5e-4)
    mask: float = option(0.15, "Fraction of the tokens to predict.", least=0.01, most=0.9)


@dataclass(frozen=True)
class DnaLabelSettings(DnaSettings, ClassWeights):
    """The options of the tasks that learn from the labels of genomes."""

    learning_rate: float = redefined(Optimisation, "learning_rate", 3e-4)
    kind: tuple[str, ...] = option(
        (), "Kind of features that are labels, such as CDS or promoter."
    )
    upstream: int = option(
        250, "promoter: bases of a window before the start.", least=0, most=2**24
    )
    downstream: int = option(
        50, "promoter: bases of a window from the start on.", least=1, most=2**24
    )
    negatives: Literal["random", "intergenic", "permuted", "shuffled", "uniform"] = option(
        "random",
        "promoter: how negatives are chosen: random or intergenic places; or permuted, shuffled "
        "or uniform, which are made from promoters.",
    )
    per_positive: int = option(
        3, "promoter: number of negatives per promoter.", least=1, most=1000
    )
    bin: int = option(128, "profile: number of bases that share a label.", least=1, most=2**20)
    quantile: float = option(
        0.95,
        "profile: bins above this quantile of a signal are labelled.",
        least=0.001,
        most=0.9999,
    )


@dataclass(frozen=True)
class ScanSettings(Definition):
    """The options that determine the scores and the files of a scan."""

    step: int | None = option(
        None,
        "promoter: bases between windows.",
        least=1,
        shown="a thirtieth of a window, made odd",
    )
    both_strands: bool = option(
        False,
        "Average the scores of both strands, so that a sequence and its reverse complement have "
        "the same scores. Promoter models always do.",
    )
    threshold: float = option(0.5, ".bed and .gff3: lowest score of a stretch.")
    smoothing: int | None = option(
        None,
        ".bed and .gff3: bases over which scores are averaged before they are compared with the "
        "threshold.",
        least=0,
        most=1_000_000,
        shown="101 for coding, otherwise 0",
    )
    merge_gap: int | None = option(
        None,
        ".bed and .gff3: merge stretches that are at most this many bases apart.",
        least=0,
        most=1_000_000,
        shown="30 for coding, otherwise 0",
    )
    minimum_length: int | None = option(
        None,
        ".bed and .gff3: shortest stretch that is written, in bases.",
        least=0,
        most=1_000_000,
        shown="90 for coding, otherwise 0",
    )
    prevalence: float | None = option(
        None, "Expected share of positives in this genome; shifts the scores."
    )
    track: str | None = option(
        None,
        ".bedgraph and .bw: strand or target to write.",
        shown="the highest score of both strands",
    )
    tokens_per_batch: int | None = option(
        None, "Maximum number of tokens per batch.", least=1, shown="as in training"
    )

    def check(self) -> None:
        """Raise an error for shares that are not between 0 and 1."""
        for name in ("threshold", "prevalence"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise InvalidValueError(option=name, expected="between 0 and 1", received=value)


def ending_of(file: Path) -> str:
    """Return the format of a file by its ending.

    Raises:
        InvalidValueError: No format has this ending.
    """
    ending = file.suffix.lower().removeprefix(".")
    ending = ALTERNATIVE_ENDINGS.get(ending, ending)
    if ending not in ENDINGS:
        raise InvalidValueError(
            f"{file} ends in {file.suffix!r}, expected one of "
            f"{', '.join(f'.{each}' for each in ENDINGS)}"
        )
    return ending
