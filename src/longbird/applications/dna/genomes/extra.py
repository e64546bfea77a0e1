"""The packages of the extra `dna`, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from longbird.errors import MissingPackageError

PACKAGES = {"pysam": "pysam", "Bio": "biopython", "pyBigWig": "pyBigWig"}


def need(module: str, doing: str) -> Any:
    """The module.

    Args:
        module: Its name, such as "Bio.SeqIO".
        doing: What it is needed for, as the start of a sentence.

    Raises:
        ImportError: Its package is not installed; the message has the command that installs it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = PACKAGES[module.partition(".")[0]]
        raise MissingPackageError(
            f"{doing} needs {package}: pip install 'longbird[dna]'"
        ) from error
