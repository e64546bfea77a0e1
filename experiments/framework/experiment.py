"""An experiment: contestants with one budget, and metrics over held-out documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longbird.errors import InvalidValueError

if TYPE_CHECKING:
    from experiments.framework.registry import Options

Columns = Mapping[str, np.ndarray]
"""Columns of numbers by name, with one number for each held-out document, [documents]."""


@dataclass(frozen=True)
class Metric:
    """A number over held-out documents.

    Attributes:
        name: Name in tables.
        about: Description in one sentence.
        of: `of(columns, counts)` returns the metric of many samples at once, [samples]. `counts`
            [samples, documents] contains how often each document occurs in each sample.
        more_is_better: Whether larger values are better.
        scale: Factor for tables, such as 100 for percent.
    """

    name: str
    about: str
    of: Callable[[Columns, np.ndarray], np.ndarray]
    more_is_better: bool = True
    scale: float = 1.0


def mean_of(column: str, where: str | None = None) -> Callable[[Columns, np.ndarray], np.ndarray]:
    """Return a metric: the mean of a column, over all documents or those with 1 in column `where`.

    Examples:
        >>> columns = {"right": np.array([1.0, 0.0, 1.0]), "long": np.array([1.0, 1.0, 0.0])}
        >>> every = np.ones((1, 3))
        >>> mean_of("right", where="long")(columns, every)
        array([0.5])
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        weights = np.ones(counts.shape[1]) if where is None else columns[where]
        return _quotient(counts @ (weights * columns[column]), counts @ weights)

    return of


def ratio_of(above: str, below: str) -> Callable[[Columns, np.ndarray], np.ndarray]:
    """Return a metric: the sum of a column divided by the sum of another column.

    Examples:
        >>> columns = {"right": np.array([1, 5]), "predicted": np.array([2, 6])}
        >>> ratio_of("right", "predicted")(columns, np.array([[1, 1], [2, 0]]))
        array([0.75, 0.5 ])
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        return _quotient(counts @ columns[above], counts @ columns[below])

    return of


def macro_f1_of(
    true: str, given: str, where: str | None = None
) -> Callable[[Columns, np.ndarray], np.ndarray]:
    """Return a metric: the mean F1 over labels, numbered from 0, that are true or given somewhere.

    Examples:
        >>> columns = {"true": np.array([0, 0, 1, 1]), "given": np.array([0, 1, 1, 1])}
        >>> print(macro_f1_of("true", "given")(columns, np.ones((1, 4))).round(3))
        [0.733]
    """

    def of(columns: Columns, counts: np.ndarray) -> np.ndarray:
        weights = np.ones(counts.shape[1]) if where is None else columns[where]
        counts = counts * weights
        labels = np.arange(int(max(columns[true].max(), columns[given].max())) + 1)
        truly = columns[true][:, None] == labels  # [documents, labels]
        said = columns[given][:, None] == labels
        either = counts @ truly.astype(float) + counts @ said
        f1 = 2 * (counts @ (truly & said)) / np.maximum(either, 1)
        return _quotient(f1.sum(1), (either > 0).sum(1))

    return of


def _quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Divide, with NaN for samples that contain no such documents."""
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below != 0)


@dataclass(frozen=True)
class Attempt:
    """One run of a contestant with one seed.

    Attributes:
        seed: Seed of all random numbers.
        folder: Folder for intermediate results. It is kept if the attempt is interrupted, so that
            repeating it can resume, and deleted when the attempt is done.
        say: Receives messages about the progress.
        shared: Folder for what several attempts start from, such as a pretrained model. It is
            never deleted.
    """

    seed: int
    folder: Path
    say: Callable[[str], None]
    shared: Path = Path()


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt.

    Attributes:
        documents: Columns with one number for each held-out document, in the same order for all
            contestants. An optional column `group` contains which documents the bootstrap draws
            together, such as questions about one article. With groups, contestants can have
            different documents, such as their own calls in a scan.
        cost: Costs such as tokens and steps; the seconds of processor time are added.
        facts: Other facts for the JSON file.
    """

    documents: Mapping[str, Sequence[float]]
    cost: Mapping[str, float] = field(default_factory=dict[str, float])
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Contestant:
    """A system or a baseline.

    Attributes:
        name: Unique name, for tables and `--only`.
        about: Description in one sentence.
        attempt: Trains and measures it.
        settings: Everything that determines the result besides the seed. If it changes, the
            contestant is run again.
        seeded: Whether the result depends on the seed; otherwise it is run once.
        published: Published figures by metric, in the units of the tables.
    """

    name: str
    about: str
    attempt: Callable[[Attempt], Outcome]
    settings: Mapping[str, Any]
    seeded: bool = True
    published: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Claim:
    """An expectation that the figures confirm or refute.

    It holds if the interval of the difference is above the margin, does not hold if the interval
    is below it, and is undecided otherwise.

    Attributes:
        text: The claim in words.
        better: Contestant that is expected to be better.
        worse: Contestant that is expected to be worse.
        metric: Metric of the comparison.
        margin: Smallest difference, in the units of the tables.
    """

    text: str
    better: str
    worse: str
    metric: str
    margin: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """The question which number known before training predicts the first metric.

    Attributes:
        measures: Names of these numbers. Each attempt has them in `facts["measures"]`, where
            None is larger than all numbers.
        among: Contestants that are compared.
    """

    measures: Sequence[str]
    among: Sequence[str]


@dataclass(frozen=True)
class Experiment:
    """A question, the contestants, and the metrics that decide.

    Attributes:
        name: Name on the command line.
        title: Title of the page.
        asks: The question in one or two sentences.
        scale: Name of the scale.
        contestants: Contestants in the order of the tables.
        reference: Name of the contestant that the others are compared with.
        metrics: Metrics; the summary in words is about the first.
        budget: Budget of each contestant, in one sentence.
        data: Sources with sha256, and the split; one line each.
        claims: Claims that the figures decide.
        notes: Remarks that a reader needs for a comparison; one line each.
        sources: Sources of the published figures; one line each.
        prediction: Measures that may predict the first metric.
        family: First part of the names of its files.
    """

    name: str
    title: str
    asks: str
    scale: str
    contestants: Sequence[Contestant]
    reference: str
    metrics: Sequence[Metric]
    budget: str
    data: Sequence[str]
    claims: Sequence[Claim] = ()
    notes: Sequence[str] = ()
    sources: Sequence[str] = ()
    prediction: Prediction | None = None
    family: str = "quality"

    def __post_init__(self) -> None:
        """Raise an error if a name does not exist."""
        names = [each.name for each in self.contestants]
        metrics = [each.name for each in self.metrics]
        named = [
            self.reference,
            *(x for claim in self.claims for x in (claim.better, claim.worse)),
            *(self.prediction.among if self.prediction else ()),
        ]
        if len(set(names)) < len(names) or not set(named) <= set(names):
            raise ValueError(f"contestants must have names of their own: {names}, named {named}")
        if not {claim.metric for claim in self.claims} <= set(metrics):
            raise ValueError(f"claims must be about the metrics {metrics}")

    def published_of(self, name: str) -> Mapping[str, float]:
        """Return the published figures of a contestant, by metric."""
        return next(each.published for each in self.contestants if each.name == name)

    def run(self, options: Options) -> list[Path]:
        """Run the attempts that are missing, and write the results of all."""
        from experiments.framework.report import Report
        from experiments.framework.run import run
        from longbird.files.sources.packages import cache_folder

        names = [each.name for each in self.contestants]
        if not set(options.only) <= set(names):
            raise InvalidValueError(
                f"`only` is {', '.join(options.only)}, expected some of {', '.join(names)}"
            )
        work = cache_folder() / self.family if options.work is None else options.work
        found = run(self, tuple(range(options.seeds)), work, options.only, options.tell)
        return Report(found).write(options.out)
