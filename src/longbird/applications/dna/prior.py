"""How often something is true, as a model has it from what it learned from."""

from __future__ import annotations

import numpy as np

Share = float | list[float]
"""Of all that a model scores, or of each channel."""


def balanced(prevalence: Share) -> tuple[float, float]:
    """Weights of what is not true and of what is, with which both count as much.

    Examples:
        >>> balanced(0.2)
        (0.625, 2.5)
    """
    share = float(np.mean(prevalence))
    return 0.5 / (1 - share), 0.5 / share


def prior(prevalence: Share, class_weights: str) -> Share:
    """The share that a model takes for granted, where it learned with these class weights.

    Weights change it as if there had been more of what is rare; the same ones hold for all
    channels, so that it is not one half in each.

    Examples:
        >>> prior(0.2, "none"), prior(0.2, "balanced")
        (0.2, 0.5)
    """
    if class_weights != "balanced":
        return prevalence
    without, with_ = balanced(prevalence)
    share = np.array(prevalence)
    return (share * with_ / (share * with_ + (1 - share) * without)).tolist()
