"""Which number known before training predicts the result of training?

The answer is Spearman's rank correlation over contestants. Two effects can mislead. Other seeds,
held-out documents and contestants would have given another correlation, so the bootstrap draws all
three. And with few contestants, one of several measures correlates with anything by chance, so the
best one is compared with the best one in random orders of the contestants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from experiments.framework.intervals import SAMPLES, Figure, figure_of
from experiments.framework.ledger import Finding
from experiments.framework.page import Sheet, digits

Floats = npt.NDArray[np.float64]

ORDERS = 10_000
"""Random orders of the contestants."""
FEWEST = 4
"""With fewer contestants, there is nothing to say."""


def rank_correlation(x: npt.ArrayLike, y: npt.ArrayLike) -> Floats:
    """Spearman's rank correlation along the last axis; NaN where one side is all the same.

    Examples:
        >>> rank_correlation([1, 2, 3, 9], [[1, 2, 3, 4], [4, 3, 2, 1]]).tolist()
        [1.0, -1.0]
    """
    ranks = [rankdata(np.asarray(each, float), axis=-1) for each in (x, y)]
    a, b = (each - each.mean(-1, keepdims=True) for each in ranks)
    above, below = (a * b).sum(-1), np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
    return np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0)


@dataclass(frozen=True)
class Predictors:
    """How measures go with a metric over contestants.

    Attributes:
        metric: Its name.
        contestants: Their names.
        measures: Of each measure, the value of each contestant: its mean over seeds.
        reached: The metric of each contestant.
        correlations: The rank correlation of each measure, with its 95% interval.
        best: Of each measure, the share of samples in which it was the strongest of all.
        chance: What the strongest of all measures has in one of twenty random orders, or more.
        p_value: The share of random orders whose strongest is at least as strong as the one here.
    """

    metric: str
    contestants: tuple[str, ...]
    measures: Mapping[str, tuple[float, ...]]
    reached: tuple[float, ...]
    correlations: Mapping[str, Figure]
    best: Mapping[str, float]
    chance: float
    p_value: float

    @property
    def strongest(self) -> str | None:
        """The measure with the strongest correlation; None if no measure tells them apart."""
        known = {name: abs(x.value) for name, x in self.correlations.items() if x.value == x.value}
        return max(known, key=known.__getitem__) if known else None

    def words(self) -> list[str]:
        """What was found, by rules."""
        name, count = self.strongest, len(self.contestants)
        if name is None:
            return [f"No measure tells the {count} contestants apart."]
        found = self.correlations[name]
        sure = "more than chance explains" if self.p_value < 0.05 else "what chance explains, too"
        lines = [
            f"Of {len(self.measures)} measures, {self.metric} goes best with {name}: rank "
            f"correlation {_shown(found)} over {count} contestants. It was the strongest in "
            f"{100 * self.best[name]:.0f}% of the samples.",
            f"That is {sure}: in random orders of the {count}, the strongest of the measures has "
            f"{self.chance:.2f} or more once in twenty times, and as much as here with "
            f"probability {self.p_value:.2g}.",
        ]
        others = [x for x in self.measures if x != name and self.best[x] >= 0.05]
        if others:
            lines.append(
                f"{count} contestants do not tell {name} from {', '.join(others)}: each of these "
                "was the strongest in 5% of the samples or more."
            )
        return lines

    def sheets(self) -> list[Sheet]:
        """The correlations, and what they are from."""
        correlations = Sheet(
            f"Which measure goes with {self.metric}?",
            ["measure", "rank correlation", "strongest of all"],
            [
                [name, _shown(x), f"{100 * self.best[name]:.0f}% of samples"]
                for name, x in self.correlations.items()
            ],
            [
                f"Spearman's, over {len(self.contestants)} contestants, with 95% intervals: each "
                "sample draws seeds, held-out documents and contestants with replacement.",
                "A correlation is no cause, and contestants that were chosen by hand are no "
                "random sample.",
            ],
        )
        rows = [
            [name, *(digits(each[i]) for each in self.measures.values()), digits(self.reached[i])]
            for i, name in enumerate(self.contestants)
        ]
        heads = ["contestant", *self.measures, self.metric]
        return [correlations, Sheet("Measures, mean over seeds", heads, rows)]

    def as_json(self) -> dict[str, Any]:
        """All of it; what is infinite is None."""
        return {
            "metric": self.metric,
            "contestants": self.contestants,
            "measures": {
                name: [x if np.isfinite(x) else None for x in each]
                for name, each in self.measures.items()
            },
            "reached": self.reached,
            "correlations": {
                name: [x.value, x.low, x.high] for name, x in self.correlations.items()
            },
            "strongest": self.best,
            "chance": self.chance,
            "p_value": self.p_value,
        }


def predictors(
    metric: str,
    measures: Sequence[str],
    findings: Mapping[str, Sequence[Finding]],
    samples: Mapping[str, Floats],
) -> Predictors | None:
    """How measures go with a metric; None if contestants are too few.

    Args:
        metric: Its name.
        measures: Names of measures, which each finding has in its facts.
        findings: Of each contestant.
        samples: Of each contestant, the metric of all and of each sample of the bootstrap.
    """
    names = tuple(findings)
    if len(names) < FEWEST:
        return None
    known = np.array(
        [[np.mean([_number(x, measure) for x in findings[name]]) for name in names]
         for measure in measures]
    )  # [measures, contestants]  # fmt: skip
    reached = np.stack([samples[name] for name in names], 1)  # [1 + samples, contestants]
    draw, count = np.random.default_rng(0), len(names)
    drawn = draw.integers(0, count, (SAMPLES, count))
    again = np.take_along_axis(reached[1:], drawn, 1)
    found = np.stack(
        [
            np.append(rank_correlation(each, reached[0]), rank_correlation(each[drawn], again))
            for each in known
        ]
    )  # [measures, 1 + samples]
    strength = np.nan_to_num(np.abs(found))
    best = np.bincount(strength[:, 1:].argmax(0), minlength=len(measures)) / SAMPLES
    orders = draw.permuted(np.tile(reached[0], (ORDERS, 1)), axis=1)
    luck = np.nan_to_num(np.abs([rank_correlation(each, orders) for each in known])).max(0)
    return Predictors(
        metric,
        names,
        {name: tuple(each.tolist()) for name, each in zip(measures, known, strict=True)},
        tuple(reached[0].tolist()),
        {name: figure_of(each) for name, each in zip(measures, found, strict=True)},
        dict(zip(measures, best.tolist(), strict=True)),
        float(np.quantile(luck, 0.95)),
        float((luck >= strength[:, 0].max() - 1e-9).mean()),
    )


def _number(finding: Finding, measure: str) -> float:
    found = finding.facts["measures"][measure]
    return float("inf") if found is None else float(found)


def _shown(x: Figure) -> str:
    return f"{x.value:+.2f} ({x.low:+.2f} to {x.high:+.2f})"


def draw_predictors(found: Predictors, canvas: Any) -> None:
    """Draw a panel for each measure, with a point for each contestant."""
    columns = min(3, len(found.measures))
    rows = -(-len(found.measures) // columns)
    grid = canvas.subplots(rows, columns, squeeze=False, sharey=True)
    colours = "#0072b2 #d55e00 #009e73 #e69f00 #cc79a7 #56b4e9 #000000 #999999".split()
    for axes, (measure, values) in zip(grid.flat, found.measures.items(), strict=False):
        finite = [x for x in values if np.isfinite(x)] or [0.0]
        beyond = max(finite) + 0.1 * (max(finite) - min(finite) or 1.0)
        for i, (name, x, y) in enumerate(
            zip(found.contestants, values, found.reached, strict=True)
        ):
            here = x if np.isfinite(x) else beyond
            mark = "os^Dv*PX"[i // 2 % 8] if np.isfinite(x) else ">"
            axes.plot([here], [y], mark, color=colours[i % 8], ms=7, label=name)
        title = f"{measure}: {found.correlations[measure].value:+.2f}"
        axes.set_title(title, loc="left", fontsize=10)
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in grid.flat[len(found.measures) :]:
        axes.set_visible(False)
    for line in grid:
        line[0].set_ylabel(found.metric)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
