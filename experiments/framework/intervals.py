"""Confidence intervals by a bootstrap over held-out documents and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.framework.experiment import Metric
from experiments.framework.ledger import Finding

SAMPLES = 2000
AT_ONCE = 2**18
"""Maximum number of counts that are computed at once."""


@dataclass(frozen=True)
class Figure:
    """A value with its 95% interval, in the units of the tables."""

    value: float
    low: float
    high: float


class Bootstrap:
    """Samples of seeds and documents, equal for all contestants, so that differences are paired.

    A sample draws seeds and documents (or groups of documents) with replacement. Its value is the
    mean, over the drawn seeds, of the metric over the drawn documents. With few seeds this
    underestimates the variance between seeds: three seeds show two thirds of it.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        first = findings[0]
        for each in findings:
            grouped = "group" in each.documents and "group" in first.documents
            if not grouped and _documents(each) != _documents(first):
                raise ValueError(
                    f"{each.contestant} was measured on other documents than "
                    f"{first.contestant}: delete the work folder and run again"
                )
        self.every = np.unique(np.concatenate([_groups(each) for each in findings]))
        draw, count = np.random.default_rng(0), len(self.every)
        self.groups = count
        drawn = draw.multinomial(count, np.full(count, 1 / count), SAMPLES)
        self.by_group = np.concatenate([np.ones((1, count)), drawn])  # the first is all
        self.seeds = sorted({each.seed for each in findings})
        self.drawn = draw.integers(0, len(self.seeds), (SAMPLES, len(self.seeds)))

    def counts(self, finding: Finding) -> np.ndarray:
        """Return how often each sample has each document, [1 + samples, documents]."""
        return self.by_group[:, np.searchsorted(self.every, _groups(finding))]

    def samples(self, findings: Sequence[Finding], metric: Metric) -> np.ndarray:
        """Return the metric of a contestant for all documents and each sample, [1 + samples]."""
        by_seed = {each.seed: self._of_finding(each, metric) for each in findings}
        every = np.stack([by_seed[each.seed] for each in findings])  # [seeds, 1 + samples]
        if len(by_seed) < len(self.seeds):  # a baseline with one seed represents all
            others = {seed: every[i % len(every)] for i, seed in enumerate(self.seeds)}
            by_seed = others | by_seed
        table = np.stack([by_seed[seed] for seed in self.seeds])
        drawn = table[self.drawn.T, np.arange(1, 1 + SAMPLES)].mean(0)
        return metric.scale * np.concatenate([every[:, :1].mean(0), drawn])

    def _of_finding(self, finding: Finding, metric: Metric) -> np.ndarray:
        """Return the metric of one finding for all documents and for each sample, [1 + samples].

        The samples are computed in parts, because all counts together can be hundreds of MB.
        """
        columns = {name: np.asarray(x) for name, x in finding.documents.items()}
        counts = self.counts(finding)
        size = max(1, AT_ONCE // counts.shape[1])
        parts = [metric.of(columns, counts[at : at + size]) for at in range(0, len(counts), size)]
        return np.concatenate(parts)


def _documents(finding: Finding) -> int:
    return len(next(iter(finding.documents.values())))


def _groups(finding: Finding) -> np.ndarray:
    return np.asarray(finding.documents.get("group", np.arange(_documents(finding))))


def figure_of(samples: np.ndarray) -> Figure:
    """Return the value and the interval of samples or of differences of samples."""
    if np.isnan(samples[1:]).all():
        return Figure(float(samples[0]), float("nan"), float("nan"))
    low, high = np.nanquantile(samples[1:], [0.025, 0.975])
    return Figure(float(samples[0]), float(low), float(high))
