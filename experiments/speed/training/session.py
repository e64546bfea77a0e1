"""A training run in a process of its own, which takes an epoch when it is told to.

So contestants take turns without sharing anything: each has the process that its user would have,
its peak of memory is that process's, and the death of one does not end the others.
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
    """An epoch.

    Attributes:
        seconds: How long it took.
        waited: How long the trainer waited for its batches.
        steps: Of the optimizer.
        before_bytes: Resident memory before the first epoch.
        peak_bytes: Its peak since then.
    """

    seconds: float
    waited: float
    steps: int
    before_bytes: int
    peak_bytes: int


@dataclass(frozen=True)
class _Failure:
    """Why a process ended."""

    reason: str
    unavailable: bool


class Session:
    """A run that waits; every call takes an epoch.

    Attributes:
        turns: What was measured at each call.
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
        """Did its process end?"""
        return self._process.poll() is not None

    def __call__(self) -> None:
        """Takes an epoch.

        Raises:
            UnavailableError: The contestant cannot do this here.
            RuntimeError: It failed.
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
    """Values from and to another process."""

    def __init__(self, source: Any, sink: Any) -> None:
        self.source, self.sink = source, sink

    def send(self, value: Any) -> None:
        pickle.dump(value, self.sink)
        self.sink.flush()

    def receive(self) -> Any:
        return pickle.load(self.source)


def work() -> None:
    """What the process does."""
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
    """Lets a trainer wait before each epoch, and measures the epoch."""

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
        """Waits."""
        self.before = self.before or reset_peak()
        self.channel.receive()
        self.started, self.waited, self.step = time.perf_counter(), 0.0, state.global_step

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Says how long it took."""
        seconds, steps = time.perf_counter() - self.started, state.global_step - self.step
        self.channel.send(Turn(seconds, self.waited, steps, self.before, peak_resident_bytes()))
