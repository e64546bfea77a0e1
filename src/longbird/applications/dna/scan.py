"""A model over whole genomes: in order, and going on where it stopped."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from longbird.applications.dna.formats import PROMOTER, WRITERS, check_names, ending_of
from longbird.applications.dna.genomes import Genome, Interval
from longbird.applications.dna.genomes.letters import opposite
from longbird.applications.dna.genomic import DESCRIPTION
from longbird.applications.dna.labelled import paths_of
from longbird.applications.dna.opening import open_genome_of
from longbird.applications.dna.pictures import Known, Scores, draw, known, named, region_of
from longbird.applications.dna.runs import Trained, load
from longbird.applications.dna.sweeps import Sweep
from longbird.applications.training.folder import naming, write_text
from longbird.applications.training.starting import READ
from longbird.errors import ExistingFileError, InvalidTypeError, InvalidValueError
from longbird.files.digest import sha256_of
from longbird.files.paths import check_path
from longbird.files.writing import locked, writing_file

Bins = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Starts, ends and scores, [bins, channels]."""
EVERY = 30.0
"""Seconds between lines where there is no terminal."""


@dataclass(frozen=True)
class Track:
    """Scores along a genome, bin by bin, as they lie on the disk.

    Attributes:
        genome: The genome.
        sweeps: Of its sequences, in order.
        scores: float32 [bins of all sequences, channels].
        shift: Of the logits of the scores; a number, or [channels].
        channels: Their names: "+" and "-" where these are strands.
        label: What the scores are of.
        threshold: From which score on there is one.
    """

    genome: Genome
    sweeps: Sequence[Sweep]
    scores: np.ndarray
    channels: tuple[str, ...]
    label: str
    threshold: float
    shift: Any = 0.0

    def blocks(self, size: int = 2**16) -> Iterator[tuple[Sweep, np.ndarray, np.ndarray, Any]]:
        """Bins of each sequence, some at a time: its sweep, their starts, ends and scores."""
        done = 0
        for sweep in self.sweeps:
            bins = sweep.first_bin(sweep.jobs)
            for first in range(0, bins, size):
                last = min(first + size, bins)
                starts, ends = sweep.edges(first, last)
                scores = np.array(self.scores[done + first : done + last])
                yield sweep, starts, ends, _shifted(scores, self.shift)
            done += bins

    def scored(self) -> int:
        """How many bins have a score."""
        return sum(int((~np.isnan(scores)).any(1).sum()) for *_, scores in self.blocks())

    def stretch(self, region: Interval) -> Bins:
        """Starts, ends and scores of the bins that a region overlaps."""
        done = 0
        for sweep in self.sweeps:
            if sweep.contig.name == region.name:
                low, high = _jobs(sweep, region)
                first, last = sweep.first_bin(low), sweep.first_bin(high)
                scores = np.array(self.scores[done + first : done + last])
                return _within(region, *sweep.edges(first, last), _shifted(scores, self.shift))
            done += sweep.first_bin(sweep.jobs)
        raise InvalidValueError(f"{self.genome.file} has no sequence {region.name}")


def _within(region: Interval, starts: np.ndarray, ends: np.ndarray, scores: np.ndarray) -> Bins:
    there = (ends > region.start) & (starts < region.end)
    return starts[there], ends[there], scores[there]


def _around(region: Interval, genome: Genome, bins_of: Callable[[Interval], Bins]) -> Bins:
    """The bins of a region; behind the origin of a circle, they go on beyond its length."""
    pieces = genome.pieces(region)
    turns = (0, genome.sequences[region.name].length)
    found = [
        (starts + turn, ends + turn, scores)
        for turn, (starts, ends, scores) in zip(turns, map(bins_of, pieces), strict=False)
    ]
    starts, ends, scores = (np.concatenate(each) for each in zip(*found, strict=True))
    return starts, ends, scores


def _jobs(sweep: Sweep, region: Interval) -> tuple[int, int]:
    """The jobs that have the bins of a region, as many as are done at once."""

    def start(job: int) -> int:
        first = sweep.first_bin(job)
        return int(sweep.edges(first, first + 1)[0][0])

    low = max(0, bisect_right(range(sweep.jobs), region.start, key=start) - 1)
    high = bisect_left(range(sweep.jobs), region.end, key=start)
    size = sweep.at_once
    return low // size * size, min(-(-high // size) * size, sweep.jobs)


def scan(
    path: str | Path,
    genome: str | Path,
    out: str | Path | Sequence[str | Path] | None = None,
    *,
    step: int | None = None,
    both_strands: bool = False,
    threshold: float = 0.5,
    prevalence: float | None = None,
    track: str | None = None,
    tokens_per_batch: int | None = None,
    force: bool = False,
    plot: str | None = None,
    picture: str | Path | None = None,
    labels: str | Path | Sequence[str | Path] = (),
    say: Callable[[str], None] = print,
    **options: Any,
) -> None:
    """Scores of a whole genome, in a file for genome browsers; the same call again goes on.

    Args:
        path: The folder of a run, or of a model.
        genome: FASTA or GenBank.
        out: The file, or several: .bed and .gff3 have what reaches the threshold, .bedgraph and
            .bw a number for each bin, .parquet all of them. Each appears whole, at the end.
            Without any, only what is drawn is scored.
        step: Promoters: bases between windows; an odd number, or the windows of a sequence and
            of its reverse complement may be at other places.
        both_strands: Read every window on both strands, so that the scores of a sequence and of
            its reverse complement are the same, where bins fill the sequence. Those of promoters
            are the same in any case.
        threshold: From which score on there is one.
        prevalence: The share that is expected in this genome: scores are shifted from that
            which the model has from the windows that it learned from, and their weights.
        track: Of the scores, the one that .bedgraph and .bw have.
        tokens_per_batch: Tokens that are read at once.
        force: Overwrite files?
        plot: A stretch to draw, such as chr1:1-5000, or p:4801-200 over the origin of a circle.
        picture: Where to: PNG, SVG or PDF by its ending.
        labels: Files with what is known of the genome, to be drawn above the scores.
        say: Is told what is going on.
        **options: Fields of `DnaSettings` that say how to read the genome.
    """
    check_path(genome, "a genome")
    labels = paths_of(labels, "a file of labels")
    _check_numbers(threshold, prevalence, step, tokens_per_batch)
    outs = [] if out is None else _files_to_write(out, (genome, *labels))
    if not outs and plot is None:
        raise InvalidValueError(
            "there is nothing to do: give a file with --out, or a stretch with --plot"
        )
    if plot is None and (picture is not None or labels):
        option = "--picture" if picture is not None else "--labels"
        raise InvalidValueError(
            f"{option} is for --plot: give a stretch to draw, such as chr1:1-5000"
        )
    endings = [ending_of(each) for each in outs]
    begun = bool(outs) and _folder(outs[0]).exists()  # then `_working` knows what was there
    for each in outs:
        _check_new(each, force or begun)
    trained = load(path, **options)
    task = trained.task
    one = not {"bedgraph", "bw"}.isdisjoint(endings)
    if track is not None and not one:
        raise InvalidValueError(
            "--track is for .bedgraph and .bw, which have one number for each place"
            + (f": .{endings[0]} has all tracks" if endings else "; a picture has all tracks")
        )
    channel = task.one_track(track) if one else None
    opened = open_genome_of(trained.settings, str(genome), labels)
    for ending in endings:
        check_names(ending, opened.sequences)
    region, drawn, shown = None, Path(), list[Known]()
    if plot is not None:
        region = region_of(str(plot), opened)
        beside = outs[0] if outs else None
        drawn = named(None if picture is None else Path(picture), beside, region)
        _check_new(drawn, force or begun)
        # Now, since labels that do not fit must not be found after hours.
        shown = [known(Path(each), opened, region) for each in labels]
    sweeps = [task.sweep(contig, step) for contig in opened.sequences.values()]
    budget = tokens_per_batch or trained.settings.tokens_per_batch
    run = _scores(trained, budget, both_strands)
    shift: Any = 0.0
    if prevalence is not None:
        shift = _logit(np.array(prevalence)) - _logit(np.array(task.prior))

    def depict(region: Interval, bins_of: Callable[[Interval], Bins]) -> None:
        bins = _around(region, opened, bins_of)
        own = Scores(*bins, task.channels, task.label, threshold)
        with writing_file(drawn) as new:
            draw(region, opened.sequences[region.name].length, own, shown, new)
        say(f"the picture is {drawn}")

    if not outs:
        assert region is not None
        sweep = next(each for each in sweeps if each.contig.name == region.name)

        def read(piece: Interval) -> Bins:
            low, high = _jobs(sweep, piece)
            chunks = [
                sweep.run(run, opened, first, min(first + sweep.at_once, high))
                for first in range(low, high, sweep.at_once)
            ]
            edges = sweep.edges(sweep.first_bin(low), sweep.first_bin(high))
            return _within(piece, *edges, _shifted(np.concatenate(chunks), shift))

        depict(region, read)
        return
    asked = {
        "longbird": version("longbird"),
        "model": _fingerprint(trained.folder),
        "genome": sha256_of(Path(genome)),
        "circular": [each.name for each in opened.sequences.values() if each.circular],
        "step": step,
        "both strands": both_strands,
        "tokens per batch": budget,
    }
    made = outs if region is None else [*outs, drawn]
    with _working(made, asked, force, say) as folder:
        raw = folder / "scores.f32"
        _sweep(raw, sweeps, len(task.channels), opened, run, say)
        bins = sum(sweep.first_bin(sweep.jobs) for sweep in sweeps)
        scores = np.memmap(raw, np.float32, "r", shape=(bins, len(task.channels)))
        whole = Track(opened, sweeps, scores, task.channels, task.label, threshold, shift)
        scored, places = whole.scored(), list[int | None]()
        if scored and region is not None:
            depict(region, whole.stretch)
        if scored:
            places = [
                _written(whole, file, ending, channel)
                for file, ending in zip(outs, endings, strict=True)
            ]
    if not scored:  # a bigWig file without numbers is none that browsers open
        raise InvalidValueError(
            f"{genome} has nothing but N, which has no scores: nothing was written"
        )
    unscored = f"; {bins - scored:,} without a score, as all is N there" if scored < bins else ""
    best = ", the highest bin of each," if task.label == PROMOTER else ""
    for file, number in zip(outs, places, strict=True):
        what = f"the scores of {scored:,} bins"
        if number is not None:
            some = "stretch" if number == 1 else "stretches"
            what = f"{number:,} {some}{best} that reach {threshold:g}, out of {scored:,} bins"
        say(f"{file} has {what}{unscored}")


def _check_numbers(
    threshold: float, prevalence: float | None, step: int | None, tokens_per_batch: int | None
) -> None:
    for name, share in (("threshold", threshold), ("prevalence", prevalence)):
        if share is None:
            continue
        if not isinstance(share, (int, float)):
            raise InvalidTypeError(f"{name} must be a number, received {share!r:.80}")
        if not 0 < share < 1:
            raise InvalidValueError(f"{name} must be between 0 and 1, received {share}")
    for name, number in (("step", step), ("tokens_per_batch", tokens_per_batch)):
        if number is None:
            continue
        if type(number) is not int:
            raise InvalidTypeError(f"{name} must be a whole number, received {number!r:.80}")
        if number < 1:
            raise InvalidValueError(f"{name} must be at least 1, received {number}")


def _files_to_write(
    out: str | Path | Sequence[str | Path], read: Sequence[str | Path]
) -> list[Path]:
    """The files that were named, behind links; raises if one is read, or was named twice."""
    every = map(Path, paths_of(out, "a file to write"))
    outs = [each.resolve() if each.is_symlink() else each for each in every]
    for each in outs:
        for file in read:
            if each.exists() and each.samefile(file):
                raise InvalidValueError(f"--out {each} is {file}, which is read: name another")
    if len({each.absolute() for each in outs}) < len(outs):
        raise InvalidValueError(f"--out has a file twice: {', '.join(map(str, outs))}")
    return outs


def _written(track: Track, file: Path, ending: str, channel: int | None) -> int | None:
    """Writes a file, which appears whole; returns how many stretches it has, if it has these."""
    new = file.with_name(f".{file.name}.written.{ending}")
    try:
        with naming(file):
            places = WRITERS[ending](track, new, channel)
            with new.open("rb") as written:
                os.fsync(written.fileno())
            os.replace(new, file)
    except Exception:
        new.unlink(missing_ok=True)
        raise
    return places


def _check_new(file: Path | None, force: bool) -> None:
    if file is None:
        return
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder; expected a file to write")
    if file.exists() and not force:
        raise ExistingFileError(
            f"{file} exists already: name another, or overwrite it with --force"
        )


def _logit(share: np.ndarray) -> np.ndarray:
    return np.log(share) - np.log1p(-share)


def _shifted(scores: np.ndarray, shift: Any) -> np.ndarray:
    if not np.any(shift):
        return scores
    inside = np.clip(scores.astype(np.float64), 1e-9, 1 - 1e-9)
    return (1 / (1 + np.exp(-_logit(inside) - shift))).astype(np.float32)


@torch.no_grad()
def _probabilities(trained: Trained, windows: list[str], budget: int) -> list[np.ndarray]:
    """What the model says of windows, in batches of about that many tokens."""
    found: list[np.ndarray] = []
    waiting: list[str] = []
    for window in windows:
        if waiting and sum(map(len, waiting)) + len(window) > budget:
            found += trained.task.scored(trained.model, waiting)
            waiting = []
        waiting.append(window)
    return found + (trained.task.scored(trained.model, waiting) if waiting else [])


def _scores(trained: Trained, budget: int, both: bool) -> Callable[[list[str]], list[np.ndarray]]:
    """What the model says of windows: as they are, or the mean over both strands."""

    def run(windows: list[str]) -> list[np.ndarray]:
        found = _probabilities(trained, windows, budget)
        if not both or trained.task.reads_one_strand:
            return found
        other = _probabilities(trained, [opposite(each) for each in windows], budget)
        turned = [trained.task.turned(each) for each in other]
        return [(one + two) / 2 for one, two in zip(found, turned, strict=True)]

    return run


def _sweep(
    raw: Path,
    sweeps: Sequence[Sweep],
    channels: int,
    genome: Genome,
    run: Callable[[list[str]], list[np.ndarray]],
    say: Callable[[str], None],
) -> None:
    """Appends the scores of every chunk that is not in the file yet."""
    row = 4 * channels
    there = raw.stat().st_size if raw.exists() else 0
    total = sum(sweep.contig.length for sweep in sweeps)
    bar = tqdm(total=total, unit="bp", unit_scale=True) if sys.stderr.isatty() else None
    started, told, written, bases = time.perf_counter(), 0.0, 0, 0
    skipped = 0
    with naming(raw), open(raw, "ab") as file:
        for sweep in sweeps:
            for first in range(0, sweep.jobs, sweep.at_once):
                last = min(first + sweep.at_once, sweep.jobs)
                low, high = sweep.first_bin(first), sweep.first_bin(last)
                starts, ends = sweep.edges(low, high)
                size = (high - low) * row
                if written + size <= there:
                    skipped += int(ends[-1] - starts[0])
                else:
                    if file.tell() != written:  # a kill may have left a part of a chunk
                        file.truncate(written)
                        file.seek(written)
                    file.write(run_chunk(sweep, run, genome, first, last))
                    file.flush()
                written += size
                bases += int(ends[-1] - starts[0])
                spent = time.perf_counter() - started
                if bar is not None:
                    bar.update(bases - bar.n)
                elif spent - told > EVERY and bases > skipped:
                    told = spent
                    left = spent / (bases - skipped) * (total - bases)
                    say(f"{bases:,} of {total:,} bases, {left:,.0f} s left")
        file.truncate(written)
        os.fsync(file.fileno())
    if bar is not None:
        bar.close()


def run_chunk(sweep: Sweep, run: Any, genome: Genome, first: int, last: int) -> bytes:
    """The scores of some jobs, as they are written."""
    return np.ascontiguousarray(sweep.run(run, genome, first, last), np.float32).tobytes()


def _folder(out: Path) -> Path:
    """Of a scan that is under way, beside its file."""
    return out.parent / f".{out.name}.scan"


@contextmanager
def _working(
    made: Sequence[Path], asked: dict[str, Any], force: bool, say: Callable[[str], None]
) -> Generator[Path, None, None]:
    """The folder of a scan that is under way; it goes when its file is there.

    Args:
        made: The files that the scan makes, the scores first. Which of them were not there when
            it began is noted: it made these itself, before a kill.
        asked: All that decides the scores.
        force: May files that were there be overwritten?
        say: Is told if it goes on.

    Raises:
        FileExistsError: Another process is at it, or a file was there when the scan began.
    """
    out = made[0]
    folder = _folder(out)
    with naming(folder):
        for file in (folder / "scan.json", *made):
            file.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder, out):
        what, new = folder / "scan.json", folder / "new.json"
        same = what.is_file() and what.read_text("utf-8") == json.dumps(asked, indent=1)
        ours: list[str] = json.loads(new.read_text("utf-8")) if same else []
        for file in made:
            if str(file.absolute()) not in ours:
                _check_new(file, force)
        if same:
            say(f"going on with the scan in {folder}")
        else:
            if what.is_file():
                before: dict[str, Any] = json.loads(what.read_text("utf-8"))
                other = [name for name in asked if before.get(name) != asked[name]]
                say(f"the scan in {folder} had another {' and '.join(other)}: beginning again")
            what.unlink(missing_ok=True)
            (folder / "scores.f32").unlink(missing_ok=True)
        ours += [str(each.absolute()) for each in made if not each.exists()]
        write_text(new, json.dumps(ours))
        write_text(what, json.dumps(asked, indent=1))
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


def _fingerprint(folder: Path) -> dict[str, str]:
    return {
        file.name: sha256_of(file)
        for file in sorted(folder.iterdir())
        if file.is_file() and (READ.fullmatch(file.name) or file.name == DESCRIPTION)
    }
