"""`longbird info`: show what is installed, and what is missing."""

from __future__ import annotations

import importlib.util
import platform
import sys
from pathlib import Path

from longbird.cli.processor import package_version, processor_flags, processor_name
from longbird.cli.terminal import stdout, working

WITHOUT_NATIVE = """\
Every graph works without them, several times slower. To build them, install a C++17 compiler \
(g++ 9 or clang 10 or later) and reinstall from the source:

  pip install --force-reinstall --no-deps --no-cache-dir .

LONGBIRD_REQUIRE_NATIVE=1 in the environment makes a failed build an error that shows why."""


def info() -> None:
    """Show versions, processor, threads, implementations, and installation folders."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    with working("Loading torch"):
        from longbird.core.operator import native
        from longbird.core.operator.dispatch import implementations

        facts = _facts()
    for title, rows in facts.items():
        grid = Table.grid(padding=(0, 2))
        for name, value in rows:
            grid.add_row(Text(name, "bold"), Text(value, overflow="fold"))
        stdout.print(Text(title, "underline"))
        stdout.print(grid)
        stdout.print()

    stdout.print(Text("Implementations, in order of preference", "underline"))
    table = Table("implementation", "state")
    for name, state in implementations().items():
        here = state == "available"
        table.add_row(name, Text(state, "green" if here else "yellow"))
    stdout.print(table)

    missing = native.missing()
    if missing is not None:
        built = importlib.util.find_spec("longbird._native") is not None
        advice = missing if built else f"{missing}\n\n{WITHOUT_NATIVE}"
        stdout.print(
            Panel(Text(advice), title="The native kernels are missing", border_style="yellow")
        )


def _facts() -> dict[str, list[tuple[str, str]]]:
    import torch

    flags = ", ".join(processor_flags()) or "none that the kernels use"
    packages = ("longbird", "torch", "numpy", "transformers")
    return {
        "Versions": [
            ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
            *((name, package_version(name) or "not installed") for name in packages),
        ],
        "This machine": [
            ("processor", f"{processor_name()} ({flags})"),
            ("threads", f"{torch.get_num_threads()} (torch.set_num_threads changes it)"),
            ("instruction set", _instruction_sets()),
            ("int8 weights", _int8()),
            ("CUDA", torch.cuda.get_device_name() if torch.cuda.is_available() else "none"),
        ],
        "Installed in": [
            ("Python", sys.executable),
            *((name, _place(name)) for name in packages),
            ("native kernels", _place("longbird._native")),
        ],
    }


def _instruction_sets() -> str:
    from longbird.core.operator import native

    names = native.instruction_sets()
    if not names:
        return "none: the native kernels are missing"
    return f"{names[0]} (of {', '.join(sorted(names))}; LONGBIRD_ISA in the environment chooses)"


def _int8() -> str:
    """Describe whether the processor has instructions for int8 weights."""
    vnni = any("vnni" in flag for flag in processor_flags())
    return f'quantize="int8", {"with VNNI" if vnni else "slower without VNNI"}'


def _place(module: str) -> str:
    """Return the folder of a package, or the file of an extension."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        return "not found"
    place = Path(found.origin)
    return str(place.parent if place.stem == "__init__" else place)
