"""The working folder of a scan, from which the same command resumes."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from longbird.applications.dna.genomes import Genome
from longbird.applications.dna.genomic import DESCRIPTION
from longbird.applications.dna.scanning.formats import WRITERS, Content
from longbird.applications.dna.settings import ending_of
from longbird.applications.dna.sweeps import Scores, Sweep
from longbird.applications.training.engine.run_folder import naming, write_text
from longbird.applications.training.initialisation.starting_model import READ
from longbird.errors import ExistingFileError
from longbird.files.digest import sha256_of
from longbird.files.writing import locked

REPORT_SECONDS = 30.0
"""Time between progress lines where there is no terminal."""


def working_folder(out: Path) -> Path:
    """Return the folder of an unfinished scan, beside its first file."""
    return out.parent / f".{out.name}.scan"


@contextmanager
def resumable(
    files: Sequence[Path], settings: dict[str, Any], force: bool, report: Callable[[str], None]
) -> Generator[Path, None, None]:
    """Open the working folder of a scan, which is deleted at the end.

    Args:
        files: The files that the scan writes, the scores first. Those that did not exist when it
            began are recorded: it wrote these itself before it was interrupted.
        settings: Everything that determines the scores.
        force: Whether existing files are overwritten.
        report: Receives a line if the scan resumes.

    Raises:
        ExistingFileError: Another process is working in the folder, or a file existed already.
    """
    folder = working_folder(files[0])
    with naming(folder):
        for file in (folder / "scan.json", *files):
            file.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder, files[0]):
        settings_file, own_files_file = folder / "scan.json", folder / "new.json"
        text = json.dumps(settings, indent=1)
        same = settings_file.is_file() and settings_file.read_text("utf-8") == text
        own_files: list[str] = json.loads(own_files_file.read_text("utf-8")) if same else []
        for file in files:
            if str(file.absolute()) not in own_files:
                check_new(file, force)
        if same:
            report(f"resuming the scan in {folder}")
        else:
            if settings_file.is_file():
                before: dict[str, Any] = json.loads(settings_file.read_text("utf-8"))
                changed = [name for name in settings if before.get(name) != settings[name]]
                report(f"the scan in {folder} had another {' and '.join(changed)}: starting again")
            settings_file.unlink(missing_ok=True)
            (folder / "scores.f32").unlink(missing_ok=True)
        own_files += [str(each.absolute()) for each in files if not each.exists()]
        write_text(own_files_file, json.dumps(own_files))
        write_text(settings_file, text)
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


def scan_settings(model: Path, genome: Path, opened: Genome, **options: Any) -> dict[str, Any]:
    """Return everything that determines the scores of a scan."""
    return {
        "longbird": version("longbird"),
        "model": {
            file.name: sha256_of(file)
            for file in sorted(model.iterdir())
            if file.is_file() and (READ.fullmatch(file.name) or file.name == DESCRIPTION)
        },
        "genome": sha256_of(genome),
        "circular": [each.name for each in opened.sequences.values() if each.circular],
        **{name.replace("_", " "): value for name, value in options.items()},
    }


@dataclass
class ScanProgress:
    """Progress of a scan in bases: a bar in a terminal, else a line now and then."""

    total: int
    report: Callable[[str], None]

    def __post_init__(self) -> None:
        self.bar = (
            tqdm(total=self.total, unit="bp", unit_scale=True) if sys.stderr.isatty() else None
        )
        self.started, self.reported = time.perf_counter(), 0.0
        self.done = self.skipped = 0

    def advance(self, bases: int, *, skipped: bool) -> None:
        """Count bases that were scored, or that an earlier scan had scored."""
        self.done += bases
        self.skipped += bases * skipped
        spent = time.perf_counter() - self.started
        if self.bar is not None:
            self.bar.update(bases)
        elif spent - self.reported > REPORT_SECONDS and self.done > self.skipped:
            self.reported = spent
            left = spent / (self.done - self.skipped) * (self.total - self.done)
            self.report(f"{self.done:,} of {self.total:,} bases, {left:,.0f} s left")

    def close(self) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()


def score_genome(
    file: Path,
    sweeps: Sequence[Sweep],
    channels: int,
    genome: Genome,
    scores: Scores,
    report: Callable[[str], None],
) -> None:
    """Append the scores of every chunk that is not in the file yet."""
    present = file.stat().st_size if file.exists() else 0
    progress = ScanProgress(sum(sweep.contig.length for sweep in sweeps), report)
    written = 0
    with naming(file), open(file, "ab") as opened:
        for sweep in sweeps:
            for first in range(0, sweep.jobs, sweep.at_once):
                last = min(first + sweep.at_once, sweep.jobs)
                low, high = sweep.first_bin(first), sweep.first_bin(last)
                starts, ends = sweep.edges(low, high)
                size = (high - low) * 4 * channels
                skipped = written + size <= present
                if not skipped:
                    if opened.tell() != written:  # an interruption may leave a part of a chunk
                        opened.truncate(written)
                        opened.seek(written)
                    opened.write(score_chunk(sweep, scores, genome, first, last))
                    opened.flush()
                written += size
                progress.advance(int(ends[-1] - starts[0]), skipped=skipped)
        opened.truncate(written)
        os.fsync(opened.fileno())
    progress.close()


def score_chunk(sweep: Sweep, scores: Scores, genome: Genome, first: int, last: int) -> bytes:
    """Return the scores of some jobs as they are stored."""
    return np.ascontiguousarray(sweep.run(scores, genome, first, last), np.float32).tobytes()


def write_file(content: Content, file: Path) -> int | None:
    """Write a file atomically; return the number of calls if its format has calls."""
    ending = ending_of(file)
    new = file.with_name(f".{file.name}.written.{ending}")
    try:
        with naming(file):
            count = WRITERS[ending](content, new)
            with new.open("rb") as written:
                os.fsync(written.fileno())
            os.replace(new, file)
    except Exception:
        new.unlink(missing_ok=True)
        raise
    return count


def check_new(file: Path, force: bool) -> None:
    """Raise if a file exists and must not be overwritten."""
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder; expected a file to write")
    if file.exists() and not force:
        raise ExistingFileError(
            f"{file} exists already: name another file, or set `force` to overwrite it"
        )
