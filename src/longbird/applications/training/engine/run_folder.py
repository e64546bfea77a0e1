"""The folder of a run: what lies where, and checkpoints that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from longbird.errors import ExistingFileError, InvalidValueError
from longbird.files.digest import sha256_of

MANIFEST = "manifest.json"
LOCK = ".lock"
PREFIX = "checkpoint-"
AGAIN = "run the same command again: it goes on from there"
WORDS = (
    "PytorchStreamWriter", "inline_container", "No space left", "File too large", "I/O error",
    "iostream error", "os error",
)  # fmt: skip
"""What libraries say when the disk does not take a file."""


class RunFolder:
    """Where a run keeps what it has.

    Attributes:
        path: The folder itself.
        settings: All that decides the run (TOML).
        data: Which files it learned from, and how they were split (JSON).
        cache: Documents as tokens; made again when it is not there.
        start: The model that it started from, where that was made longer, with its certificate.
        tokenizer: The tokenizer, where the run made one.
        metrics: A JSON object in each line: what was measured after how many steps.
        tensorboard: The same, for TensorBoard.
        plots: The same, as pictures.
        checkpoints: All that is needed to go on.
        model: The best model with its tokenizer and card: what `from_pretrained` loads.
        worst: Documents that the best model is most wrong about.
        report: All of it on one page.
        result: What the best model reaches; written last, so that it says that the run is done.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.settings = self.path / "run.toml"
        self.data = self.path / "data.json"
        self.cache = self.path / "cache"
        self.start = self.path / "start"
        self.tokenizer = self.path / "tokenizer"
        self.metrics = self.path / "metrics.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.plots = self.path / "plots"
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model"
        self.worst = self.path / "worst.jsonl"
        self.report = self.path / "report.html"
        self.result = self.path / "result.json"

    def is_new(self) -> bool:
        """Is nothing in it but what a kill left of the very first file?"""
        first = (f".{self.settings.name}.writing", LOCK)
        return self.path.is_dir() and all(each.name in first for each in self.path.iterdir())

    @contextlib.contextmanager
    def in_use(self) -> Generator[None, None, None]:
        """Keeps other processes from running in it; a kill ends that, too.

        Raises:
            FileExistsError: Another process is running in it.
        """
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ExistingFileError(
                f"another process is training in {self.path}: wait for it, stop it, or name "
                "another `out`"
            ) from None
        try:
            yield
        finally:
            lock.release()

    def checkpoint(self, step: int) -> Path:
        """The folder of the checkpoint after that many steps."""
        return self.checkpoints / f"{PREFIX}{step}"

    def steps(self) -> list[int]:
        """The steps that there are checkpoints of, ascending, whole or not."""
        names = [each.name for each in self.checkpoints.glob(f"{PREFIX}*")]
        return sorted(int(name[len(PREFIX) :]) for name in names if name[len(PREFIX) :].isdigit())

    def what_is_wrong(self, step: int) -> str | None:
        """What is wrong with a checkpoint, naming the file; None if it is as it was written."""
        return _what_is_wrong(self.checkpoint(step))

    def last_whole_checkpoint(self) -> tuple[Path | None, list[str]]:
        """The newest checkpoint that is as it was written, and what is wrong with newer ones."""
        broken: list[str] = []
        for step in reversed(self.steps()):
            wrong = self.what_is_wrong(step)
            if wrong is None:
                return self.checkpoint(step), broken
            broken.append(wrong)
        return None, broken

    @contextlib.contextmanager
    def writing_checkpoint(self, step: int) -> Generator[Path, None, None]:
        """A folder to write into, which then becomes the checkpoint of that step.

        It is on the disk before it has its name, so that no kill and no power cut leaves a
        part of one.

        Raises:
            OSError: It could not be written; nothing of it is left.
        """
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        for old in self.checkpoints.glob(".saving-*"):  # of a process that was killed
            shutil.rmtree(old, ignore_errors=True)
        saving, folder = self.checkpoints / f".saving-{step}", self.checkpoint(step)
        saving.mkdir()
        try:
            yield saving
            digests = {
                str(file.relative_to(saving)): sha256_of(file)
                for file in sorted(saving.rglob("*"))
                if file.is_file()
            }
            (saving / MANIFEST).write_text(json.dumps(digests, indent=1), "utf-8")
            for file in saving.rglob("*"):
                _sync(file)
            _sync(saving)
            if folder.exists():  # one that was broken, or was made by the same step before
                shutil.rmtree(folder)
            os.replace(saving, folder)
            _sync(self.checkpoints)
        except BaseException as error:
            shutil.rmtree(saving, ignore_errors=True)
            last = self.last_whole_checkpoint()[0] if is_about_the_disk(error) else None
            kept = f"{last} is the last good one" if last else "there is none yet"
            with naming(f"the checkpoint {folder}", f"; {kept}"):
                raise

    @contextlib.contextmanager
    def making(self, place: Path) -> Generator[Path, None, None]:
        """A new folder to write into, which then becomes `place`, whole."""
        scratch = self.path / ".making"
        shutil.rmtree(scratch, ignore_errors=True)  # of a process that was killed
        try:
            with naming(place):
                yield scratch / place.name
                shutil.rmtree(place, ignore_errors=True)
                os.replace(scratch / place.name, place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def prune(self, keep: set[int], last: int = 2) -> None:
        """Deletes checkpoints other than these and the last ones."""
        steps = self.steps()
        for step in steps[:-last]:
            if step not in keep:
                shutil.rmtree(self.checkpoint(step), ignore_errors=True)

    def clear(self) -> None:
        """Forgets all that was made before the first step."""
        for each in (self.start, self.tokenizer, self.cache, self.tensorboard):
            shutil.rmtree(each, ignore_errors=True)
        for each in (self.settings, self.data, self.metrics):
            each.unlink(missing_ok=True)

    def log(self, values: dict[str, Any]) -> None:
        """Appends a line to the metrics."""
        with naming(self.metrics), self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def cut_metrics(self, step: int) -> None:
        """Forgets what was measured after a step, as the run goes on from there."""
        if self.metrics.exists():
            kept = [line for line in self.logged() if line["step"] <= step]
            write_text(self.metrics, "".join(json.dumps(line) + "\n" for line in kept))

    def logged(self) -> list[dict[str, Any]]:
        """What was measured, without a last line that a kill cut short."""
        lines: list[dict[str, Any]] = []
        if self.metrics.exists():
            for text in self.metrics.read_text("utf-8", errors="replace").splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    lines.append(json.loads(text))
        return [line for line in lines if isinstance(line, dict) and "step" in line]

    def seconds(self) -> float:
        """How long it has been trained so far, by all processes, each of which counts from 0."""
        lines = [line for line in self.logged() if "train_runtime" in line]
        return sum({line.get("began_seconds"): line["train_runtime"] for line in lines}.values())


def read_json(file: Path) -> dict[str, Any]:
    """What a file of the run holds.

    Raises:
        ValueError: It is damaged.
    """
    try:
        return dict(json.loads(file.read_text("utf-8")))
    except (TypeError, ValueError) as error:
        raise InvalidValueError(
            f"{file} is damaged ({error}): put back a copy of it, or begin a new run with another "
            "`out`"
        ) from error


def write_text(file: Path, text: str) -> None:
    """Writes a whole file, or leaves the old one."""
    new = file.with_name(f".{file.name}.writing")
    with naming(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.write_text(text, "utf-8")
            _sync(new)
            os.replace(new, file)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def naming(place: Path | str, kept: str = "") -> Generator[None, None, None]:
    """Whatever the disk does not take names the file, and says how to go on.

    Args:
        place: The file or folder that is written.
        kept: What there is in its place, for the message.

    Raises:
        OSError: It could not be written.
    """
    try:
        yield
    except BaseException as error:
        if not is_about_the_disk(error) or AGAIN in str(error):
            raise
        number = getattr(error, "errno", None) or errno.ENOSPC
        told = " ".join((getattr(error, "strerror", None) or str(error)).split())
        if "inline_container" in told:  # torch tells where in its source it noticed, not what
            told = "the disk did not take all of it"
        first = "Make room"
        if number in (errno.EROFS, errno.EACCES, errno.EPERM):
            first = "Make the folder writable"
        raise OSError(
            number, f"{place} was not written ({told}){kept}. {first} and {AGAIN}"
        ) from error


def _what_is_wrong(checkpoint: Path) -> str | None:
    """What is wrong with a checkpoint, naming the file; None if it is as it was written."""
    try:
        written = json.loads((checkpoint / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError) as error:
        return f"{checkpoint / MANIFEST} cannot be read ({error})"
    for name, expected in written.items():
        file = checkpoint / name
        if not file.is_file():
            return f"{file} is missing"
        if sha256_of(file) != expected:
            return f"{file} is not what was written (its sha256 differs)"
    return None


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def is_about_the_disk(error: BaseException) -> bool:
    """An OSError about writing, and what torch, safetensors and arrow make of one."""
    if isinstance(error, OSError):
        return error.errno in (
            errno.ENOSPC,
            errno.EDQUOT,
            errno.EFBIG,
            errno.EIO,
            errno.EROFS,
        ) or (error.errno is None and any(word in str(error) for word in WORDS))
    return any(word in str(error) for word in WORDS)
