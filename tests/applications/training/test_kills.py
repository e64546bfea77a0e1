"""kill -9 at random moments, many times: the run ends as one that was never stopped.

`LONGBIRD_KILLS=50 pytest tests/tasks/test_kills.py` kills fifty times.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import safetensors.torch
import torch

from longbird.applications.training.engine.run_folder import LOCK, RunFolder

KILLS = int(os.environ.get("LONGBIRD_KILLS", "5"))

# One server that has imported everything forks a process for each run, so that the moments of the
# kills are in the run, and not in the seconds of imports before it.
SERVER = """
import json, os, sys
import torch
from longbird.applications.training.engine.finetune import finetune
torch.set_num_threads(1)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        out = os.open(os.devnull, os.O_WRONLY)
        os.dup2(out, 1)
        try:
            options = json.loads(line)
            finetune(options.pop("task"), options.pop("train"), options.pop("out"), **options)
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Server:
    """Starts runs, each in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(self, options: dict[str, object], kill_after: float | None) -> tuple[int, float]:
        """The exit code and the seconds of a run, which is killed after a while."""
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.process.stdin.write(json.dumps(options) + "\n")
        self.process.stdin.flush()
        child, started = int(self.process.stdout.readline()), time.monotonic()
        if kill_after is not None:
            time.sleep(kill_after)
            with suppress(ProcessLookupError):  # it was quicker
                os.kill(child, signal.SIGKILL)
        code = int(self.process.stdout.readline())
        if code == 1:
            self.process.kill()
            raise AssertionError(self.process.stderr.read()[-2000:])
        return code, time.monotonic() - started


@pytest.fixture
def server() -> Iterator[Server]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:  # fmt: skip
        yield Server(process)
        process.kill()


def state_of(run: RunFolder) -> str:
    """How far a run had come when it was killed, for the report of a failure."""
    return f"steps {run.steps()}, {sorted(each.name for each in run.path.glob('*'))}"


@pytest.mark.slow  # starts many processes
def test_kills_at_random_moments(server: Server, tiny: Path, table: Path, tmp_path: Path) -> None:
    options: dict[str, object] = {
        "task": "classify", "train": str(table), "model": str(tiny), "length": 128,
        "tokens_per_batch": 800, "steps": 6, "evaluate_every": 3, "learning_rate": 1e-2,
        "save_every": 0,
    }  # fmt: skip
    code, seconds = server.run({**options, "out": str(tmp_path / "whole")}, None)
    assert code == 0
    expected = safetensors.torch.load_file(tmp_path / "whole" / "model" / "model.safetensors")
    metrics = RunFolder(tmp_path / "whole").logged()

    drawn, kills, number, moments = random.Random(0), 0, 0, []
    while kills < KILLS:  # one run after the other, each killed again and again until it ends
        out, number = tmp_path / f"run{number}", number + 1
        for _ in range(12):
            if kills == KILLS:
                break
            code, _ = server.run({**options, "out": str(out)}, drawn.uniform(0, 1.05 * seconds))
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills += 1
            moments.append(state_of(RunFolder(out)))
        code, _ = server.run({**options, "out": str(out)}, None)
        assert code == 0, moments
        found = safetensors.torch.load_file(out / "model" / "model.safetensors")
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in found), moments
        assert [line["step"] for line in RunFolder(out).logged()] == [
            line["step"] for line in metrics
        ]
        assert [each.name for each in out.rglob(".*")] == [LOCK], "something was left over"
