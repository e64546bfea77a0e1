"""The packages of the extra `train`."""

from importlib.util import find_spec

from longbird.errors import MissingPackageError


def require_packages() -> None:
    """Raise an error if a package that training needs is not installed."""
    for name in ("accelerate", "datasets", "sklearn", "tensorboard", "tomli_w"):
        if find_spec(name) is None:
            raise MissingPackageError(
                f"training, evaluating and `longbird dna` need {name}, which is not installed: "
                "pip install 'longbird[train]'"
            )
