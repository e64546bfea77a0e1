"""The steps of the experiment `training`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from experiments.speed.contest import Call, Peer, UnavailableError
from experiments.speed.encoders.case import SHAPES, Shape
from experiments.speed.memory import Peak
from experiments.speed.run import Result, Settings, Step
from experiments.speed.training.case import TOKENS, Case, documents
from experiments.speed.training.peers import ONE_BY_ONE, PEERS, longbird
from experiments.speed.training.session import Session

LENGTHS = (1024, 4096, 16384)
REFERENCE = 4096  # that of the ratios
RAGGED = 4096  # tokens that the published BigBird and Longformer read
LAYERS = {"MiniLM": 6, "BigBird-base": 2}  # up to the reference; 1 in longer and ragged ones
CHECKED = 1024  # tokens, which the dense reference can hold


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(Settings):
    """What to measure.

    Attributes:
        shapes: Sizes of the encoders.
        layers: Number of layers that run; by default as in `LAYERS`.
        ragged: Number of real documents; 0 for none.
        ragged_length: Length at which real documents are cut.
        batch: Number of real documents per step, where a batch is counted in documents.
    """

    mine: Peer = field(default_factory=longbird)
    peers: tuple[Peer, ...] = PEERS
    lengths: tuple[int, ...] = LENGTHS
    limit: float = 60.0
    budget: float = 30.0
    shapes: tuple[Shape, ...] = (SHAPES["minilm"], SHAPES["base"])
    layers: int | None = None
    ragged: int = 12
    ragged_length: int = RAGGED
    batch: int = 6

    @classmethod
    def quickly(cls, **given: Any) -> TrainingSettings:
        """Return one shape, the reference length and the real documents, with one layer."""
        shapes = given.pop("shapes", (SHAPES["minilm"],))
        chosen: dict[str, Any] = {"lengths": (REFERENCE,), "layers": 1, **given}
        return cls(shapes=shapes, **chosen, quick=True)

    def layers_of(self, shape: Shape, short: bool) -> int:
        """Return the number of layers that run."""
        some = LAYERS.get(shape.name, 1) if short else 1
        return min(self.layers or some, shape.layers)

    @property
    def cases(self) -> list[Case]:
        """The comparisons."""
        found: list[Case] = []
        for shape in self.shapes:
            for n in sorted(self.lengths):
                batch = max(1, TOKENS // n)
                found.append(Case(shape, n, batch, batch, self.layers_of(shape, n <= REFERENCE)))
            if self.ragged:
                layers = self.layers_of(shape, False)
                sizes = (self.ragged_length, self.ragged, min(self.batch, self.ragged))
                found.append(Case(shape, *sizes, layers, ragged=True))
        return found


def steps(settings: TrainingSettings) -> list[Step]:
    """Return all steps in order."""
    small = Case(settings.shapes[0], CHECKED, 1, 1, 1)
    return [
        Step("checking that everybody computes what it claims", lambda x: x.verify(small)),
        *(Step(str(case), partial(_compare, case)) for case in settings.cases),
    ]


def contestants(settings: TrainingSettings, case: Case) -> tuple[Peer, ...]:
    """Return the contestants; on real documents, some take part in two ways."""
    more = [ONE_BY_ONE[x.name] for x in settings.peers if x.name in ONE_BY_ONE]
    return (*settings.everybody, *more) if case.ragged else settings.everybody


def _compare(case: Case, result: Result, lost: Collection[str] = ()) -> None:
    sessions: dict[str, Session] = {}
    with ExitStack() as stack:

        def start(peer: Peer) -> Call:
            if peer.name in lost:
                raise UnavailableError("its process ended between two epochs: too little memory?")
            limit = math.inf if case.length == REFERENCE else result.settings.limit
            if case.ragged:
                _refuse_if_padding_is_too_slow(peer, case, result)
            session = cast(Session, result.ready(peer, case, limit))
            sessions[peer.name] = stack.enter_context(session)
            return session

        entries: dict[str, Callable[[], Call]] = {
            peer.name: partial(start, peer) for peer in contestants(result.settings, case)
        }
        texts = documents(case)
        try:
            held = result.compare(case, (), entries, lengths=[each.tokens for each in texts])
        except RuntimeError:
            dead = {name for name, session in sessions.items() if session.ended}
            if result.mine in dead or dead <= set(lost):
                raise
            return _compare(case, result, dead | set(lost))  # without those
    for name, samples in held.samples.items():
        turns = sessions[name].turns
        last = turns[-len(samples) :]
        held.facts[f"loading, {name}"] = [turn.waited / turn.seconds for turn in last]
        held.facts[f"steps, {name}"] = last[-1].steps
        peak, before = last[-1].peak_bytes, last[-1].before_bytes
        seconds = last[-1].seconds
        result.peaks.append(
            Peak(name, case, max(0, peak - before), peak_bytes=peak, seconds=seconds)
        )


def _refuse_if_padding_is_too_slow(peer: Peer, case: Case, result: Result) -> None:
    """Raise `UnavailableError` if padded batches are predicted to take too long.

    The prediction assumes that all documents are as long as the longest, at the speed measured at
    the
    reference length.
    """
    known = [
        x
        for x in result.contests
        if not x.case.ragged
        and (x.case.shape, x.case.length) == (case.shape, REFERENCE)
        and peer.name in x.samples
    ]
    if not known or peer.name not in ONE_BY_ONE:
        return
    pace = min(known[0].samples[peer.name]) / known[0].case.layers / REFERENCE
    predicted = pace * case.layers * case.documents * case.length
    if predicted > result.settings.limit:
        raise UnavailableError(
            f"padded batches are predicted to take {predicted:.0f} s, the limit is "
            f"{result.settings.limit:g} s"
        )
