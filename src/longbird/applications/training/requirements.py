"""Check that the packages of the extra `train` are installed."""

from importlib.util import find_spec

from longbird.errors import MissingPackageError

for _needed in ("accelerate", "datasets", "sklearn", "tensorboard", "tomli_w"):
    if find_spec(_needed) is None:
        raise MissingPackageError(
            f"training, evaluating and `longbird dna` need {_needed}, which is not installed: "
            "pip install 'longbird[train]'"
        )
