"""Classification of windows: baselines, and a model with and without pretraining.

Columns are `score`, `positive`, `said` and `group`; `apart`, which is 0 at examples that share at
least 15% with a training example; and one column for each set, which is 1 at its examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from experiments.dna.examples import Examples
from experiments.dna.linear import AtContent, OneHot, Scorer, Words
from experiments.framework.experiment import Attempt, Contestant, Outcome

if TYPE_CHECKING:
    from experiments.dna.models import Start

TWIN = 0.15
"""Share of the words of 21 bases by which a held-out window is a twin of one learned from."""


@dataclass(frozen=True)
class Budget:
    """The budget of fine-tuning.

    Attributes:
        steps: Number of training steps.
        batch: Tokens per step.
        learning_rate: Peak learning rate.
        step: Bases between the windows of a scan; scores in between are interpolated.
    """

    steps: int = 480
    batch: int = 4096
    learning_rate: float = 1e-3
    step: int = 13

    @property
    def words(self) -> str:
        """Description for the page."""
        return (
            f"{self.steps:,} steps of {self.batch:,} tokens, learning rate "
            f"{self.learning_rate:g} at most, as short trials chose it by validation windows"
        )


@dataclass(frozen=True)
class Set:
    """A data set of windows.

    Attributes:
        name: Unique name, which names the negatives.
        load: Reads the set.
        settings: Everything that determines it.
        pool: Pooling of the small network.
        epochs: Maximum number of epochs of the small network.
        budget: Budget of a model.
        wider: The same places with more bases around them, if any.
    """

    name: str
    load: Callable[[], Examples]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    pool: int = 1
    epochs: int = 30
    budget: Budget = field(default_factory=Budget)
    wider: Callable[[], Examples] | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of classifier.

    Attributes:
        name: Name of the contestant.
        about: Description.
        make: Makes an untrained scorer.
        seeded: Whether the result depends on the seed.
        settings: Everything that determines it besides the set.
        wide: Whether it reads the wider windows.
    """

    name: str
    about: str
    make: Callable[[Set, Attempt], Scorer]
    seeded: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    wide: bool = False


def _network(given: Set, attempt: Attempt) -> Scorer:
    from experiments.dna.cnn import Cnn

    return Cnn(attempt.seed, pool=given.pool, epochs=given.epochs)


_CHOSEN = "logistic regression, regularised as cross-validation chooses, on"
BASELINES = (
    Kind("A+T content", "the share of A and T", lambda *_: AtContent()),
    Kind("5-mers", f"{_CHOSEN} how often each word of 5 bases is there", lambda *_: Words(5)),
    Kind("one-hot", f"{_CHOSEN} which base is at which place", lambda *_: OneHot()),
    Kind(
        "small CNN",
        "three layers of 100 filters of 15, 9 and 5, and the maximum over all places; in windows "
        "of more than 500 bases, the maximum of four behind the first layer",
        _network,
        seeded=True,
    ),
)


def models(start: Start) -> list[Kind]:
    """Return a pretrained model and its twin without pretraining."""
    from experiments.dna.finetuned import Finetuned
    from experiments.dna.models import PRETRAINED, TWIN

    def make(which: Callable[[Attempt], Any], given: Set, attempt: Attempt) -> Scorer:
        folder = attempt.folder / given.name.replace(" ", "-")
        return Finetuned(which(attempt), folder, attempt.seed, given.budget, attempt.say)

    return [
        Kind(name, about, partial(make, which), True, start.settings)
        for name, about, which in (
            (PRETRAINED, "pretrained, then trained on the windows", start.pretrained),
            (TWIN, "the same model with new weights, trained on the windows alone", start.twin),
        )
    ]


def contestants(sets: Sequence[Set], kinds: Sequence[Kind]) -> list[Contestant]:
    """Return contestants that are trained on all sets, one after the other."""

    def settings(kind: Kind) -> dict[str, Any]:
        own: dict[str, Any] = {}
        for each in sets:
            own[each.name] = {**each.settings}
            if kind.make is _network:
                own[each.name] |= {"pool": each.pool, "epochs": each.epochs}
            if kind.settings:
                own[each.name] |= asdict(each.budget)
        return {"sets": own, **kind.settings}

    return [
        Contestant(
            kind.name, kind.about, partial(classify, sets, kind), settings(kind), kind.seeded
        )
        for kind in kinds
    ]


def classify(sets: Sequence[Set], kind: Kind, attempt: Attempt) -> Outcome:
    """Train on each set, and score its held-out windows."""
    columns: dict[str, list[float]] = {}
    cost: Counter[str] = Counter()
    facts: dict[str, Any] = {}
    for each in sets:
        given = each.wider() if kind.wide and each.wider is not None else each.load()
        learned, held = given.learned, given.held_out
        attempt.say(f"{each.name}: {len(learned.positive):,} windows to learn from")
        scorer = kind.make(each, attempt).fit(learned.windows, learned.positive, learned.group)
        scores = scorer.scores(held.windows)
        here = {
            "score": scores.tolist(),
            "positive": held.positive.tolist(),
            "said": (scores > getattr(scorer, "threshold", 0.0)).tolist(),
            "group": held.group.tolist(),
            "apart": (given.likeness < TWIN).tolist(),
            **{other.name: [other is each] * len(scores) for other in sets},
        }
        for name, values in here.items():
            columns.setdefault(name, []).extend(values)
        cost["windows"] += len(learned.positive)
        cost.update(getattr(scorer, "cost", {}))
        facts[each.name] = {
            "positives": int(held.positive.sum()),
            "negatives": int((~held.positive).sum()),
        }
        if history := getattr(scorer, "history", None):
            facts[each.name]["validation AP by epoch"] = history
    return Outcome(columns, dict(cost), facts)
