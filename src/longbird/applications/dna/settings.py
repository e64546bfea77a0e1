"""All that decides a run on genomes."""

from __future__ import annotations

from dataclasses import dataclass

from longbird.applications.training.settings import Settings
from longbird.errors import InvalidValueError

TOKENS = ("base", "kmer", "bpe")
NEGATIVES = ("random", "intergenic", "permuted", "shuffled", "uniform")
"""Recipes for what is not a promoter; `longbird.applications.dna.negatives` has them."""


@dataclass(frozen=True)
class DnaSettings(Settings):
    """The settings of any run, and those of genomes.

    `train` has the genomes to pretrain on, or genomes with labels, each before its own.

    Attributes:
        tokens: For a model from scratch, what a token is: base, kmer or bpe.
        k: Bases of a k-mer.
        vocabulary: Tokens of bpe.
        alias: What labels call the sequences: other=name, or a file with another name and the
            name in the genome in each line, separated by a tab. Of several genomes, each takes
            the names that it has.
        circular: Sequences that are circular, or "all". Of a genome of which none is named, what
            its labels, or GenBank, say.
        kind: Kinds of features that are labels, such as CDS; see each task for its default.
        upstream: Promoters: bases of a window before the start.
        downstream: Promoters: bases of a window from the start on.
        negatives: Promoters: what is not one; one of `NEGATIVES`.
        per_positive: Promoters: negatives for each of them.
        bin: Profiles: bases that share a label.
        quantile: Profiles: bins above this quantile of a signal are labelled.
        validation_on: Parts of the genome that choose the best model: names of sequences,
            stretches such as chr1:1-1000, 5/5 for the last fifth of each, or the file of a
            genome for all of it; "none".
        test_on: The same, that the best model is measured with at the end.
    """

    tokens: str = "base"
    k: int = 6
    vocabulary: int = 4096
    alias: tuple[str, ...] = ()
    circular: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    upstream: int = 250
    downstream: int = 50
    negatives: str = "random"
    per_positive: int = 3
    bin: int = 128
    quantile: float = 0.95
    validation_on: tuple[str, ...] = ()
    test_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check what can be checked without files."""
        super().__post_init__()
        for name, least, most in (
            ("k", 1, 8),
            ("vocabulary", 10, 2**20),
            ("upstream", 0, 2**24),
            ("downstream", 1, 2**24),
            ("per_positive", 1, 1000),
            ("bin", 1, 2**20),
            ("quantile", 0.001, 0.9999),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise InvalidValueError(
                    f"{name} must be between {least:,} and {most:,}, received {value}"
                )
        for name, choices in (("tokens", TOKENS), ("negatives", NEGATIVES)):
            if getattr(self, name) not in choices:
                raise InvalidValueError(
                    f"{name} must be one of {', '.join(choices)}, received {getattr(self, name)}"
                )
