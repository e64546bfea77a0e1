"""Scan a whole genome with a model, or draw one region of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longbird.applications.dna.genome_files import open_genome_of, paths_of
from longbird.applications.dna.genomes import Genome, Interval
from longbird.applications.dna.genomes.letters import opposite
from longbird.applications.dna.runs import TrainedDna, load
from longbird.applications.dna.scanning.calls import CallSettings
from longbird.applications.dna.scanning.formats import (
    ONE_CHANNEL,
    Content,
    check_names,
)
from longbird.applications.dna.scanning.pictures import (
    Labels,
    Scores,
    draw,
    parse_region,
    picture_path,
    read_labels,
)
from longbird.applications.dna.scanning.resume import (
    check_new,
    resumable,
    scan_settings,
    score_genome,
    working_folder,
    write_file,
)
from longbird.applications.dna.scanning.track import (
    Bins,
    Track,
    around_origin,
    jobs_of,
    logit,
    shifted,
)
from longbird.applications.dna.settings import ScanSettings, ending_of
from longbird.applications.training.settings.definition import options_of
from longbird.errors import InvalidValueError
from longbird.files.paths import check_path
from longbird.files.writing import writing_file


def scan(
    path: str | Path,
    genome: str | Path,
    out: str | Path | Sequence[str | Path] | None = None,
    *,
    force: bool = False,
    plot: str | None = None,
    picture: str | Path | None = None,
    labels: str | Path | Sequence[str | Path] = (),
    say: Callable[[str], None] = print,
    **options: Any,
) -> None:
    """Score a whole genome and write files for genome browsers; repeating the call resumes it.

    Args:
        path: Folder of a run or of a model.
        genome: FASTA or GenBank file.
        out: One or several files: .bed and .gff3 have the stretches that reach the threshold,
            .bedgraph and .bw a number for each bin, .parquet all scores. Every file is written
            atomically at the end. Without any, only the region in `plot` is scored.
        force: Whether existing files are overwritten.
        plot: Region to draw, such as chr1:1-5000, or p:4801-200 across the origin of a circular
            sequence.
        picture: File of the picture: PNG, SVG or PDF.
        labels: Files with known features or signals, which are drawn above the scores.
        say: Receives lines about the progress.
        **options: Options of `ScanSettings`, such as `threshold=0.9`, and those of `DnaSettings`
            that determine how the genome is read, such as `circular`.
    """
    check_path(genome, "a genome")
    label_files = paths_of(labels, "a file of labels")
    names = options_of(ScanSettings)
    given = {name: options.pop(name) for name in names if options.get(name) is not None}
    settings = ScanSettings("dna-scan", (), **given)
    outs = [] if out is None else _output_files(out, (genome, *label_files))
    endings = [ending_of(each) for each in outs]
    _check_combination(outs, plot, picture, label_files)
    overwrite = force or (bool(outs) and working_folder(outs[0]).exists())
    for each in outs:  # `resumable` checks again, and knows which files this scan wrote itself
        check_new(each, overwrite)

    trained = load(path, **options)
    task = trained.task
    channel = _channel(trained, settings.track, endings)
    opened = open_genome_of(trained.settings, str(genome), label_files)
    for ending in endings:
        check_names(ending, opened.sequences)
    drawing = None
    if plot is not None:
        drawing = _Picture.prepare(plot, picture, outs[0] if outs else None, label_files, opened)
        check_new(drawing.file, overwrite)
    scanner = _Scanner(trained, opened, settings)
    if outs:
        _write_files(scanner, outs, channel, drawing, force, say)
    elif drawing is not None:
        drawing.draw(scanner.score_region, task, settings.threshold)
        say(f"the picture is {drawing.file}")


def _write_files(
    scanner: _Scanner,
    outs: Sequence[Path],
    channel: int | None,
    drawing: _Picture | None,
    force: bool,
    say: Callable[[str], None],
) -> None:
    """Score the whole genome, and write all files and the picture."""
    task, genome, settings = scanner.trained.task, scanner.genome, scanner.settings
    call_settings = CallSettings.of(task.label, settings)
    determining = scan_settings(
        scanner.trained.folder,
        Path(genome.file),
        genome,
        step=settings.step,
        both_strands=settings.both_strands,
        tokens_per_batch=scanner.tokens_per_batch,
    )
    files = list(outs) if drawing is None else [*outs, drawing.file]
    with resumable(files, determining, force, say) as folder:
        stored = folder / "scores.f32"
        score_genome(stored, scanner.sweeps, len(task.channels), genome, scanner.scores, say)
        bins = sum(sweep.first_bin(sweep.jobs) for sweep in scanner.sweeps)
        scores = np.memmap(stored, np.float32, "r", shape=(bins, len(task.channels)))
        track = Track(
            genome,
            scanner.sweeps,
            scores,
            task.channels,
            task.label,
            settings.threshold,
            scanner.shift,
        )
        scored, counts = track.count_scored(), list[int | None]()
        if scored:
            if drawing is not None:
                drawing.draw(track.region, task, settings.threshold)
                say(f"the picture is {drawing.file}")
            counts = [write_file(Content(track, call_settings, channel), file) for file in outs]
    if not scored:  # genome browsers do not open a bigWig file without numbers
        raise InvalidValueError(
            f"{genome.file} has nothing but N, which has no scores: nothing was written"
        )
    unscored = f"; {bins - scored:,} without a score, as all is N there" if scored < bins else ""
    for file, count in zip(outs, counts, strict=True):
        say(f"{file} has {_summary(count, call_settings, settings.threshold, scored)}{unscored}")


def _summary(count: int | None, settings: CallSettings, threshold: float, scored: int) -> str:
    if count is None:
        return f"the scores of {scored:,} bins"
    noun = "stretch" if count == 1 else "stretches"
    best = ", the highest bin of each," if settings.peaks else ""
    return f"{count:,} {noun}{best} that reach {threshold:g}, out of {scored:,} bins"


def _channel(trained: TrainedDna, track: str | None, endings: Sequence[str]) -> int | None:
    """Return the channel of the formats that have one number for each bin."""
    if any(ending in ONE_CHANNEL for ending in endings):
        return trained.task.one_track(track)
    if track is not None:
        others = f": .{endings[0]} has all tracks" if endings else "; a picture has all tracks"
        raise InvalidValueError(
            "`track` is for .bedgraph and .bw, which have one number for each bin" + others
        )
    return None


@dataclass
class _Scanner:
    """A model, and how it reads a genome."""

    trained: TrainedDna
    genome: Genome
    settings: ScanSettings

    def __post_init__(self) -> None:
        task, settings = self.trained.task, self.settings
        self.tokens_per_batch = settings.tokens_per_batch or self.trained.settings.tokens_per_batch
        self.sweeps = [task.sweep(each, settings.step) for each in self.genome.sequences.values()]
        self.shift: Any = 0.0
        if settings.prevalence is not None:
            self.shift = logit(settings.prevalence) - logit(task.prior)

    def scores(self, windows: list[str]) -> list[np.ndarray]:
        """Return the scores of windows, or their mean over both strands."""
        scores = self._probabilities(windows)
        task = self.trained.task
        if not self.settings.both_strands or task.reads_one_strand:
            return scores
        others = self._probabilities([opposite(each) for each in windows])
        return [(one + task.turned(two)) / 2 for one, two in zip(scores, others, strict=True)]

    @torch.no_grad()
    def _probabilities(self, windows: list[str]) -> list[np.ndarray]:
        """Run the model in batches of at most `tokens_per_batch` bases, or one window."""
        task, model = self.trained.task, self.trained.model
        scores: list[np.ndarray] = []
        batch: list[str] = []
        for window in windows:
            if batch and sum(map(len, batch)) + len(window) > self.tokens_per_batch:
                scores += task.scored(model, batch)
                batch = []
            batch.append(window)
        return scores + (task.scored(model, batch) if batch else [])

    def score_region(self, region: Interval) -> Bins:
        """Score one region, which does not cross the origin."""
        sweep = next(each for each in self.sweeps if each.contig.name == region.name)
        low, high = jobs_of(sweep, region)
        chunks = [
            sweep.run(self.scores, self.genome, first, min(first + sweep.at_once, high))
            for first in range(low, high, sweep.at_once)
        ]
        edges = sweep.edges(sweep.first_bin(low), sweep.first_bin(high))
        bins = Bins(*edges, shifted(np.concatenate(chunks), self.shift))
        return bins.overlapping(region)


@dataclass
class _Picture:
    """A picture of one region, which is drawn once its scores are known."""

    file: Path
    region: Interval
    genome: Genome
    labels: list[Labels]

    @classmethod
    def prepare(
        cls,
        plot: str,
        picture: str | Path | None,
        out: Path | None,
        label_files: Sequence[str],
        genome: Genome,
    ) -> _Picture:
        """Check everything that a picture needs, since a scan may take hours."""
        region = parse_region(str(plot), genome)
        file = picture_path(None if picture is None else Path(picture), out, region)
        labels = [read_labels(Path(each), genome, region) for each in label_files]
        return cls(file, region, genome, labels)

    def draw(self, read: Callable[[Interval], Bins], task: Any, threshold: float) -> None:
        """Draw the region with the bins that `read` returns for its pieces."""
        bins = around_origin(self.region, self.genome, read)
        scores = Scores(*bins, task.channels, task.label, threshold)
        length = self.genome.sequences[self.region.name].length
        with writing_file(self.file) as new:
            draw(self.region, length, scores, self.labels, new)


def _check_combination(
    outs: Sequence[Path], plot: str | None, picture: str | Path | None, labels: Sequence[str]
) -> None:
    if plot is not None:
        return
    if not outs:
        raise InvalidValueError(
            "there is nothing to do: set `out` to a file, or `plot` to a region to draw"
        )
    if picture is not None or labels:
        raise InvalidValueError(
            f"`{'labels' if picture is None else 'picture'}` requires `plot`, the region to draw, "
            "such as chr1:1-5000"
        )


def _output_files(
    out: str | Path | Sequence[str | Path], inputs: Sequence[str | Path]
) -> list[Path]:
    """Return the output files with links followed; raise if one is an input or occurs twice."""
    paths = map(Path, paths_of(out, "a file to write"))
    outs = [each.resolve() if each.is_symlink() else each for each in paths]
    for each in outs:
        for file in inputs:
            if each.exists() and each.samefile(file):
                raise InvalidValueError(
                    f"`out` is the input file {file}: choose another file to write"
                )
    if len({each.absolute() for each in outs}) < len(outs):
        raise InvalidValueError(f"`out` has a file twice: {', '.join(map(str, outs))}")
    return outs
