"""Importing the packages of the extra `dna` when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from longbird.errors import MissingPackageError

PACKAGES = {"pysam": "pysam", "Bio": "biopython", "pyBigWig": "pyBigWig"}


def need(module: str, doing: str) -> Any:
    """Import a module.

    Args:
        module: Name of the module, such as "Bio.SeqIO".
        doing: Purpose of the module, as the start of a sentence.

    Raises:
        ImportError: The package is not installed; the message has the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = PACKAGES[module.partition(".")[0]]
        raise MissingPackageError(
            f"{doing} needs {package}: pip install 'longbird[dna]'"
        ) from error
