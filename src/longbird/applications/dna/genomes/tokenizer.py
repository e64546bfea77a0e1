"""Tokenizers of DNA, of which every token knows its bases."""

from __future__ import annotations

import itertools
import os
import random
import re
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
"""Bases that the trainer sees as one word: its time grows much faster than the length of these."""
LONGEST_KMER = 8


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """The tokens of a stretch of DNA, and where they lie in it.

    Attributes:
        ids: Of the tokens, int64 [tokens].
        bounds: Token i has the bases from `bounds[i]` up to `bounds[i + 1]`, counted from the
            first that is read, int64 [tokens + 1].
    """

    ids: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def interval(self, token: int, window: Interval) -> Interval:
        """Where a token lies in the genome, if these are the tokens of that window."""
        token = range(len(self))[token]
        return window.part(int(self.bounds[token]), int(self.bounds[token + 1]))

    def token_at(self, base: int) -> int:
        """The token that a base belongs to, counted from the first that is read."""
        if not 0 <= base < self.bounds[-1]:
            raise IndexError(f"there are {self.bounds[-1]:,} bases; received base {base:,}")
        return int(np.searchsorted(self.bounds, base, side="right")) - 1

    def tokens_of_bases(self) -> npt.NDArray[np.int64]:
        """The token of every base, int64 [bases]."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.bounds))


class DnaTokenizer:
    """Cuts DNA into tokens and back: pieces learned from genomes, k-mers, or single bases.

    No base is lost or added: the pieces of a sequence, joined, are the sequence. N is always a
    token of its own, and codes of IUPAC for several bases are N. `save` writes the files of the
    library `tokenizers`, which `AutoTokenizer` of transformers loads.

    Attributes:
        kind: "bpe", "kmer" or "base".
        pieces: The text of each token, by its id; of special tokens it is in brackets.
        lengths: Bases of each token, int64 [tokens]; of special tokens 0.

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
        """Learns pieces that are frequent on both strands of genomes, by byte-pair encoding.

        Stretches of 1,000 bases are drawn from all of them, and given to the trainer with their
        reverse complements.

        Args:
            genomes: Genomes that are open, or texts of bases, as of the part to train on.
            vocabulary: Tokens, with the 5 special ones and the 5 letters.
            longest: Bases of the longest piece.
            sample: Bases to learn from, on both strands together; 16 million take 1 GB of memory.
            seed: Of the drawing.

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
        """Words of k bases, one after the other.

        They are counted from the start of a sequence, and anew after each N. What is left before
        an N or at the end, fewer than k bases, is single bases.
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
        """Single bases."""
        return cls.kmer(1)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> DnaTokenizer:
        """Reads what `save` wrote.

        Raises:
            FileNotFoundError: The folder has no tokenizer.json.
            ValueError: It is the tokenizer of something else than DNA.
        """
        from tokenizers import Tokenizer

        file = Path(folder, "tokenizer.json")
        if not file.is_file():
            raise MissingFileError(f"{folder} has no tokenizer.json")
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library has no class of its own for it
            raise InvalidValueError(f"{file} is not a tokenizer: {error}") from error
        return cls(tokenizer)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the files that `AutoTokenizer.from_pretrained(folder)` reads."""
        from transformers import PreTrainedTokenizerFast

        PreTrainedTokenizerFast(
            tokenizer_object=self._tokenizer,
            model_input_names=["input_ids", "attention_mask"],
            **SPECIAL,
        ).save_pretrained(folder)

    def encode(self, bases: str) -> Encoding:
        """The tokens of a sequence, without special ones.

        Args:
            bases: In any case; codes of IUPAC for several bases are read as N.

        Raises:
            ValueError: There are letters that are not of DNA.
        """
        bases = plain(bases)
        check_plain(bases)
        if self.kind == "base":  # a hundred times as fast as through the library
            ids = self._letters[np.frombuffer(bases.encode("ascii"), np.uint8)]
            return Encoding(ids, np.arange(len(bases) + 1, dtype=np.int64))
        ids = np.array(self._tokenizer.encode(bases, add_special_tokens=False).ids, np.int64)
        return Encoding(ids, self.bounds(ids))

    def bounds(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Where tokens lie, counted in bases from the first token, int64 [tokens + 1].

        Special tokens have no bases.
        """
        ids = np.asarray(ids, np.int64)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.lengths[ids])])

    def decode(self, ids: npt.ArrayLike) -> str:
        """The bases of tokens; special ones have none."""
        pieces = self.pieces
        return "".join(pieces[each] for each in np.asarray(ids, np.int64) if self.lengths[each])

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"<DnaTokenizer {self.kind}: {len(self):,} tokens>"


def _completed(tokenizer: tokenizers.Tokenizer, cut: str) -> tokenizers.Tokenizer:
    """With what stands before and after the model; `cut` is the pattern of what stands alone."""
    from tokenizers import Regex, decoders, normalizers, pre_tokenizers, processors

    codes = AMBIGUOUS + AMBIGUOUS.lower() + "n"
    tokenizer.normalizer = normalizers.Sequence(
        [
            *(
                normalizers.Replace(Regex(f"[{old}]"), new)
                for old, new in (("a", "A"), ("c", "C"), ("g", "G"), ("tuU", "T"), (codes, "N"))
            ),
        ]
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
    """Stretches without N out of all genomes: half as many bases as both strands have."""
    places: list[tuple[int, Sequence[Any]]] = []
    for genome in genomes:
        if isinstance(genome, str):
            bases = plain(genome)
            check_plain(bases)
            chunks = [bases[start : start + CHUNK] for start in range(0, len(bases), CHUNK)]
        elif isinstance(genome, Genome):
            chunks = windows(genome, CHUNK)
        else:
            raise InvalidTypeError(
                f"expected a genome that is open, or bases; received {genome!r:.80}"
            )
        places.append((len(chunks), chunks))
    total = sum(number for number, _ in places)
    wanted = max(1, sample // 2 // CHUNK)
    chosen = (
        range(total)
        if total <= wanted
        else sorted(random.Random(seed).sample(range(total), wanted))
    )
    begin, which = 0, 0
    for number in chosen:
        while number >= begin + places[which][0]:
            begin, which = begin + places[which][0], which + 1
        genome, chunk = genomes[which], places[which][1][number - begin]
        bases = genome.bases(chunk) if isinstance(genome, Genome) else chunk
        yield from (part for part in bases.split("N") if part)
