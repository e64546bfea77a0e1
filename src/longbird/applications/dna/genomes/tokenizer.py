"""Tokenizers of DNA with exact positions of tokens."""

from __future__ import annotations

import itertools
import os
import random
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from longbird.applications.dna.genomes.genome import Genome
from longbird.applications.dna.genomes.interval import Interval
from longbird.applications.dna.genomes.letters import AMBIGUOUS, check_plain, opposite, plain
from longbird.applications.dna.genomes.windows import windows
from longbird.errors import InvalidTypeError, InvalidValueError, MissingFileError

if TYPE_CHECKING:
    import tokenizers

SPECIAL = {
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "unk_token": "[UNK]",
}
LETTERS = "ACGTN"
CHUNK = 1000
"""Bases that the trainer sees as one word; its time grows faster than their length."""
LONGEST_KMER = 8


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """The tokens of a DNA sequence, and their positions.

    Attributes:
        ids: Token ids, int64 [tokens].
        bounds: Bounds of the tokens, int64 [tokens + 1]: token i has the bases from `bounds[i]`
            up to, and excluding, `bounds[i + 1]`, counted in reading direction.
    """

    ids: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def interval(self, token: int, window: Interval) -> Interval:
        """Return the interval of a token in the genome, if these are the tokens of a window."""
        token = range(len(self))[token]
        return window.part(int(self.bounds[token]), int(self.bounds[token + 1]))

    def token_at(self, base: int) -> int:
        """Return the token of a base, which is counted in reading direction."""
        if not 0 <= base < self.bounds[-1]:
            raise IndexError(f"there are {self.bounds[-1]:,} bases; received base {base:,}")
        return int(np.searchsorted(self.bounds, base, side="right")) - 1

    def tokens_of_bases(self) -> npt.NDArray[np.int64]:
        """Return the token of every base, int64 [bases]."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.bounds))


class DnaTokenizer:
    """Splits DNA into byte pairs learned from genomes, into k-mers, or into single bases.

    No base is lost or added: the joined pieces of a sequence are the sequence. N is always a
    separate token, and IUPAC codes for several bases become N. `save` writes files of the
    tokenizers library, which `AutoTokenizer` of transformers loads.

    Attributes:
        kind: "bpe", "kmer" or "base".
        k: Length of a k-mer, 1 for single bases, or None for byte pairs.
        pieces: Text of each token by its id; special tokens are in brackets.
        lengths: Number of bases of each token, int64 [tokens]; 0 for special tokens.

    Examples:
        >>> tokenizer = DnaTokenizer.kmer(3)
        >>> encoding = tokenizer.encode("ACGTTnAC")
        >>> [tokenizer.pieces[token] for token in encoding.ids]
        ['ACG', 'T', 'T', 'N', 'A', 'C']
        >>> encoding.bounds.tolist()
        [0, 3, 4, 5, 6, 7, 8]
        >>> str(encoding.interval(0, Interval("chr1", 100, 108, "-")))
        'chr1:106-108(-)'
        >>> tokenizer.decode(encoding.ids)
        'ACGTTNAC'
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        vocabulary = tokenizer.get_vocab()
        self.pieces = tuple(sorted(vocabulary, key=vocabulary.__getitem__))
        strange = [
            piece
            for number, piece in enumerate(self.pieces)
            if vocabulary[piece] != number
            or (piece not in SPECIAL.values() and not re.fullmatch("N|[ACGT]+", piece))
        ]
        missing = [piece for piece in (*SPECIAL.values(), *LETTERS) if piece not in vocabulary]
        if strange or missing:
            why = (
                f"has the token {strange[0]!r:.40}" if strange else f"lacks the token {missing[0]}"
            )
            raise InvalidValueError(
                f"this is not a tokenizer of DNA that Longbird wrote: it {why}"
            )
        self.lengths: npt.NDArray[np.int64] = np.array(
            [0 if piece in SPECIAL.values() else len(piece) for piece in self.pieces], np.int64
        )
        self._letters = np.zeros(128, np.int64)
        for letter in LETTERS:
            self._letters[ord(letter)] = vocabulary[letter]
        longest = int(self.lengths.max())
        learned = type(tokenizer.model).__name__ == "BPE"
        self.kind = "bpe" if learned else "base" if longest == 1 else "kmer"
        self.k = None if learned else longest

    @classmethod
    def train(
        cls,
        genomes: Iterable[Genome | str],
        vocabulary: int = 4096,
        *,
        longest: int = 16,
        sample: int = 16_000_000,
        seed: int = 0,
    ) -> DnaTokenizer:
        """Learn byte pairs that are frequent on both strands of genomes.

        Stretches of 1,000 bases are drawn from all genomes; the trainer gets them and their
        reverse complements.

        Args:
            genomes: Open genomes, or texts of bases.
            vocabulary: Number of tokens, including the 5 special tokens and the 5 letters.
            longest: Maximum number of bases of a token.
            sample: Number of bases to learn from, counting both strands; 16 million take 1 GB of
                memory.
            seed: Seed for drawing the stretches.

        Examples:
            >>> tokenizer = DnaTokenizer.train(["TATAAT" * 50 + "GC" * 50], vocabulary=20)
            >>> len(tokenizer.pieces), tokenizer.kind
            (20, 'bpe')
        """
        from tokenizers import Tokenizer, models, trainers

        least = len(SPECIAL) + len(LETTERS)
        if not least <= vocabulary <= 2**20:
            raise InvalidValueError(
                f"vocabulary must be between {least} and {2**20:,}, received {vocabulary}"
            )
        if not 1 <= longest <= CHUNK:
            raise InvalidValueError(f"longest must be between 1 and {CHUNK}, received {longest}")
        tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL["unk_token"]))
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=list(SPECIAL.values()),
            initial_alphabet=list(LETTERS),
            max_token_length=longest + 1,  # the first length that is not allowed
            show_progress=False,
        )
        drawn = list(_drawn(list(genomes), sample, seed))
        if not drawn:
            raise InvalidValueError(
                "the genomes have no bases but N: there is nothing to learn from"
            )
        both = itertools.chain.from_iterable((bases, opposite(bases)) for bases in drawn)
        tokenizer.train_from_iterator(both, trainer)
        return cls(_completed(tokenizer, "N"))

    @classmethod
    def kmer(cls, k: int) -> DnaTokenizer:
        """Return a tokenizer of consecutive words of k bases.

        Words start at the start of a sequence, and again after each N. Fewer than k bases that
        remain before an N or at the end are single bases.
        """
        from tokenizers import Tokenizer, models

        if not 1 <= k <= LONGEST_KMER:
            raise InvalidValueError(f"k must be between 1 and {LONGEST_KMER}, received {k}")
        words = ("".join(word) for word in itertools.product("ACGT", repeat=k)) if k > 1 else ()
        pieces = [*SPECIAL.values(), *LETTERS, *words]
        numbers = {piece: number for number, piece in enumerate(pieces)}
        model = models.WordLevel(numbers, unk_token=SPECIAL["unk_token"])
        return cls(_completed(Tokenizer(model), f"[ACGT]{{{k}}}|." if k > 1 else "."))

    @classmethod
    def base(cls) -> DnaTokenizer:
        """Return a tokenizer of single bases."""
        return cls.kmer(1)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> DnaTokenizer:
        """Load a tokenizer that `save` wrote.

        Raises:
            FileNotFoundError: The folder has no tokenizer.json.
            ValueError: It is not a tokenizer of DNA.
        """
        from tokenizers import Tokenizer

        file = Path(folder, "tokenizer.json")
        if not file.is_file():
            raise MissingFileError(f"{folder} has no tokenizer.json")
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library has no error class
            raise InvalidValueError(f"{file} is not a tokenizer: {error}") from error
        return cls(tokenizer)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the files that `AutoTokenizer.from_pretrained(folder)` reads."""
        from transformers import PreTrainedTokenizerFast

        PreTrainedTokenizerFast(
            tokenizer_object=self._tokenizer,
            model_input_names=["input_ids", "attention_mask"],
            **SPECIAL,
        ).save_pretrained(folder)

    def encode(self, bases: str) -> Encoding:
        """Return the tokens of a sequence, without special tokens.

        Args:
            bases: Bases in any case; IUPAC codes for several bases are read as N.

        Raises:
            ValueError: There are letters that are not codes of DNA.
        """
        bases = plain(bases)
        check_plain(bases)
        if self.kind == "base":  # a hundred times faster than the library
            ids = self._letters[np.frombuffer(bases.encode("ascii"), np.uint8)]
            return Encoding(ids, np.arange(len(bases) + 1, dtype=np.int64))
        ids = np.array(self._tokenizer.encode(bases, add_special_tokens=False).ids, np.int64)
        return Encoding(ids, self.bounds(ids))

    def bounds(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the bounds of tokens in bases, int64 [tokens + 1]; special tokens have none."""
        ids = np.asarray(ids, np.int64)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths[ids])])

    def decode(self, ids: npt.ArrayLike) -> str:
        """Return the bases of tokens; special tokens have none."""
        pieces = self.pieces
        return "".join(pieces[each] for each in np.asarray(ids, np.int64) if self.lengths[each])

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"<DnaTokenizer {self.kind}: {len(self):,} tokens>"


def _completed(tokenizer: tokenizers.Tokenizer, cut: str) -> tokenizers.Tokenizer:
    """Add the normalizer and the special tokens; `cut` is the pattern of separate words."""
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers, processors

    codes = AMBIGUOUS + AMBIGUOUS.lower() + "n"
    replaced = (("a", "A"), ("c", "C"), ("g", "G"), ("tuU", "T"), (codes, "N"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(f"[{old}]"), new) for old, new in replaced]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(cut), "isolated")
    first, last = (SPECIAL[name] for name in ("cls_token", "sep_token"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B {last}",
        special_tokens=[(each, tokenizer.token_to_id(each)) for each in (first, last)],
    )
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    return tokenizer


def _drawn(genomes: Sequence[Genome | str], sample: int, seed: int) -> Iterator[str]:
    """Yield stretches without N from all genomes: half as many bases as both strands have."""
    chunks: list[Sequence[Any]] = []  # of each genome: texts, or intervals
    for genome in genomes:
        if isinstance(genome, str):
            bases = plain(genome)
            check_plain(bases)
            chunks.append([bases[start : start + CHUNK] for start in range(0, len(bases), CHUNK)])
        elif isinstance(genome, Genome):
            chunks.append(windows(genome, CHUNK))
        else:
            raise InvalidTypeError(f"expected an open genome, or bases; received {genome!r:.80}")
    ends = list(itertools.accumulate(map(len, chunks), initial=0))
    wanted = max(1, sample // 2 // CHUNK)
    chosen = range(ends[-1])
    if len(chosen) > wanted:
        chosen = sorted(random.Random(seed).sample(chosen, wanted))
    for number in chosen:
        which = bisect_right(ends, number) - 1
        genome, chunk = genomes[which], chunks[which][number - ends[which]]
        bases = genome.bases(chunk) if isinstance(genome, Genome) else chunk
        yield from (part for part in bases.split("N") if part)
