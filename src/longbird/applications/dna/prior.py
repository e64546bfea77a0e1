"""The share of positives that a model has learned."""

from __future__ import annotations

import numpy as np

Share = float | list[float]
"""A share of all scores, or one for each channel."""


def balanced(prevalence: Share) -> tuple[float, float]:
    """Return weights of negatives and positives with which both classes count equally.

    Examples:
        >>> balanced(0.2)
        (0.625, 2.5)
    """
    share = float(np.mean(prevalence))
    return 0.5 / (1 - share), 0.5 / share


def prior(prevalence: Share, class_weights: str) -> Share:
    """Return the share of positives that a model has learned with some class weights.

    Balanced weights change it as if the rare class had been more frequent. All channels have the
    same weights, so that it is not one half in each.

    Examples:
        >>> prior(0.2, "none"), prior(0.2, "balanced")
        (0.2, 0.5)
    """
    if class_weights != "balanced":
        return prevalence
    without, with_ = balanced(prevalence)
    share = np.array(prevalence)
    return (share * with_ / (share * with_ + (1 - share) * without)).tolist()
