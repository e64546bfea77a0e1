"""Bases as the inputs of a model, and the tokenizer that a run makes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from longbird.applications.dna.genomes import DnaTokenizer, Encoding, Genome, Interval
from longbird.applications.dna.settings import DnaSettings

ROOM = 0.9
"""Of the tokens that a model reads, those that a window of pieces is planned to have."""
SAMPLE, STRETCH = 64, 1000
"""Stretches, and bases of each, that tell how many bases a token has."""


class Tokens:
    """Cuts bases for a model, with special tokens at both ends.

    Args:
        tokenizer: Of the model, as transformers has it.
        length: Tokens that the model reads, with the special ones.
    """

    def __init__(self, tokenizer: Any, length: int) -> None:
        own = tokenizers.Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        own.no_truncation()
        own.no_padding()
        self.dna = DnaTokenizer(own)
        self.first, self.last = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.unknown_base = self.dna.pieces.index("N")
        self.length = length

    def encode(self, bases: str) -> Encoding:
        """Without special tokens."""
        return self.dna.encode(bases)

    def inputs(self, encoding: Encoding) -> list[int]:
        """With them."""
        return [self.first, *encoding.ids.tolist(), self.last]

    def fits(self, bases: str) -> bool:
        """Does the model read as many?"""
        if len(bases) <= self.length - 2:
            return True
        return len(self.encode(bases)) <= self.length - 2

    def window(self, genome: Genome) -> int:
        """Bases of a window that fills the model; of pieces, nearly."""
        if self.dna.k is not None:
            return (self.length - 2) * self.dna.k
        names = list(genome.sequences.values())
        ends = np.cumsum([contig.length for contig in names])
        bases = tokens = 0
        for place in np.random.default_rng(0).integers(0, ends[-1], SAMPLE).tolist():
            which = int(np.searchsorted(ends, place, "right"))
            start = place - (int(ends[which - 1]) if which else 0)
            end = min(start + STRETCH, names[which].length)
            encoding = self.encode(genome.bases(Interval(names[which].name, start, end)))
            bases, tokens = bases + end - start, tokens + len(encoding)
        return max(1, int(ROOM * (self.length - 2) * bases / tokens))


def make_tokenizer(settings: DnaSettings, texts: Iterable[str], folder: Path) -> None:
    """Writes the tokenizer that the settings ask for; `texts` are what bpe learns from."""
    match settings.tokens:
        case "base":
            made = DnaTokenizer.base()
        case "kmer":
            made = DnaTokenizer.kmer(settings.k)
        case _:
            made = DnaTokenizer.train(texts, settings.vocabulary, seed=settings.seed)
    made.save(folder)
