"""Memory grows linearly in tokens, backward included."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SCRIPT = """
import sys
import torch, longbird as lb

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

def step(n):
    q, k, v = (torch.randn(1, 2, n, 32, requires_grad=True) for _ in range(3))
    graph = lb.bigbird(block=64) | lb.GlobalTokens([0])
    lb.attention(q, k, v, graph, impl=sys.argv[1]).sum().backward()

torch.set_num_threads(2)
step(300)
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before = status("VmRSS")
step(int(sys.argv[2]))
print(status("VmHWM") - before)
"""


def megabytes(impl: str, n: int) -> float:
    """How far the peak of a fresh process rises above what it has before."""
    command = [sys.executable, "-c", SCRIPT, impl, str(n)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow  # four processes, as a peak of memory is that of a process
def test_memory_is_linear(impl):
    n = 8192 if impl == "native" else 2048
    small, large = megabytes(impl, n), megabytes(impl, 4 * n)
    # One dense matrix of 4n x 4n would be 16 times that of n x n, and 0.5 GB for each of 2 heads.
    assert large < 5 * small + 16, f"{small:.0f} MB for {n} tokens, {large:.0f} MB for {4 * n}"
    assert large < 500
