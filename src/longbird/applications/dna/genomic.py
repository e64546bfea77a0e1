"""What the tasks on genomes have in common: examples are windows, and know where they lie."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from longbird.applications.dna.division import NONE, Division, is_file_of, names, stretches, usual
from longbird.applications.dna.genome_files import Labelled, labelled, open_genomes_of
from longbird.applications.dna.genomes import Contig, Genome
from longbird.applications.dna.genomes.letters import opposite
from longbird.applications.dna.prior import Share
from longbird.applications.dna.settings import DnaSettings
from longbird.applications.dna.sweeps import NO_BASE, Sweep
from longbird.applications.dna.tokens import Tokens, make_tokenizer
from longbird.applications.training.data.file_source import Source
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trained_model import DNA as DESCRIPTION
from longbird.applications.training.tasks.task import Task
from longbird.errors import InvalidValueError
from longbird.models.collator import LongbirdCollator

STRETCH, SAMPLE = 10_000, 1600
"""Bases of a stretch, and how many of these of each genome a tokenizer is trained on."""
T = TypeVar("T")
SHOWN = 60
"""Bases of a window in the list of the worst."""


class Genomic(Task):
    """A task whose examples are windows of genomes."""

    rows_are = "windows"
    inputs = ("bases",)
    on_disk = ("bases",)
    settings: Any
    tokens: Tokens

    def __init__(self) -> None:
        self._kept: dict[Any, Any] = {}
        self.words: dict[str, str] = {}

    window: int = 0
    """Bases of a window; 0 as long as it is not known."""
    channels: tuple[str, ...] = ()
    """What a scan has scores of: strands, or targets."""
    label: str = ""
    """What the scores are of."""
    reads_one_strand: ClassVar[bool] = False
    """Does a scan read each strand by itself in any case?"""
    prevalence: Share = 0.5
    """The share of what is true in what was learned from."""
    prior: Share = 0.5
    """The share that the model takes for granted: the same, unless classes had weights."""
    described: ClassVar[tuple[str, ...]] = ("window",)
    """Attributes that a model's folder tells of, and `restore` sets."""

    def begin(self, settings: Any, folder: RunFolder) -> None:
        """Makes the tokenizer, unless the model has one."""
        assert isinstance(settings, DnaSettings)
        if not settings.model.startswith("scratch:") or settings.tokenizer is not None:
            return
        if not folder.tokenizer.exists():
            texts: Iterable[str] = ()
            if settings.tokens == "bpe":
                texts = (
                    bases for each in self.opened(settings) for bases in _learned(each, settings)
                )
            with folder.making(folder.tokenizer) as new:
                make_tokenizer(settings, texts, new)

    def look(self, settings: DnaSettings) -> None:
        """Raises for files that cannot be read, before a run begins."""
        self.settings = settings
        opened = self.opened(settings)
        for text in (*settings.validation_on, *settings.test_on):
            if text != NONE and not any(names(text, genome) for genome in opened):
                stretches(text, opened[0])  # says what there is
        for genome in opened:
            Division(genome, _held(genome, settings), 0)
            self.look_at_labels(self.labels_of(genome), genome)

    def look_at_labels(self, files: Sequence[str], genome: Genome) -> None:
        """The same for labels."""

    def opened(self, settings: DnaSettings) -> list[Genome]:
        """The genomes that are learned from."""
        given = self.genomes(settings.train)
        return open_genomes_of(settings, given) if given else []

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` makes, which is then kept for the same key."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def prepare(self, settings: Any, tokenizer: Any) -> None:
        """Opens the genomes that are learned from, if any, and divides them."""
        assert isinstance(settings, DnaSettings)
        self.settings, self.tokens = settings, Tokens(tokenizer, settings.length)
        self.pad = LongbirdCollator(tokenizer)
        opened = self.opened(settings)
        if not opened:
            return
        self.window = self.window_of(opened[0])
        self.divisions = [self._division(genome) for genome in opened]
        words: dict[str, list[str]] = {}
        for division in self.divisions:
            for part, text in division.words().items():
                if text:
                    words.setdefault(part, []).append(text)
        self.words = {part: "; ".join(texts) for part, texts in words.items()}

    def genomes(self, paths: Sequence[str]) -> Sequence[Labelled]:
        """Of the files that were given, those that are genomes, each with its labels."""
        return labelled(paths)

    def labels_of(self, genome: Genome) -> tuple[str, ...]:
        """The files with the labels of a genome that is learned from, or measured on."""
        of = self.once(
            ("files", *self.settings.train),
            lambda: {x.genome: x for x in self.genomes(self.settings.train)},
        )
        return of[genome.file].labels

    def window_of(self, genome: Genome) -> int:
        """Bases of a window."""
        return self.tokens.window(genome)

    def _division(self, genome: Genome) -> Division:
        return Division(genome, _held(genome, self.settings), self.window)

    def measured_on(
        self, genomes: Sequence[Genome], files: Sequence[str], on: Sequence[str]
    ) -> None:
        """Lets `examples` be those of other genomes, all of them to measure with.

        Args:
            genomes: The genomes.
            files: Their own, and those of their labels.
            on: What is meant of them, as `stretches` reads it; all by default.
        """
        self.settings = replace(self.settings, train=tuple(files))
        self.divisions = []
        for text in on:
            if not any(names(text, genome) for genome in genomes):
                stretches(text, genomes[0])  # says what there is
        for genome in genomes:
            own = [each for text in on if names(text, genome) for each in stretches(text, genome)]
            if own or not on:
                self.divisions.append(Division.measuring(genome, own))

    def source(self, settings: Any, say: Callable[[str], None]) -> Source:
        """The parts of the genomes."""
        return GenomeSource(self, settings, say)

    def rows(self, paths: Iterable[str | Path], settings: Any) -> Iterator[Any]:
        """The files themselves: they are not read by row."""
        return iter(paths)

    def examples(
        self, rows: Iterable[Any], settings: Any, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """The windows of all parts."""
        for division in self.divisions:
            of = f" of {Path(division.genome.file).name}" if len(self.divisions) > 1 else ""
            for each in self.windows(division, say):
                yield {**each, "place": f"{each['place']}{of}"}

    def windows(self, division: Division, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """The examples of a genome, each with its `place`, its `bases` and its `part`."""
        raise NotImplementedError

    def check_learned(self, number: int) -> None:
        """Raises if there are no examples to learn from."""
        if not number:
            raise InvalidValueError(
                f"nothing is left to learn from: the windows have {self.window:,} bases, and "
                "what is held out has a gap of one window on both sides. Shorten the windows with "
                "--length (of promoters with --upstream and --downstream), or hold out less with "
                "--validation-on"
            )

    def read(self, bases: str) -> dict[str, Any]:
        """The tokens of bases, and for each base the place of its token, 0 where there is none."""
        there = np.frombuffer(bases.encode(), np.uint8) != ord(NO_BASE)
        encoding = self.tokens.encode(bases.replace(NO_BASE, ""))
        token_of = np.zeros(len(bases), np.int64)
        token_of[there] = 1 + encoding.tokens_of_bases()  # the first is special
        return {"input_ids": self.tokens.inputs(encoding), "token_of": token_of}

    def pieces(self, bases: str, unit: int = 1) -> Iterator[slice]:
        """A window in pieces that the model can read on both strands: nearly always one."""

        def cut(start: int, end: int) -> Iterator[slice]:
            own = bases[start:end].replace(NO_BASE, "")
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

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """With their tokens."""
        for example in examples:
            bases = example["bases"]
            yield {**example, "text": bases[:SHOWN], "tokens": self.tokens_of(bases)}

    # ---- scanning

    def sweep(self, contig: Contig, step: int | None) -> Sweep:
        """How a scan goes over a sequence."""
        raise InvalidValueError(
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
            raise InvalidValueError(
                f"--track must be one of {', '.join(self.channels)}, received {wanted}"
            )
        if len(self.channels) > 1 and self.channels != ("+", "-"):
            raise InvalidValueError(
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
        known = {"prior": description.get("prevalence"), **description}  # older ones have none
        for name in self.described:
            setattr(self, name, known[name])


class GenomeSource:
    """Examples that say themselves which part of the genomes they are from."""

    def __init__(self, task: Genomic, settings: Any, say: Callable[[str], None]) -> None:
        self.task, self.settings, self.say = task, settings, say

    def examples_to_learn(self) -> Iterator[dict[str, Any]]:
        """Yield the examples of the training part."""
        return self._of("train", self.say)

    def divide(self) -> dict[str, Any]:
        """Return what each part has, in words."""
        return {"held out": None, "parts": dict(self.task.words)}

    def parts(self) -> Iterable[str]:
        """Return the parts of the genomes."""
        return self.task.words.keys()

    def examples(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the examples of a part."""
        return self._of(part, lambda _: None)

    def _of(self, part: str, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        rows = self.task.rows(self.settings.train, self.settings)
        examples = self.task.examples(rows, self.settings, say)
        return (each for each in examples if each["part"] == part)


def _held(genome: Genome, settings: DnaSettings) -> dict[str, Sequence[str]]:
    """What is held out of a genome, by part; others may have what this one does not."""
    tested = any(is_file_of(text, genome) for text in settings.test_on)
    chosen = settings.validation_on or (() if tested else usual(genome, settings.seed))
    held = {"validation": chosen, "test": settings.test_on}
    own = {part: [each for each in texts if names(each, genome)] for part, texts in held.items()}
    return {part: texts for part, texts in own.items() if texts}


def _learned(genome: Genome, settings: DnaSettings) -> Iterator[str]:
    """Stretches of what is learned from, all of it or a sample, for a tokenizer."""
    division = Division(genome, _held(genome, settings), 0)
    windows = list(division.windows("train", STRETCH))
    if len(windows) > SAMPLE:
        chosen = np.random.default_rng(settings.seed).choice(len(windows), SAMPLE, replace=False)
        windows = [windows[each] for each in sorted(chosen.tolist())]
    return (genome.bases(window) for window in windows)
