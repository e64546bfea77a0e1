"""Facts about this machine and its packages that commands print."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

# The instruction sets that select a kernel; the other hundred flags do not matter here.
INSTRUCTION_FLAGS = (
    "sse4_2 avx avx2 fma f16c avx512f avx512bw avx512vl avx512_bf16 avx512_vnni avx_vnni "
    "amx_tile asimd sve sve2 bf16"
).split()


def processor_name() -> str:
    """Return the name of the processor as the system reports it."""
    name = system_field("/proc/cpuinfo", "model name")
    return name or platform.processor() or platform.machine()


def processor_flags() -> list[str]:
    """Return the instruction sets of the processor that matter to the kernels."""
    flags = system_field("/proc/cpuinfo", "flags", "Features").split()
    return [flag for flag in INSTRUCTION_FLAGS if flag in flags]


def load_average() -> float | None:
    """Return the average number of runnable processes in the last minute; None if unknown."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def package_version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    if package == "torch":  # the installed metadata lacks the local part, such as +cpu
        import torch

        return str(torch.__version__)
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def system_field(path: str, *names: str) -> str:
    """Return the first field with one of these names in a system table, or an empty string."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    fields = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in fields if name.strip() in names), "")
