"""What an experiment is: contestants with one budget, and metrics over held-out documents."""

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
"""Numbers of held-out documents by name, each [documents]."""


@dataclass(frozen=True)
class Metric:
    """A number over held-out documents.

    Attributes:
        name: As the tables have it.
        about: What it is, in a sentence.
        of: `of(columns, counts)` gives it for many samples at once, [samples]; counts
            [samples, documents] say how often each sample has each document.
        more_is_better: Is it one to make large?
        scale: What it is multiplied by in tables: 100 for percent.
    """

    name: str
    about: str
    of: Callable[[Columns, np.ndarray], np.ndarray]
    more_is_better: bool = True
    scale: float = 1.0


def mean_of(column: str, where: str | None = None) -> Callable[[Columns, np.ndarray], np.ndarray]:
    """The mean of a column over documents, or over those that have a 1 in another.

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
    """The sum of a column divided by that of another, such as right and all masked tokens.

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
    """The mean F1 of labels, numbered from 0, over those that are true or given somewhere.

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
    """NaN where nothing is below: a sample without such documents says nothing."""
    return np.divide(above, below, out=np.full(len(above), np.nan), where=below != 0)


@dataclass(frozen=True)
class Attempt:
    """One contestant with one seed.

    Attributes:
        seed: Of all that is drawn.
        folder: Where it may keep what a kill would cost: it is there again when the same attempt
            is made again, and is deleted when that is done.
        say: Is told what is going on.
        shared: Where several attempts keep what all of them begin with, such as a pretrained
            model; it stays.
    """

    seed: int
    folder: Path
    say: Callable[[str], None]
    shared: Path = Path()


@dataclass(frozen=True)
class Outcome:
    """What came of an attempt.

    Attributes:
        documents: Columns of numbers, one for each held-out document, in the same order for all
            contestants. A column `group`, if there is one, says which documents are drawn together
            in the bootstrap (questions on one article); else each is drawn alone. With groups,
            contestants may have other documents (calls of their own), as long as the groups
            mean the same.
        cost: What was spent, such as tokens and steps; seconds of a core are added.
        facts: Whatever else is worth keeping, for the JSON file.
    """

    documents: Mapping[str, Sequence[float]]
    cost: Mapping[str, float] = field(default_factory=dict[str, float])
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Contestant:
    """A system or a baseline.

    Attributes:
        name: Its own, as `--only` takes it and tables have it.
        about: What it is, in a sentence.
        attempt: Trains and measures it.
        settings: All that decides its result beside the seed: with others, it is run anew.
        seeded: Do seeds change its result? What has none is run once.
        published: What a paper has for it, by metric, as tables have it.
    """

    name: str
    about: str
    attempt: Callable[[Attempt], Outcome]
    settings: Mapping[str, Any]
    seeded: bool = True
    published: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Claim:
    """Something that a paper, or we, would expect, and that the figures decide.

    It holds where the interval of the difference is above the margin, is wrong where that is
    below it, and is undecided in between.

    Attributes:
        text: In words.
        better: A contestant.
        worse: Another.
        metric: By which; a loss counts the other way round.
        margin: By how much, in the units of the tables.
    """

    text: str
    better: str
    worse: str
    metric: str
    margin: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """The question which number that is known before training goes with the first metric.

    Attributes:
        measures: The names of these numbers. Each attempt has them in `facts["measures"]`, where
            None is larger than all numbers.
        among: The contestants that are compared.
    """

    measures: Sequence[str]
    among: Sequence[str]


@dataclass(frozen=True)
class Experiment:
    """A question, who is asked, and what decides.

    Attributes:
        name: As the command takes it.
        title: Of the page.
        asks: What it asks, in a sentence or two.
        scale: The name of the scale.
        contestants: In the order of the tables.
        reference: The name of the one that the others are compared with.
        metrics: The first is what the paragraph in words is about.
        budget: What each may spend, in a sentence.
        data: The sources, with sha256, and how they are split; a line each.
        claims: What the figures are to decide.
        notes: What a reader must know before comparing; a line each.
        sources: Where the published figures are from; a line each.
        prediction: Which measures may predict the first metric; None if there are none.
        family: Which command has it; the names of its files begin with that.
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
        """Raises if a name stands for nothing."""
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
        """What papers have for a contestant, by metric."""
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
