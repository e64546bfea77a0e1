"""The ratios that the project aims for in training, which need the extra `train`."""

from __future__ import annotations

from experiments.speed.contest import Contest
from experiments.speed.report import Goal
from experiments.speed.run import Result
from experiments.speed.targets import MINE, faster
from experiments.speed.timing import Spread
from experiments.speed.training.peers import ONE_BY_ONE, PEERS
from experiments.speed.training.steps import REFERENCE


def training_goals(result: Result) -> list[Goal]:
    """Compare a run of the experiment `training` with its targets, for each shape."""
    bigbird, longformer, chunks = (peer.name for peer in PEERS)
    ragged = [
        *((name, 5) for name in (bigbird, longformer)),
        *((peer.name, 5) for peer in ONE_BY_ONE.values()),
        (chunks, 1),
    ]
    rows: list[Goal] = []
    for held in result.contests:
        case = held.case
        targets = ragged if case.ragged else [(chunks, 1)]
        if case.length == REFERENCE and not case.ragged:
            targets = [(bigbird, 3), (longformer, 2.5), (chunks, 1)]
        what = f"training, {case}"
        rows += [faster(what, peer, least, held.samples) for peer, least in targets]
        rows.append(_loading(held, what, 0.03))
    return rows


def _loading(held: Contest, what: str, most: float) -> Goal:
    goal = Goal(what, "waiting for data", f"under {most:.0%} of a step")
    shares = held.facts.get(f"loading, {MINE}")
    if not shares:
        return goal
    share = Spread.of(shares).median
    return Goal(goal.what, goal.peer, goal.target, f"{share:.2%}", share < most)
