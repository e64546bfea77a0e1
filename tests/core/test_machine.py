"""Memory that a process may take: that of the machine, or what ulimit and containers leave."""

import subprocess
import sys

import pytest

from longbird.core import machine


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Writes the files that Linux describes a machine with 64 GB in, 40 GB of them free."""
    monkeypatch.setattr(machine, "PROC", tmp_path / "proc")
    monkeypatch.setattr(machine, "CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_physical", lambda: 64e9)

    def write(files):
        files = {"proc/meminfo": "MemTotal: 62500000 kB\nMemAvailable: 39062500 kB\n"} | files
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return machine.machine_bytes(), machine.available_bytes()

    return write


def version_2(folder, limit, taken, files):
    return {
        f"cgroup/{folder}/memory.max": f"{limit}\n",
        f"cgroup/{folder}/memory.current": f"{taken}\n",
        f"cgroup/{folder}/memory.stat": f"anon 5\ninactive_file {files}\n",
    }


@pytest.mark.parametrize(
    ("files", "most", "left"),
    [
        ({}, 64e9, 40e9),
        ({"proc/meminfo": "MemTotal: 62500000 kB\n"}, 64e9, 64e9),
        # Version 2: a limit of its own, one around it, none, and one that is not the smallest.
        (version_2("a/b", 8 * 10**9, 3 * 10**9, 10**9), 8e9, 6e9),
        (version_2("a", 8 * 10**9, 3 * 10**9, 10**9), 8e9, 6e9),
        (version_2("", 8 * 10**9, 3 * 10**9, 10**9), 8e9, 6e9),
        (version_2("a/b", "max", 3 * 10**9, 10**9), 64e9, 40e9),
        (version_2("a/b", 50 * 10**9, 0, 0), 50e9, 40e9),
        (version_2("a/b", 2 * 10**9, 10**9, 0) | version_2("a", 10**9, 10**9, 0), 1e9, 0.0),
        # Version 1, in a container that sees the path of its host.
        (
            {
                "proc/self/cgroup": "4:cpu,memory:/host/path\n0::/\n",
                "cgroup/memory/memory.limit_in_bytes": "8000000000\n",
                "cgroup/memory/memory.usage_in_bytes": "3000000000\n",
                "cgroup/memory/memory.stat": "inactive_file 7\ntotal_inactive_file 1000000000\n",
            },
            8e9,
            6e9,
        ),
    ],
)
def test_the_least_of_machine_and_container_counts(system, files, most, left):
    assert system({"proc/self/cgroup": "0::/a/b\n"} | files) == (most, left)


def test_a_system_that_says_nothing_has_no_limits(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "PROC", tmp_path)
    monkeypatch.setattr(machine, "_physical", lambda: float("inf"))
    assert machine.machine_bytes() == machine.available_bytes() == float("inf")


LIMITED = """
import resource, sys
resource.setrlimit(getattr(resource, sys.argv[1]), (2**32, 2**32))
from longbird.core.machine import available_bytes, machine_bytes
assert 2**31 < machine_bytes() < 2**32 and available_bytes() < 2**32
from longbird.core.graph import Full
for call in (lambda: Full().layout(2_000_000), lambda: Full().mask(100_000)):
    try:
        call()
    except ValueError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say what is taken")
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_ulimit_counts(kind):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, kind], capture_output=True, text=True, check=True
    )
    layout, mask = done.stdout.splitlines()
    assert "the layout of Full() over 2,000,000 tokens would have about" in layout
    assert "Full().mask(100000, heads=1) would take" in mask
    for line in (layout, mask):
        assert " of the 4." in line or " of the 3." in line
