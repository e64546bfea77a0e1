"""Description of the machine and the versions, without private information."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from longbird.cli.processor import (
    load_average,
    package_version,
    processor_flags,
    processor_name,
    system_field,
)
from longbird.core.operator import native


def environment() -> dict[str, Any]:
    """Return processor, memory, threads, versions and commit, for JSON.

    Examples:
        >>> sorted(environment())[:4]
        ['commit', 'cores', 'cpu', 'flags']
    """
    return {
        "cpu": processor_name(),
        "flags": processor_flags(),
        "isa": next(iter(native.instruction_sets()), None),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": load_average(),
        "load_after": None,
        "memory_bytes": memory_bytes("MemTotal"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {
            name: package_version(name) for name in ("longbird", "torch", "numpy", "transformers")
        },
        "commit": commit(),
    }


def cpu_slug(model: str) -> str:
    """Return the name of a processor in a form for file names.

    Examples:
        >>> cpu_slug("Intel(R) Xeon(R) CPU @ 2.20GHz")
        'intel-xeon-cpu-2-20ghz'
    """
    plain = re.sub(r"\((?:R|TM|C)\)", "", model, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-") or "unknown"


def busy(where: Mapping[str, Any]) -> str | None:
    """Return a sentence if the machine was not idle, or None.

    Examples:
        >>> busy({"load": 0.1, "load_after": 2.1, "cores": 2, "threads": 2})
        >>> busy({"load": 1.3, "load_after": 2.1, "cores": 2, "threads": 2})
        'The machine was not idle: its load was 1.3 before and 2.1 after, with 2 cores.'
    """
    before, after, cores = where["load"] or 0, where["load_after"] or 0, where["cores"] or 1
    # Afterwards, the run itself accounts for a load of its number of threads.
    if before < 0.5 * cores and after < where["threads"] + 0.5 * cores:
        return None
    return (
        f"The machine was not idle: its load was {before:g} before and {after:g} after, "
        f"with {cores} cores."
    )


def memory_bytes(field: str) -> int | None:
    """Return a field of the system's memory table (MemTotal, MemAvailable), or None."""
    kilobytes = system_field("/proc/meminfo", field).split()
    return int(kilobytes[0]) * 1024 if kilobytes else None


def commit() -> str | None:
    """Return the commit of this checkout, with `-dirty` if it was changed, or None."""
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
    """Return the current command, with absolute paths cut to their last part.

    Examples:
        >>> command_line(["/here/__main__.py", "attention", "--out", "/home/me/results"])
        'python -m experiments attention --out results'
    """
    words = list(sys.argv if arguments is None else arguments)
    program = Path(words[0]).name if words else ""
    shown = ["python -m experiments" if program in ("__main__.py", "-c", "-m") else program]
    shown += [_without_folders(word) for word in words[1:]]
    return " ".join(shown)


def _without_folders(word: str) -> str:
    option, equals, value = word.rpartition("=")
    return option + equals + (Path(value).name if Path(value).is_absolute() else value)
