"""The steps of the experiments `encoders` and `int8`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from experiments.speed.contest import Peer
from experiments.speed.encoders.case import SHAPES, Case, Shape, without_layers
from experiments.speed.encoders.peers import HUGGING_FACE_BIGBIRD, PEERS, longbird, named
from experiments.speed.memory import peak
from experiments.speed.run import Result, Settings, Step

LENGTHS = (1024, 2048, 4096, 8192, 16384)
QUICK = (1024, 4096, 8192)  # the rows of the README
REFERENCE = 4096  # of the targets; forward runs all layers here
LONGEST = 16384
CHECKED = 1024  # tokens, which the dense reference can hold


@dataclass(frozen=True, kw_only=True)
class EncoderSettings(Settings):
    """What to measure.

    Attributes:
        shapes: Sizes of the encoders.
        layers: Number of layers that run. Models without layers run as well, and the time of the
            whole encoder is computed from the difference. The forward pass at the reference length
            runs all layers.
        ragged: Lengths of the documents of one padded batch, for the first shape.
        long_length: Length of one forward pass of Longbird through all layers of the last shape; 0
            for none.
    """

    mine: Peer = field(default_factory=longbird)
    peers: tuple[Peer, ...] = PEERS
    lengths: tuple[int, ...] = LENGTHS
    budget: float = 15.0
    shapes: tuple[Shape, ...] = tuple(SHAPES.values())
    layers: int = 1
    ragged: tuple[int, ...] = (4096, 1024, 512, 300)
    long_length: int = 1_000_000

    @classmethod
    def quickly(cls, **given: Any) -> EncoderSettings:
        """Return what the README quotes: one training step, and no long sequence."""
        chosen: dict[str, Any] = {"lengths": QUICK, "long_length": 0, **given}
        return cls(**chosen, quick=True)

    @classmethod
    def rounded(cls, implementation: str, **given: Any) -> EncoderSettings:
        """Return settings that compare Longbird's int8 weights with its float32 weights."""
        chosen: dict[str, Any] = {"lengths": (REFERENCE,), "repeats": 21, "budget": 60.0, **given}
        mine, peers = longbird(implementation, quantize=True), (longbird(implementation),)
        return cls(mine=mine, peers=peers, long_length=0, **chosen)

    def case(self, shape: Shape, *lengths: int, training: bool = False) -> Case:
        """Return the case of documents, with as many layers as run at their lengths."""
        every = lengths == (REFERENCE,) and not training
        layers = shape.layers if every else min(self.layers, shape.layers)
        return Case(shape, lengths, layers, training)

    @property
    def cases(self) -> list[Case]:
        """The comparisons of one document, and that of the padded batch."""
        one = [
            self.case(shape, n, training=training)
            for shape in self.shapes
            for training in (False, True)
            for n in sorted(self.lengths)
            if not (training and self.quick and (shape, n) != (self.shapes[0], REFERENCE))
        ]
        return [*one, self.case(self.shapes[0], *self.ragged)]

    @property
    def memory_cases(self) -> list[Case]:
        """The cases whose memory is measured; linear growth needs two lengths."""
        longest = LONGEST if self.quick else max(self.lengths)
        cases = [
            Case(shape, (n,), min(self.layers, shape.layers), training)
            for shape in self.shapes
            for n in (longest, longest // 4)
            for training in (False, True)
        ]
        return cases[:1] if self.quick else cases

    @property
    def long_case(self) -> Case | None:
        """The case of the long forward pass, or None."""
        shape = self.shapes[-1]
        return Case(shape, (self.long_length,), shape.layers) if self.long_length else None


def steps(settings: EncoderSettings) -> list[Step]:
    """Return all steps in order."""
    small = settings.case(settings.shapes[0], CHECKED)
    peaks = settings.everybody
    if settings.quick:
        peaks = tuple(x for x in peaks if x in (settings.mine, HUGGING_FACE_BIGBIRD))
    listed = [
        Step("checking that everybody computes what it claims", lambda x: x.verify(small)),
        *(Step(str(case), partial(_compare, case)) for case in settings.cases),
        *(
            Step(f"peak memory, {case}", partial(_peaks, case, peaks))
            for case in settings.memory_cases
        ),
    ]
    if settings.long_case:
        once = partial(_peaks, settings.long_case, (settings.mine,))
        listed.append(Step(f"{settings.long_case}, once", once))
    return listed


def forward_steps(settings: EncoderSettings) -> list[Step]:
    """Return the forward passes of one document only; int8 is not checked, since it rounds."""
    cases = [case for case in settings.cases if not case.training and len(case.lengths) == 1]
    return [Step(str(case), partial(_compare, case)) for case in cases]


def _compare(case: Case, result: Result) -> None:
    everybody = result.settings.everybody
    bare = replace(case, layers=0)
    more = {
        without_layers(peer.name): partial(result.ready, peer, bare, math.inf)
        for peer in everybody
        if case.layers < case.shape.layers
    }
    # Rows with a target are never left out for taking long.
    limit = math.inf if case.lengths == (REFERENCE,) else None
    held = result.compare(case, everybody, more, limit=limit)
    for peer in everybody:  # who fails without layers cannot be compared either
        why = held.skipped.pop(without_layers(peer.name), None)
        if why is not None:
            held.skipped.setdefault(peer.name, why)


def _peaks(case: Case, peers: tuple[Peer, ...], result: Result) -> None:
    # Not shorter: Hugging Face's BigBird would switch to full attention, and stay there.
    small = replace(case, lengths=(min(case.n, 1024),))
    result.peaks.extend(peak(named, peer.name, case, small) for peer in peers)
