"""The DNA models that come with Longbird: a pretrained model and a model of promoters.

Both are called "default"; the command decides which one is meant.
"""

from __future__ import annotations

from pathlib import Path

from longbird.errors import MissingFileError

NAME = "default"
SHIPPED = Path(__file__).parent / "shipped"
"""Folder with the model card and the folders of both models."""
PRETRAINED, PROMOTER = "pretrained", "promoter"


def is_default(source: str | Path) -> bool:
    """Return whether a name means a model of Longbird, and not a folder called default."""
    return str(source) == NAME and not Path(NAME).exists()


def folder_of_dna(source: str | Path, which: str) -> Path:
    """Return the folder of a model: "default", or the folder of a run or of a model.

    The hub is not asked, so that nothing about a genome leaves the computer.

    Args:
        source: Name or folder, as the user gave it.
        which: Model that "default" means: `PRETRAINED` or `PROMOTER`.

    Raises:
        FileNotFoundError: The folder does not exist, or Longbird was installed without the model.
    """
    if not is_default(source):
        if not Path(source).exists():
            raise MissingFileError(
                f"there is no folder {source}: expected a run of `longbird dna`, the folder of "
                "its model, or default"
            )
        return Path(source)
    folder = SHIPPED / which
    if not (folder / "model.safetensors").is_file():
        raise MissingFileError(
            f"Longbird was installed without its DNA model ({which}): train one with "
            "recipes/dna/train.sh, or name the folder of a run of `longbird dna`"
        )
    return folder
