"""`longbird info`: what is here, and what is not."""

from __future__ import annotations

import importlib.util
import platform

import torch
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from longbird.bench.environment import cpu_flags, cpu_model, version
from longbird.ops import native
from longbird.ops.dispatch import implementations

console = Console()

WITHOUT_NATIVE = """\
Every graph works without them, several times slower. To build them, install a C++17 compiler \
(g++ 9 or clang 10 or later) and reinstall from the source:

  pip install --force-reinstall --no-deps --no-cache-dir .

LONGBIRD_REQUIRE_NATIVE=1 in the environment makes a failed build an error that shows why."""


def info() -> None:
    """Show versions, processor, threads, and the implementations of the operator."""
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts():
        facts.add_row(Text(name, "bold"), Text(value))
    console.print(facts)
    console.print()

    table = Table("implementation", "state", title="Implementations, in order of preference")
    for name, state in implementations().items():
        here = state == "available"
        table.add_row(name, Text(state, "green" if here else "yellow"))
    console.print(table)

    missing = native.missing()
    if missing is not None:
        built = importlib.util.find_spec("longbird._native") is not None
        advice = missing if built else f"{missing}\n\n{WITHOUT_NATIVE}"
        console.print(
            Panel(Text(advice), title="The native kernels are missing", border_style="yellow")
        )


def _facts() -> list[tuple[str, str]]:
    flags = ", ".join(cpu_flags()) or "none that matter to the kernels"
    return [
        ("longbird", version("longbird") or "not installed, run from its source"),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("torch", version("torch") or "missing"),
        ("numpy", version("numpy") or "missing"),
        ("transformers", version("transformers") or "not installed (needed by the bench alone)"),
        ("processor", f"{cpu_model()} ({flags})"),
        ("threads", f"{torch.get_num_threads()} (torch.set_num_threads changes it)"),
        ("instruction set", _instruction_sets()),
        ("CUDA", torch.cuda.get_device_name() if torch.cuda.is_available() else "none"),
    ]


def _instruction_sets() -> str:
    names = native.instruction_sets()
    if not names:
        return "none: the native kernels are missing"
    return f"{names[0]} (of {', '.join(sorted(names))}; LONGBIRD_ISA in the environment chooses)"
