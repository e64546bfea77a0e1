"""Helpers for running the models of transformers."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from experiments.speed.contest import UnavailableError

LONGFORMER_WINDOW = 512  # Longformer's default, and about as many keys as BigBird's eight blocks


def transformers_module(name: str = "transformers") -> Any:
    """Return a module of transformers, or raise `UnavailableError` with a remedy."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnavailableError(
            f"transformers cannot be imported ({error}): pip install transformers"
        ) from error


@contextmanager
def numpy_state_kept() -> Generator[None, None, None]:
    """Restore NumPy's global generator, which Hugging Face's BigBird seeds in every call."""
    state = np.random.get_state()
    try:
        yield
    finally:
        np.random.set_state(state)
