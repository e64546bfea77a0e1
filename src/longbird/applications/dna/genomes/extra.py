"""Importing the packages of the extra `dna` when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from longbird.errors import MissingPackageError

PACKAGES = {"pysam": "pysam", "Bio": "biopython", "pyBigWig": "pyBigWig"}


def need(module: str, doing: str) -> Any:
    """Import a module of the extra `dna`; an error names its package and what it is needed for."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = PACKAGES[module.partition(".")[0]]
        raise MissingPackageError(
            f"{doing} needs {package}: pip install 'longbird[dna]'"
        ) from error
