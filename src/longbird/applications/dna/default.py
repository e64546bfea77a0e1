"""The models of DNA that come with Longbird: one that was pretrained, and one for promoters.

Both are called "default": what is meant follows from what is asked for.
"""

from __future__ import annotations

from pathlib import Path

from longbird.errors import MissingFileError

NAME = "default"
SHIPPED = Path(__file__).parent / "shipped"
"""Has the card, and a folder for each of the two, as `save_pretrained` writes it."""
PRETRAINED, PROMOTER = "pretrained", "promoter"


def is_default(source: str | Path) -> bool:
    """Is a model of Longbird meant, and not a folder that happens to have that name?"""
    return str(source) == NAME and not Path(NAME).exists()


def folder_of_dna(source: str | Path, which: str) -> Path:
    """The folder of a model: "default", that of a run, or that of a model.

    Args:
        source: As the user names it.
        which: What "default" is: `PRETRAINED` or `PROMOTER`.

    Raises:
        FileNotFoundError: There is no such folder, or this copy of Longbird comes without such a
            model. The hub is not asked: nothing of what is done with a genome leaves the computer.
    """
    if not is_default(source):
        if not Path(source).exists():
            raise MissingFileError(
                f"there is no folder {source}: expected that of a run of `longbird dna`, that of "
                "its model, or default"
            )
        return Path(source)
    folder = SHIPPED / which
    if not (folder / "model.safetensors").is_file():
        raise MissingFileError(
            f"this copy of Longbird comes without a model of DNA ({which}): train one with "
            "recipes/dna/train.sh, or name the folder of a run of `longbird dna`"
        )
    return folder
