"""What the tasks on genomes have in common: examples are windows, and know where they lie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from longbird.dna.division import NONE, Division, usual
from longbird.dna.settings import DnaSettings
from longbird.dna.sweeps import Sweep
from longbird.dna.tokens import Tokens, make_tokenizer
from longbird.genomes import Contig, Genome, Interval, open_genome
from longbird.genomes.letters import opposite
from longbird.models.collator import LongbirdCollator
from longbird.tasks.folder import RunFolder
from longbird.tasks.settings import Settings
from longbird.tasks.task import Task

DESCRIPTION = "dna.json"
"""In the folder of a model: what it was trained for."""
SHOWN = 60
"""Bases of a window in the list of the worst."""


class Genomic(Task):
    """A task whose examples are windows of genomes."""

    rows_are = "windows"
    inputs = ("bases",)
    on_disk = ("bases",)
    settings: DnaSettings
    tokens: Tokens
    window: int = 0
    """Bases of a window; 0 as long as it is not known."""
    channels: tuple[str, ...] = ()
    """What a scan has scores of: strands, or targets."""
    label: str = ""
    """What the scores are of."""
    reads_one_strand: ClassVar[bool] = False
    """Does a scan read each strand by itself in any case?"""
    prevalence: float = 0.5
    """Of what is true among the windows that were learned from."""
    described: ClassVar[tuple[str, ...]] = ("window",)
    """Attributes that a model's folder tells of, and `restore` sets."""

    def begin(self, settings: Settings, folder: RunFolder) -> None:
        """Makes the tokenizer, unless the model has one."""
        assert isinstance(settings, DnaSettings)
        if not settings.model.startswith("scratch:") or settings.tokenizer is not None:
            return
        if not folder.tokenizer.exists():
            genomes = [open_genome_of(settings, file) for file in self.genomes(settings.train)]
            with folder.making(folder.tokenizer) as new:
                make_tokenizer(settings, genomes, new)

    def prepare(self, settings: Settings, tokenizer: Any) -> None:
        """Opens the genomes that are learned from, if any, and divides them."""
        assert isinstance(settings, DnaSettings)
        self.settings, self.tokens = settings, Tokens(tokenizer, settings.length)
        self.pad = LongbirdCollator(tokenizer)
        opened = [open_genome_of(settings, file) for file in self.genomes(settings.train)]
        if not opened:
            return
        self.window = self.window_of(opened[0])
        self.divisions = [self._division(genome) for genome in opened]
        words: dict[str, list[str]] = {}
        for division in self.divisions:
            for part, text in division.words().items():
                if text:
                    words.setdefault(part, []).append(text)
        self.divided = {part: "; ".join(texts) for part, texts in words.items()}

    def genomes(self, paths: Sequence[str]) -> Sequence[str]:
        """Of the files that were given, those that are genomes."""
        return paths[:1]

    def window_of(self, genome: Genome) -> int:
        """Bases of a window."""
        return self.tokens.window(genome)

    def _division(self, genome: Genome) -> Division:
        settings = self.settings
        chosen = settings.validation_on or usual(genome, settings.seed)
        held = {"validation": chosen, "test": settings.test_on}
        return Division(
            genome,
            {part: texts for part, texts in held.items() if texts and tuple(texts) != (NONE,)},
            self.window,
        )

    def measured_on(self, genome: Genome, files: Sequence[str], on: Sequence[Interval]) -> None:
        """Lets `examples` be those of another genome, all of them to measure with.

        Args:
            genome: The genome.
            files: Its own, and those of its labels.
            on: The stretches of it that are meant; all by default.
        """
        self.settings = replace(self.settings, train=tuple(files))
        self.divisions = [Division.measuring(genome, on)]

    def rows(self, paths: Iterable[str | Path], settings: Settings) -> Iterator[Any]:
        """The files themselves: they are not read by row."""
        return iter(paths)

    def examples(
        self, rows: Iterable[Any], settings: Settings, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """The windows of all parts."""
        for division in self.divisions:
            yield from self.windows(division, say)

    def windows(self, division: Division, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """The examples of a genome, each with its `place`, its `bases` and its `part`."""
        raise NotImplementedError

    def check_learned(self, number: int) -> None:
        """Raises if there are no examples to learn from."""
        if not number:
            raise ValueError(
                f"nothing is left to learn from: the windows have {self.window:,} bases, and "
                "what is held out has a gap of one window on both sides. Shorten the windows, or "
                "hold out less with --validation-on"
            )

    def pieces(self, bases: str, unit: int = 1) -> Iterator[slice]:
        """A window in pieces that the model can read on both strands: nearly always one."""

        def cut(start: int, end: int) -> Iterator[slice]:
            own = bases[start:end]
            if end - start <= unit or (self.tokens.fits(own) and self.tokens.fits(opposite(own))):
                yield slice(start, end)
                return
            middle = start + max(unit, (end - start) // 2 // unit * unit)
            yield from cut(start, middle)
            yield from cut(middle, end)

        return cut(0, len(bases))

    def lengths(self, features: Mapping[str, Any]) -> list[int]:
        """Tokens of a window, of the strand that has more."""
        return [features["tokens"]]

    def tokens_of(self, bases: str) -> int:
        """The same of bases, with special tokens."""
        if self.tokens.dna.k == 1:
            return len(bases) + 2
        return 2 + max(len(self.tokens.encode(each)) for each in (bases, opposite(bases)))

    # ---- scanning

    def sweep(self, contig: Contig, step: int | None) -> Sweep:
        """How a scan goes over a sequence."""
        raise ValueError(
            "this model was pretrained, and has not learned labels: there is nothing to scan for. "
            "`longbird dna finetune` trains it"
        )

    def scored(self, model: Any, windows: list[str]) -> list[np.ndarray]:
        """The scores of windows, between 0 and 1."""
        raise NotImplementedError

    def turned(self, scores: np.ndarray) -> np.ndarray:
        """Scores of the reverse complement of a window, as those of the window."""
        raise NotImplementedError

    def one_track(self, wanted: str | None) -> int | None:
        """The channel that was named; None for the highest of both strands.

        Raises:
            ValueError: There is none of that name, or none was named and there are several.
        """
        if wanted in self.channels:
            return self.channels.index(wanted)
        if wanted is not None:
            raise ValueError(
                f"--track must be one of {', '.join(self.channels)}, received {wanted}"
            )
        if len(self.channels) > 1 and self.channels != ("+", "-"):
            raise ValueError(
                "this file has one number for each place, and the model has scores of "
                f"{', '.join(self.channels)}: choose one with --track, or write .parquet"
            )
        return None if len(self.channels) > 1 else 0

    # ---- its folder

    def description(self) -> dict[str, Any]:
        """What the folder of a model says of what it was trained for."""
        own = {name: getattr(self, name) for name in self.described}
        return {"task": self.name, "length": self.settings.length, **own}

    def write_beside(self, model: Path) -> None:
        """Writes the description."""
        (model / DESCRIPTION).write_text(json.dumps(self.description(), indent=1), "utf-8")

    def restore(self, description: Mapping[str, Any]) -> None:
        """Takes what a description says."""
        for name in self.described:
            setattr(self, name, description[name])


def open_genome_of(settings: DnaSettings, file: str) -> Genome:
    """A genome as the settings say."""
    circular: Any = settings.circular or None
    if circular is not None and tuple(circular) == ("all",):
        circular = True
    return open_genome(file, alias=settings.alias, circular=circular)
