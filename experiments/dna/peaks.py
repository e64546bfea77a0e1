"""From scores along a genome to calls: peaks, and which of them are right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import maximum_filter1d

TOLERANCE = 10
"""Bases by which a peak may miss a start."""


def peaks(scores: np.ndarray, apart: int = TOLERANCE) -> np.ndarray:
    """Return the positions with the highest score within this many bases, in order.

    Of equal neighbours the first counts.

    Examples:
        >>> peaks(np.array([1.0, 3.0, 3.0, 0.0, 2.0]), apart=1).tolist()
        [1, 4]
    """
    highest = maximum_filter1d(scores, 2 * apart + 1, mode="constant", cval=-np.inf)
    at = np.flatnonzero(scores == highest)
    kept: list[int] = []
    for place in at.tolist():
        if not kept or place - kept[-1] > apart:
            kept.append(place)
    return np.array(kept, dtype=int)


@dataclass(frozen=True)
class Calls:
    """Peaks compared with known starts.

    Attributes:
        at: Position of each peak, highest scores first.
        score: Score of each peak.
        start: Number of the start that each peak found, or -1.
        starts: Number of starts.
    """

    at: np.ndarray
    score: np.ndarray
    start: np.ndarray
    starts: int


def match(
    at: np.ndarray, score: np.ndarray, starts: np.ndarray, tolerance: int = TOLERANCE
) -> Calls:
    """Let each peak find the nearest start that no higher peak has found.

    Args:
        at: Positions of peaks.
        score: Scores of peaks.
        starts: Positions of starts on the same strand.
        tolerance: Maximum distance in bases.

    Examples:
        >>> calls = match(np.array([10, 18, 50]), np.array([1.0, 2.0, 3.0]), np.array([12]))
        >>> calls.at.tolist(), calls.start.tolist()
        ([50, 18, 10], [-1, 0, -1])
    """
    order = np.argsort(-score, kind="stable")
    at, score = at[order], score[order]
    by_place = np.argsort(starts, kind="stable")
    places = starts[by_place]
    first = np.searchsorted(places, at - tolerance)
    last = np.searchsorted(places, at + tolerance, "right")
    found, taken = np.full(len(at), -1), np.zeros(len(starts), bool)
    for peak in np.flatnonzero(first < last).tolist():
        near = np.arange(int(first[peak]), int(last[peak]))
        near = near[~taken[near]]
        if len(near):
            nearest = int(near[np.abs(places[near] - at[peak]).argmin()])
            taken[nearest] = True
            found[peak] = by_place[nearest]
    return Calls(at, score, found, len(starts))


def shift_of_odds(share_learned: float, share_there: float) -> float:
    """Return the correction of log-odds if positives are rarer than in training.

    Examples:
        >>> round(shift_of_odds(0.5, 0.001), 2)
        -6.91
    """
    for share in (share_learned, share_there):
        if not 0 < share < 1:
            raise ValueError(f"shares must be above 0 and below 1, received {share}")
    return float(
        np.log(share_there / (1 - share_there)) - np.log(share_learned / (1 - share_learned))
    )
