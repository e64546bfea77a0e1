"""Time and peak memory of one call, each measured in a process of its own.

The peak of resident memory never falls in a process, so a fresh one runs every measurement: it
makes the inputs, warms up with a small case (libraries, thread pools, an optimizer's state), notes
what is resident, makes the call once, first use of its layouts included, and looks how far the
peak rose.
"""

from __future__ import annotations

import ctypes
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from experiments import CHECKOUT
from experiments.speed.contest import Peer, UnavailableError, reason


@dataclass(frozen=True)
class Peak:
    """One call of a peer in a process of its own; or why there was none.

    Attributes:
        peer: Who ran.
        case: What it did.
        extra_bytes: How far the peak of resident memory rose above what was resident before.
        result_bytes: Of these, the tensors that the call returned.
        peak_bytes: That peak, inputs, weights and libraries included.
        seconds: How long the call took, its layouts included.
        skipped: Why it did not run.
    """

    peer: str
    case: Any
    extra_bytes: int | None = None
    result_bytes: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0
    skipped: str | None = None


def peak(find: Callable[[str], Peer], name: str, case: Any, small: Any) -> Peak:
    """Make one call in a fresh process.

    Args:
        find: Finds a peer by its name; a function of a module, as it is handed to the process.
        name: The peer's.
        case: What to measure.
        small: What to warm up with.
    """
    child = subprocess.run(
        [sys.executable, "-c", "from experiments.speed.memory import answer; answer()"],
        input=pickle.dumps((find, name, case, small, torch.get_num_threads())),
        cwd=CHECKOUT,
        capture_output=True,
        check=False,
    )
    if child.returncode < 0:
        return Peak(name, case, skipped=f"its process was ended by signal {-child.returncode}")
    if child.returncode:
        last = child.stderr.decode().strip().splitlines()[-1:] or ["no message"]
        return Peak(name, case, skipped=f"its process failed: {last[0]}")
    return pickle.loads(child.stdout)


def answer() -> None:
    """What that process does: a request comes on its standard input, and the answer goes out."""
    out, sys.stdout = sys.stdout, sys.stderr  # where libraries may print what they like
    out.buffer.write(pickle.dumps(measure_here(*pickle.load(sys.stdin.buffer))))


def measure_here(
    find: Callable[[str], Peer], name: str, case: Any, small: Any, threads: int
) -> Peak:
    """The same in this very process, which should be a fresh one."""
    torch.set_num_threads(threads)
    try:
        warm, call = find(name).calls(small, case)
        warm()
        before, start = reset_peak(), time.perf_counter()
        results = call()
        seconds, most = time.perf_counter() - start, peak_resident_bytes()
    except UnavailableError as error:
        return Peak(name, case, skipped=str(error))
    except Exception as error:
        return Peak(name, case, skipped=f"its process failed: {reason(error)}")
    tensors = [x for x in (results if isinstance(results, tuple) else (results,)) if x is not None]
    returned = sum(x.numel() * x.element_size() for x in tensors)
    return Peak(name, case, max(0, most - before), returned, most, seconds)


def reset_peak() -> int:
    """Make the peak of resident memory what is resident now, and return it."""
    with suppress(AttributeError, OSError):  # not glibc
        # Memory the warm-up freed and the allocator kept would hide what the call takes.
        ctypes.CDLL(None).malloc_trim(0)
    # Without it the peak so far is the baseline, which the small warm-up keeps near to now.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_resident_bytes()


def peak_resident_bytes() -> int:
    """The most memory that was ever resident, since `reset_peak` where the system can."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
