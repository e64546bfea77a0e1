"""A training run in a separate process, which runs one epoch at a time.

So contestants take turns without sharing anything: each has its own process as for its users, its
own peak of memory, and a crash of one does not affect the others.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback

from experiments import CHECKOUT
from experiments.speed.contest import UnavailableError, reason
from experiments.speed.memory import peak_resident_bytes, reset_peak


@dataclass(frozen=True)
class Turn:
    """The measurements of an epoch.

    Attributes:
        seconds: Duration of the epoch.
        waited: Time that the trainer waited for batches.
        steps: Number of optimizer steps.
        before_bytes: Resident memory before the first epoch.
        peak_bytes: Peak of resident memory since then.
    """

    seconds: float
    waited: float
    steps: int
    before_bytes: int
    peak_bytes: int


@dataclass(frozen=True)
class _Failure:
    """The reason why a process ended."""

    reason: str
    unavailable: bool


class Session:
    """A training run that waits; every call runs an epoch.

    Attributes:
        turns: Measurements of each call.
    """

    def __init__(self, make: Callable[..., Trainer], *arguments: Any) -> None:
        """Start a process that makes a trainer with these arguments and a folder."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import work; work()"],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._channel = _Channel(self._process.stdout, self._process.stdin)
        self._channel.send((make, arguments, torch.get_num_threads()))
        self.turns: list[Turn] = []

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it waits, and has nothing to save
        self._process.communicate()

    @property
    def ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def __call__(self) -> None:
        """Run an epoch.

        Raises:
            UnavailableError: The contestant cannot run this case here.
            RuntimeError: The process failed.
        """
        try:
            self._channel.send("go")
            answer = self._channel.receive()
        except (EOFError, OSError):
            code = self._process.wait()
            how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
            raise RuntimeError(f"its process {how}") from None
        if isinstance(answer, _Failure):
            raise (UnavailableError if answer.unavailable else RuntimeError)(answer.reason)
        self.turns.append(answer)


class _Channel:
    """A connection to another process."""

    def __init__(self, source: Any, sink: Any) -> None:
        self.source, self.sink = source, sink

    def send(self, value: Any) -> None:
        pickle.dump(value, self.sink)
        self.sink.flush()

    def receive(self) -> Any:
        return pickle.load(self.source)


def work() -> None:
    """Run the process."""
    from datasets.utils.logging import disable_progress_bar
    from transformers.utils import logging

    channel = _Channel(sys.stdin.buffer, sys.stdout.buffer)
    sys.stdout = sys.stderr  # where libraries may print what they like
    disable_progress_bar()
    logging.disable_progress_bar()
    make, arguments, threads = channel.receive()
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        try:
            trainer = make(*arguments, Path(folder))
            trainer.add_callback(_Turns(trainer, channel))
            trainer.train()
        except EOFError:
            pass  # nobody wants another epoch
        except Exception as error:
            channel.send(_Failure(reason(error), isinstance(error, UnavailableError)))


class _Turns(TrainerCallback):
    """Make a trainer wait before each epoch, and measure the epoch."""

    def __init__(self, trainer: Trainer, channel: _Channel) -> None:
        self.channel, self.before = channel, 0
        self.fetch = trainer.get_batch_samples
        ours: Any = self._timed
        trainer.get_batch_samples = ours

    def _timed(self, *arguments: Any) -> Any:
        started = time.perf_counter()
        batches = self.fetch(*arguments)
        self.waited += time.perf_counter() - started
        return batches

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Wait for the next turn."""
        self.before = self.before or reset_peak()
        self.channel.receive()
        self.started, self.waited, self.step = time.perf_counter(), 0.0, state.global_step

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Send the measurements."""
        seconds, steps = time.perf_counter() - self.started, state.global_step - self.step
        self.channel.send(Turn(seconds, self.waited, steps, self.before, peak_resident_bytes()))
