"""The base of tasks on genomes, whose examples are windows with a position."""

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
from longbird.applications.dna.tokens import WindowTokenizer, make_tokenizer
from longbird.applications.training.data.file_source import ExampleSource
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.trained_model import DNA as DESCRIPTION
from longbird.applications.training.tasks.task import Task
from longbird.errors import InvalidValueError
from longbird.models.collator import LongbirdCollator

STRETCH, SAMPLE = 10_000, 1600
"""Number of bases of a stretch, and of stretches per genome that a tokenizer is trained on."""
T = TypeVar("T")
SHOWN = 60
"""Maximum number of bases shown of a window in the list of the worst."""


class Genomic(Task):
    """A task whose examples are windows of genomes."""

    rows_are = "windows"
    inputs = ("bases",)
    on_disk = ("bases",)
    settings: Any
    tokens: WindowTokenizer

    def __init__(self) -> None:
        self._kept: dict[Any, Any] = {}
        self.words: dict[str, str] = {}

    window: int = 0
    """Number of bases of a window; 0 until it is known."""
    channels: tuple[str, ...] = ()
    """Names of the scores of a scan: strands, or targets."""
    label: str = ""
    """What the scores describe, such as "coding"."""
    reads_one_strand: ClassVar[bool] = False
    """Whether a scan always reads both strands separately."""
    prevalence: Share = 0.5
    """Share of positives in the training part."""
    prior: Share = 0.5
    """Share of positives that the model has learned: the same, unless classes had weights."""
    described: ClassVar[tuple[str, ...]] = ("window",)
    """Attributes that are stored in the folder of a model, and set by `restore`."""

    def begin(self, settings: Any, folder: RunFolder) -> None:
        """Make the tokenizer, unless the model has one."""
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
        """Raise an error for files that cannot be read, before a run begins."""
        self.settings = settings
        opened = self.opened(settings)
        for text in (*settings.validation_on, *settings.test_on):
            if text != NONE and not any(names(text, genome) for genome in opened):
                stretches(text, opened[0])  # raises an error that lists what there is
        for genome in opened:
            Division(genome, _held(genome, settings), 0)
            self.look_at_labels(self.labels_of(genome), genome)

    def look_at_labels(self, files: Sequence[str], genome: Genome) -> None:
        """Raise an error for labels that cannot be read."""

    def opened(self, settings: DnaSettings) -> list[Genome]:
        """Return the training genomes."""
        given = self.genomes(settings.train)
        return open_genomes_of(settings, given) if given else []

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """Return the result of `make`, which is called once for each key."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def prepare(self, settings: Any, tokenizer: Any) -> None:
        """Open and divide the training genomes, if there are any."""
        assert isinstance(settings, DnaSettings)
        self.settings, self.tokens = settings, WindowTokenizer(tokenizer, settings.length)
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
        """Return the genomes among the given files, each with its labels."""
        return labelled(paths)

    def labels_of(self, genome: Genome) -> tuple[str, ...]:
        """Return the label files of a genome."""
        of = self.once(
            ("files", *self.settings.train),
            lambda: {x.genome: x for x in self.genomes(self.settings.train)},
        )
        return of[genome.file].labels

    def window_of(self, genome: Genome) -> int:
        """Return the number of bases of a window."""
        return self.tokens.window(genome)

    def _division(self, genome: Genome) -> Division:
        return Division(genome, _held(genome, self.settings), self.window)

    def measured_on(
        self, genomes: Sequence[Genome], files: Sequence[str], on: Sequence[str]
    ) -> None:
        """Make other genomes, or the regions of them that `on` names, the source of examples."""
        self.settings = replace(self.settings, train=tuple(files))
        self.divisions = []
        for text in on:
            if not any(names(text, genome) for genome in genomes):
                stretches(text, genomes[0])  # raises an error that lists what there is
        for genome in genomes:
            own = [each for text in on if names(text, genome) for each in stretches(text, genome)]
            if own or not on:
                self.divisions.append(Division.measuring(genome, own))

    def source(self, settings: Any, say: Callable[[str], None]) -> ExampleSource:
        """Return the source of examples: the parts of the genomes."""
        return GenomeSource(self, settings, say)

    def examples(
        self, rows: Iterable[Any], settings: Any, say: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """Yield the windows of all parts; `rows` is not used."""
        for division in self.divisions:
            of = f" of {Path(division.genome.file).name}" if len(self.divisions) > 1 else ""
            for each in self.windows(division, say):
                yield {**each, "place": f"{each['place']}{of}"}

    def windows(self, division: Division, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        """Yield the examples of a genome, each with its `place`, `bases` and `part`."""
        raise NotImplementedError

    def check_learned(self, number: int) -> None:
        """Raise an error if there are no training examples."""
        if not number:
            raise InvalidValueError(
                f"nothing is left for training: the windows have {self.window:,} bases, and "
                "held-out stretches have a gap of one window on both sides. Shorten the windows "
                "with `length` (for promoters with `upstream` and `downstream`), or hold out less "
                "with `validation_on`"
            )

    def read(self, bases: str) -> dict[str, Any]:
        """Return the tokens of bases, and the index of each base's token, 0 if it has none."""
        there = np.frombuffer(bases.encode(), np.uint8) != ord(NO_BASE)
        encoding = self.tokens.encode(bases.replace(NO_BASE, ""))
        token_of = np.zeros(len(bases), np.int64)
        token_of[there] = 1 + encoding.tokens_of_bases()  # the first is special
        return {"input_ids": self.tokens.inputs(encoding), "token_of": token_of}

    def pieces(self, bases: str, unit: int = 1) -> Iterator[slice]:
        """Yield the pieces of a window that the model can read on both strands, usually one."""

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
        """Return the number of tokens of a window, on the strand that has more."""
        return [features["tokens"]]

    def tokens_of(self, bases: str) -> int:
        """Return the number of tokens of bases, on the strand that has more."""
        if self.tokens.dna.k == 1:
            return len(bases) + 2
        return 2 + max(len(self.tokens.encode(each)) for each in (bases, opposite(bases)))

    def features(
        self, examples: list[dict[str, Any]], tokenizer: Any, length: int, training: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Yield the examples with their number of tokens."""
        for example in examples:
            bases = example["bases"]
            yield {**example, "text": bases[:SHOWN], "tokens": self.tokens_of(bases)}

    # ---- scanning

    def sweep(self, contig: Contig, step: int | None) -> Sweep:
        """Return how a scan reads a sequence."""
        raise InvalidValueError(
            "this model was pretrained without labels, so there is nothing to scan for: train it "
            "with `longbird dna finetune`"
        )

    def scored(self, model: Any, windows: list[str]) -> list[np.ndarray]:
        """Return the scores of windows, between 0 and 1."""
        raise NotImplementedError

    def turned(self, scores: np.ndarray) -> np.ndarray:
        """Convert scores of the reverse complement of a window to scores of the window."""
        raise NotImplementedError

    def one_track(self, wanted: str | None) -> int | None:
        """Return the index of a channel; None for the highest score of both strands.

        Raises:
            ValueError: No channel has this name, or none was named and there are several.
        """
        if wanted in self.channels:
            return self.channels.index(wanted)
        if wanted is not None:
            raise InvalidValueError(
                f"`track` must be one of {', '.join(self.channels)}, received {wanted}"
            )
        if len(self.channels) > 1 and self.channels != ("+", "-"):
            raise InvalidValueError(
                "this file has one number for each place, and the model has scores of "
                f"{', '.join(self.channels)}: choose one with `track`, or write .parquet"
            )
        return None if len(self.channels) > 1 else 0

    # ---- the folder of a model

    def description(self) -> dict[str, Any]:
        """Return the description of the task that is stored with a model."""
        own = {name: getattr(self, name) for name in self.described}
        return {"task": self.name, "length": self.settings.length, **own}

    def write_beside(self, model: Path) -> None:
        """Write the description."""
        (model / DESCRIPTION).write_text(json.dumps(self.description(), indent=1), "utf-8")

    def restore(self, description: Mapping[str, Any]) -> None:
        """Set the attributes that a description has."""
        known = {"prior": description.get("prevalence"), **description}  # missing in older models
        for name in self.described:
            setattr(self, name, known[name])


class GenomeSource:
    """Examples of genomes, each of which has its part."""

    def __init__(self, task: Genomic, settings: Any, say: Callable[[str], None]) -> None:
        self.task, self.settings, self.say = task, settings, say

    def examples_to_learn(self) -> Iterator[dict[str, Any]]:
        """Yield the examples of the training part."""
        return self._of("train", self.say)

    def divide(self) -> dict[str, Any]:
        """Return a description of each part."""
        return {"held out": None, "parts": dict(self.task.words)}

    def parts(self) -> Iterable[str]:
        """Return the parts of the genomes."""
        return self.task.words.keys()

    def examples(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the examples of a part."""
        return self._of(part, lambda _: None)

    def _of(self, part: str, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
        examples = self.task.examples((), self.settings, say)
        return (each for each in examples if each["part"] == part)


def _held(genome: Genome, settings: DnaSettings) -> dict[str, Sequence[str]]:
    """Return what is held out of a genome, by part, ignoring names of other genomes."""
    tested = any(is_file_of(text, genome) for text in settings.test_on)
    chosen = settings.validation_on or (() if tested else usual(genome, settings.seed))
    held = {"validation": chosen, "test": settings.test_on}
    own = {part: [each for each in texts if names(each, genome)] for part, texts in held.items()}
    return {part: texts for part, texts in own.items() if texts}


def _learned(genome: Genome, settings: DnaSettings) -> Iterator[str]:
    """Yield training stretches of a genome, or a sample of them, for a tokenizer."""
    division = Division(genome, _held(genome, settings), 0)
    windows = list(division.windows("train", STRETCH))
    if len(windows) > SAMPLE:
        chosen = np.random.default_rng(settings.seed).choice(len(windows), SAMPLE, replace=False)
        windows = [windows[each] for each in sorted(chosen.tolist())]
    return (genome.bases(window) for window in windows)
