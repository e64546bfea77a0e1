"""How much memory this process may take, and sizes and large numbers in words.

The machine has so much; `ulimit` and containers often allow less, and the least counts.
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

# What a cgroup is called in /proc/self/cgroup, where its files are, and what they are called: the
# limit, what is taken, and how memory.stat counts the files that the kernel can drop at any time.
VERSION_2 = ("", "", "memory.max", "memory.current", "inactive_file")
VERSION_1 = (
    "memory",
    "memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "total_inactive_file",
)


def machine_bytes() -> float:
    """The most memory that this process can have; unlimited where the system does not say."""
    return min(_physical(), _left_by_ulimit(), *(most for most, _ in _cgroups()))


def available_bytes() -> float:
    """The memory that this process can have now, without swapping."""
    return min(_free(), _left_by_ulimit(), *(most - taken for most, taken in _cgroups()))


def check_memory(needed: float, what: str, remedy: str) -> None:
    """Raises if something takes more memory than this process can have now.

    Args:
        needed: Bytes.
        what: That takes them, in words.
        remedy: What to do about it, in words.

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
    """Bytes that this process had before something, and had more at its peak; 0 if unknown."""

    before: int = 0
    more: int = 0


@contextlib.contextmanager
def peak_memory() -> Generator[PeakMemory, None, None]:
    """Measures what a block of code takes at its peak; on Linux, elsewhere it stays 0.

    Examples:
        >>> with peak_memory() as memory:
        ...     data = bytes(range(256)) * 2**18
        >>> memory.more >= 0
        True
    """
    found = PeakMemory()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is now what there is
        found.before = _status("VmRSS")
    except (OSError, ValueError, IndexError):
        yield PeakMemory()
        return
    yield found
    found.more = max(0, _status("VmHWM") - found.before)


def _status(name: str) -> int:
    """Bytes that the system says of this process."""
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
    """Memory of the machine that nobody uses; all of it where the system does not say."""
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines)
        return float(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return _physical()


def _left_by_ulimit() -> float:
    """What `ulimit -v` and `ulimit -d` leave; a process hardly ever gives back what it took."""
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
    """The limits of the process's cgroup and of those around it, and what is taken of each."""
    try:
        lines = (PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, inside = line.split(":", 2)
        for name, folder, limit, taken, droppable in (VERSION_2, VERSION_1):
            if name not in controllers.split(","):
                continue
            # Within a container the path may be that of the host: then only the root is there.
            path = PurePosixPath(inside)
            for each in (path, *path.parents):
                place = CGROUPS / folder / str(each).lstrip("/")
                try:
                    most = float((place / limit).read_text())
                    used = float((place / taken).read_text())
                    stat = (place / "memory.stat").read_text().splitlines()
                    files = float(dict(line.split() for line in stat).get(droppable, 0))
                except (OSError, ValueError):  # it is not there, or its limit is "max"
                    continue
                yield most, used - files


def in_words(size: float) -> str:
    """A number of bytes as people say it.

    Examples:
        >>> in_words(3.9e12)
        '3.9 TB'
    """
    return in_units(size, ("B", "kB", "MB", "GB", "TB", "PB", "EB"))


def many(count: float) -> str:
    """A large number as people say it.

    Examples:
        >>> many(3_906_250_000)
        '3.91 billion'
    """
    powers = ("", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion")
    return in_units(count, powers).rstrip()


def in_units(value: float, units: Sequence[str]) -> str:
    """Three digits in the unit that suits, each unit a thousand times the one before.

    Examples:
        >>> in_units(1_234, ("FLOP", "kFLOP"))
        '1.23 kFLOP'
    """
    number = 0
    while value >= 999.5 and number < len(units) - 1:
        value, number = value / 1000, number + 1
    return f"{value:.3g} {units[number]}"
