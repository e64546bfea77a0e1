"""Where and with what something was measured, without anything private about the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from longbird.core.operator import native

# The instruction sets that decide which kernels run; the other hundred flags decide nothing here.
_TELLING_FLAGS = (
    "sse4_2 avx avx2 fma f16c avx512f avx512bw avx512vl avx512_bf16 avx512_vnni avx_vnni "
    "amx_tile asimd sve sve2 bf16"
).split()


def environment() -> dict[str, Any]:
    """Processor, memory, threads, versions and commit, ready for JSON.

    Examples:
        >>> sorted(environment())[:4]
        ['commit', 'cores', 'cpu', 'flags']
    """
    return {
        "cpu": cpu_model(),
        "flags": cpu_flags(),
        "isa": next(iter(native.instruction_sets()), None),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": load_average(),
        "load_after": None,
        "memory_bytes": memory_bytes("MemTotal"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {
            name: version(name) for name in ("longbird", "torch", "numpy", "transformers")
        },
        "commit": commit(),
    }


def cpu_model() -> str:
    """Name of the processor as the system gives it."""
    named = _field("/proc/cpuinfo", "model name")
    return named or platform.processor() or platform.machine()


def cpu_flags() -> list[str]:
    """Those of the processor's instruction sets that matter to kernels."""
    here = _field("/proc/cpuinfo", "flags", "Features").split()
    return [flag for flag in _TELLING_FLAGS if flag in here]


def cpu_slug(model: str) -> str:
    """A processor's name as part of a file name.

    Examples:
        >>> cpu_slug("Intel(R) Xeon(R) CPU @ 2.20GHz")
        'intel-xeon-cpu-2-20ghz'
    """
    plain = re.sub(r"\((?:R|TM|C)\)", "", model, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "unknown"


def load_average() -> float | None:
    """Processes that wanted a core, on average over the last minute; None if unknown."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def busy(where: Mapping[str, Any]) -> str | None:
    """What an environment says about a machine that was not idle; None if it was.

    Examples:
        >>> busy({"load": 0.1, "load_after": 2.1, "cores": 2, "threads": 2})
        >>> busy({"load": 1.3, "load_after": 2.1, "cores": 2, "threads": 2})
        'The machine was not idle: its load was 1.3 before and 2.1 after, with 2 cores.'
    """
    before, after, cores = where["load"] or 0, where["load_after"] or 0, where["cores"] or 1
    # Afterwards, the run itself is a load of as many as it had threads.
    if before < 0.5 * cores and after < where["threads"] + 0.5 * cores:
        return None
    return (
        f"The machine was not idle: its load was {before:g} before and {after:g} after, "
        f"with {cores} cores."
    )


def memory_bytes(field: str) -> int | None:
    """A field of the system's memory table (MemTotal, MemAvailable); None where there is none."""
    kilobytes = _field("/proc/meminfo", field).split()
    return int(kilobytes[0]) * 1024 if kilobytes else None


def version(package: str) -> str | None:
    """Version of an installed package, or None."""
    if package == "torch":
        return str(torch.__version__)
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """Commit of the checkout that this file is in, `-dirty` if changed; None if there is none."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        options: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 10}
        return subprocess.run(["git", *words], cwd=here, check=True, **options).stdout.strip()

    try:
        # An installed copy may lie inside somebody else's repository: it must be tracked here.
        git("ls-files", "--error-unmatch", Path(__file__).name)
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def command_line(arguments: Sequence[str] | None = None) -> str:
    """The command that is running, with absolute paths cut to their last part.

    Examples:
        >>> command_line(["/usr/bin/longbird", "bench", "--out", "/home/me/results"])
        'longbird bench --out results'
    """
    words = list(sys.argv if arguments is None else arguments)
    program = Path(words[0]).name if words else ""
    shown = ["longbird" if program in ("__main__.py", "-c", "-m") else program]
    shown += [_without_folders(word) for word in words[1:]]
    return " ".join(shown)


def _without_folders(word: str) -> str:
    option, equals, value = word.rpartition("=")
    return option + equals + (Path(value).name if Path(value).is_absolute() else value)


def _field(path: str, *names: str) -> str:
    """The first field of one of these names in a table of the system, or nothing."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    fields = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in fields if name.strip() in names), "")
