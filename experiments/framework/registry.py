"""Finding experiments by name.

An experiment is a file with a function `experiment(scale)`, or `experiment(scale, model)` if it
can start from a model. It returns an object with a method `run(options)`, which measures, writes
the results and returns their paths, the page first. The name of the experiment is that of the
file, with hyphens for underscores.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

from experiments import CHECKOUT
from longbird.errors import InvalidValueError

FAMILIES = ("speed", "quality", "dna")
"""Packages of experiments."""

SCALES = ("default", "quick")
"""The scale of recorded results, and a small one."""

RESULTS = CHECKOUT / "experiments" / "results"


def print_line(line: str) -> None:
    """Print a line to standard error, so that the output contains only the results."""
    print(line, file=sys.stderr)


@dataclass(frozen=True)
class Options:
    """The options that the command passes to an experiment.

    Attributes:
        seeds: Number of runs of each contestant that has seeds.
        only: Names of the contestants to run; empty for all.
        work: Folder for attempts that are done; in the cache by default.
        out: Folder for the results.
        tell: Receives lines about the progress.
    """

    seeds: int = 3
    only: tuple[str, ...] = ()
    work: Path | None = None
    out: Path = RESULTS
    tell: Callable[[str], None] = print_line


class Runnable(Protocol):
    """An experiment at a certain scale."""

    def run(self, options: Options) -> list[Path]:
        """Measure what is missing, and return the paths of the page, the JSON and the picture."""
        ...


def files() -> dict[str, Path]:
    """Return the files of all experiments by name, ordered by family.

    Examples:
        >>> "attention" in files()
        True
    """
    here = CHECKOUT / "experiments"
    found = [file for family in FAMILIES for file in sorted((here / family).rglob("*.py"))]
    return {
        file.stem.replace("_", "-"): file
        for file in found
        if "\ndef experiment(" in file.read_text("utf-8")
    }


def summary(file: Path) -> str:
    """Return the first line of a file's docstring, without importing the file."""
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return text.partition("\n")[0]


def load(name: str, scale: str, model: Path | None = None) -> Runnable:
    """Return an experiment.

    Args:
        name: Name of an experiment, or the path of a Python file that defines one.
        scale: One of `SCALES`.
        model: Model to start from.

    Raises:
        InvalidValueError: There is no such experiment, or it cannot start from a model.
    """
    make = _module(name).experiment
    if "model" in inspect.signature(make).parameters:
        return make(scale, model)
    if model is not None:
        raise InvalidValueError(
            f"{name} does not start from a model: leave out `model`", option="model"
        )
    return make(scale)


def _module(name: str) -> ModuleType:
    known = files()
    if name in known:
        parts = known[name].relative_to(CHECKOUT).with_suffix("").parts
        return importlib.import_module(".".join(parts))
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None or not Path(name).is_file():
        raise InvalidValueError(
            f"NAME is {name!r}, expected one of {', '.join(known)}, or the path of a file with a "
            "function `experiment(scale)`"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
