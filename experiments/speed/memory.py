"""Time and peak memory of one call, measured in a separate process.

The peak of resident memory of a process never falls, so each measurement runs in a fresh process.
It prepares the inputs, warms up with a small case (libraries, thread pools, the state of an
optimizer), resets the peak, makes one call including its layouts, and reads how far the peak rose.
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
    """One call of a peer in a separate process.

    Attributes:
        peer: Name of the peer.
        case: What it computed.
        extra_bytes: Rise of the peak of resident memory.
        result_bytes: Bytes of the returned tensors, which are part of it.
        peak_bytes: The peak, including inputs, weights and libraries.
        seconds: Time of the call, including its layouts.
        skipped: Reason why it did not run.
    """

    peer: str
    case: Any
    extra_bytes: int | None = None
    result_bytes: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0
    skipped: str | None = None


def peak(find: Callable[[str], Peer], name: str, case: Any, small: Any) -> Peak:
    """Measure one call in a fresh process.

    Args:
        find: Function of a module that returns a peer by its name; the process imports it.
        name: Name of the peer.
        case: Case to measure.
        small: Case to warm up with.
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
    """Read a request from standard input, measure, and write the answer to standard output."""
    out, sys.stdout = sys.stdout, sys.stderr  # libraries may print
    out.buffer.write(pickle.dumps(measure_here(*pickle.load(sys.stdin.buffer))))


def measure_here(
    find: Callable[[str], Peer], name: str, case: Any, small: Any, threads: int
) -> Peak:
    """Measure one call in this process, which should be fresh."""
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
    """Reset the peak of resident memory to the current value, and return it."""
    with suppress(AttributeError, OSError):  # not glibc
        # Memory the warm-up freed and the allocator kept would hide what the call takes.
        ctypes.CDLL(None).malloc_trim(0)
    # Without it the peak so far is the baseline, which the small warm-up keeps near to now.
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_resident_bytes()


def peak_resident_bytes() -> int:
    """Return the peak of resident memory, since `reset_peak` if the system supports that."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
