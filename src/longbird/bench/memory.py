"""Peak memory of one call of attention, each measured in a process of its own.

The peak of resident memory never falls in a process, so a fresh one runs every measurement: it
makes the inputs, warms up at a small length (libraries, thread pools), notes what is resident,
runs the call once, first use of its layout included, and reports how far the peak rose.
"""

from __future__ import annotations

import ctypes
import json
import resource
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from longbird.bench.contest import UnavailableError
from longbird.bench.peers import PEERS, Peer, longbird
from longbird.bench.work import Work


def extra_bytes(peer: Peer, work: Work, n: int, *, backward: bool = False) -> int:
    """Peak memory of one call beyond q, k, v and the output (and the gradients, if backward).

    Raises:
        UnavailableError: The peer cannot run here, or the machine has too little memory for it.
    """
    peer.refuse_if_impossible(work, n, backward=backward)
    request = {
        "peer": peer.name,
        "work": asdict(work),
        "n": n,
        "backward": backward,
        "threads": torch.get_num_threads(),
    }
    return int(ask_fresh_process("longbird.bench.memory", request)["extra_bytes"])


def ask_fresh_process(module: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer of a module that is run as a program: one JSON object in, one out.

    Raises:
        UnavailableError: The answer says so, or the process failed.
    """
    child = subprocess.run(
        [sys.executable, "-m", module, json.dumps(request)],
        capture_output=True,
        text=True,
        check=False,
    )
    if child.returncode < 0:
        raise UnavailableError(f"its process was ended by signal {-child.returncode}")
    if child.returncode:
        last = child.stderr.strip().splitlines()[-1:] or ["no message"]
        raise UnavailableError(f"its process failed: {last[0]}")
    answer = json.loads(child.stdout.splitlines()[-1])
    if "unavailable" in answer:
        raise UnavailableError(answer["unavailable"])
    return answer


def measure_here(peer: Peer, work: Work, n: int, *, backward: bool) -> int:
    """The same in this very process, which should be a fresh one."""
    warm = max(64, min(n, 1024))
    _run(peer, work, warm, backward=backward)
    # Peers are built before the baseline is taken: their masks are made once for a model, not in a
    # layer. Longbird's layout is made inside the call, and counts.
    q, k, v = (x.requires_grad_(backward) for x in work.inputs(n))
    function = peer.build(work, n)
    gradient = torch.ones_like(q) if backward else None
    before = reset_peak()
    with torch.set_grad_enabled(backward):
        out = function(q, k, v)
        results = [out]
        if backward:
            results += torch.autograd.grad(out, (q, k, v), gradient)
    peak = peak_bytes()
    return max(0, peak - before - sum(x.numel() * x.element_size() for x in results))


def _run(peer: Peer, work: Work, n: int, *, backward: bool) -> None:
    q, k, v = (x.requires_grad_(backward) for x in work.inputs(n))
    with torch.set_grad_enabled(backward):
        out = peer.build(work, n)(q, k, v)
        if backward:
            torch.autograd.grad(out, (q, k, v), torch.ones_like(out))


def reset_peak() -> int:
    """Make the peak of resident memory what is resident now, and return it."""
    try:
        # What the warm-up freed and the allocator kept would hide that the call takes it again.
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        pass  # not glibc
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass  # then the peak so far is the baseline, which the small warm-up keeps near to now
    return peak_bytes()


def peak_bytes() -> int:
    """The most memory that was ever resident, since `reset_peak` where the system can."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _peer(name: str) -> Peer:
    for peer in PEERS:
        if peer.name == name:
            return peer
    return longbird(name.removeprefix("longbird "))


def main(arguments: str) -> None:
    """Entry of the child process: a JSON request in, a JSON answer on standard output."""
    request = json.loads(arguments)
    torch.set_num_threads(request["threads"])
    peer, work = _peer(request["peer"]), Work(**request["work"])
    try:
        extra = measure_here(peer, work, request["n"], backward=request["backward"])
        print(json.dumps({"extra_bytes": extra}))
    except UnavailableError as error:
        print(json.dumps({"unavailable": str(error)}))


if __name__ == "__main__":
    main(sys.argv[1])
