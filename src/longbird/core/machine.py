"""The memory that this process may use, and formatting of sizes and large numbers.

The limit is the smallest of what the machine has and what `ulimit` and containers allow.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from longbird.errors import InvalidValueError

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")

# Name of a cgroup in /proc/self/cgroup, its folder, its files with the limit and the usage, and
# the entry of memory.stat that counts cached files, which the kernel can drop at any time.
VERSION_2 = ("", "", "memory.max", "memory.current", "inactive_file")
VERSION_1 = (
    "memory",
    "memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
)


def machine_bytes() -> float:
    """Return the maximum memory of this process; infinite if the system does not report it."""
    return min(_physical(), _left_by_ulimit(), *(most for most, _ in _cgroups()))


def available_bytes() -> float:
    """Return the memory that this process can get now without swapping."""
    return min(_free(), _left_by_ulimit(), *(most - taken for most, taken in _cgroups()))


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Raise a ValueError if something needs more memory than this process can get now.

    Args:
        needed: Number of bytes.
        what: What needs them, for the message.
        remedy: What to do about it, for the message.

    Examples:
        >>> check_memory(1000, "a thousand bytes", "choose fewer")
    """
    if needed > (limit := available_bytes()):
        raise InvalidValueError(
            f"{what} would take {in_words(needed)} of the {in_words(limit)} of memory that this "
            f"process can have; {remedy}"
        )


@dataclass
class PeakMemory:
    """Memory of this process before an operation, and its increase at the peak; 0 if unknown."""

    before: int = 0
    more: int = 0


@contextlib.contextmanager
def peak_memory() -> Generator[PeakMemory, None, None]:
    """Measure the peak memory of a block of code; on systems other than Linux it stays 0.

    Examples:
        >>> with peak_memory() as memory:
        ...     data = bytes(range(256)) * 2**18
        >>> memory.more >= 0
        True
    """
    found = PeakMemory()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current memory
        found.before = _status("VmRSS")
    except (OSError, ValueError, IndexError):
        yield PeakMemory()
        return
    yield found
    found.more = max(0, _status("VmHWM") - found.before)


def _status(name: str) -> int:
    """Return an entry of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise InvalidValueError(f"/proc/self/status has no {name}")


def _physical() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _free() -> float:
    """Return the available memory of the machine, or all memory if it is not reported."""
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines)
        return float(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return _physical()


def _left_by_ulimit() -> float:
    """Return what `ulimit -v` and `ulimit -d` leave; processes rarely return memory."""
    try:
        import resource

        sizes = [int(pages) for pages in (PROC / "self" / "statm").read_text().split()]
        page = os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        return math.inf
    left = math.inf
    for kind, place in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        most, _ = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            left = min(left, max(0.0, float(most - sizes[place] * page)))
    return left


def _cgroups() -> Iterator[tuple[float, float]]:
    """Yield limit and usage of the cgroup of this process and of each of its parents."""
    try:
        lines = (PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, inside = line.split(":", 2)
        for name, folder, limit, taken, droppable in (VERSION_2, VERSION_1):
            if name not in controllers.split(","):
                continue
            # Inside a container, the path may be that of the host; then only the root exists.
            path = PurePosixPath(inside)
            for each in (path, *path.parents):
                place = CGROUPS / folder / str(each).lstrip("/")
                try:
                    most = float((place / limit).read_text())
                    used = float((place / taken).read_text())
                    stat = (place / "memory.stat").read_text().splitlines()
                    files = float(dict(line.split() for line in stat).get(droppable, 0))
                except (OSError, ValueError):  # it does not exist, or its limit is "max"
                    continue
                yield most, used - files


def in_words(size: float) -> str:
    """Format a number of bytes.

    Examples:
        >>> in_words(3.9e12)
        '3.9 TB'
    """
    return in_units(size, ("B", "kB", "MB", "GB", "TB", "PB", "EB"))


def many(count: float) -> str:
    """Format a large number in words.

    Examples:
        >>> many(3_906_250_000)
        '3.91 billion'
    """
    powers = ("", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion")
    return in_units(count, powers).rstrip()


def in_units(value: float, units: Sequence[str]) -> str:
    """Format a value with three digits in a suitable unit; units differ by factors of 1,000.

    Examples:
        >>> in_units(1_234, ("FLOP", "kFLOP"))
        '1.23 kFLOP'
    """
    number = 0
    while value >= 999.5 and number < len(units) - 1:
        value, number = value / 1000, number + 1
    return f"{value:.3g} {units[number]}"
