"""Converting bases to inputs of a model, and making the tokenizer of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from longbird.applications.dna.genomes import DnaTokenizer, Encoding, Genome, Interval
from longbird.applications.dna.settings import DnaSettings

ROOM = 0.9
"""Share of the tokens that a model reads which a window of byte pairs should have."""
SAMPLE, STRETCH = 64, 1000
"""Number of stretches, and of bases of each, that are used to estimate bases per token."""


class WindowTokenizer:
    """Tokenizes bases for a model that reads `length` tokens, with special tokens at both ends."""

    def __init__(self, tokenizer: Any, length: int) -> None:
        own = tokenizers.Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        own.no_truncation()
        own.no_padding()
        self.dna = DnaTokenizer(own)
        self.first, self.last = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.unknown_base = self.dna.pieces.index("N")
        self.length = length

    def encode(self, bases: str) -> Encoding:
        """Tokenize bases without special tokens."""
        return self.dna.encode(bases)

    def inputs(self, encoding: Encoding) -> list[int]:
        """Return token ids with special tokens."""
        return [self.first, *encoding.ids.tolist(), self.last]

    def fits(self, bases: str) -> bool:
        """Return whether the model can read these bases at once."""
        if len(bases) <= self.length - 2:
            return True
        return len(self.encode(bases)) <= self.length - 2

    def window(self, genome: Genome) -> int:
        """Return the number of bases that fill the model; with byte pairs, slightly fewer."""
        if self.dna.k is not None:
            return (self.length - 2) * self.dna.k
        bases = tokens = 0
        for number in np.random.default_rng(0).integers(0, genome.size, SAMPLE).tolist():
            contig, start = genome.locate(number)
            end = min(start + STRETCH, contig.length)
            encoding = self.encode(genome.bases(Interval(contig.name, start, end)))
            bases, tokens = bases + end - start, tokens + len(encoding)
        return max(1, int(ROOM * (self.length - 2) * bases / tokens))


def make_tokenizer(settings: DnaSettings, texts: Iterable[str], folder: Path) -> None:
    """Write the tokenizer that the settings name; bpe is trained on `texts`."""
    match settings.tokens:
        case "base":
            made = DnaTokenizer.base()
        case "kmer":
            made = DnaTokenizer.kmer(settings.k)
        case _:
            made = DnaTokenizer.train(texts, settings.vocabulary, seed=settings.seed)
    made.save(folder)
