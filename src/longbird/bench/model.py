"""The comparison behind `longbird bench model`: whole encoders in one run, side by side."""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from longbird.bench.attention import TOLERANCE, Tell
from longbird.bench.contest import UnavailableError, contest, first_line, refuse_if_too_slow
from longbird.bench.encoders import (
    PEERS,
    SHAPES,
    Encoder,
    Shape,
    adamw,
    difference,
    documents,
    longbird,
    ready,
)
from longbird.bench.environment import command_line, environment, load_average
from longbird.bench.memory import ask_fresh_process, peak_bytes, reset_peak

LENGTHS = (1024, 2048, 4096, 8192, 16384)
MODES = {False: "forward", True: "training step"}


@dataclass(frozen=True)
class Settings:
    """What to measure, and how long it may take.

    Attributes:
        shapes: Sizes of the encoders.
        lengths: Lengths of the one document that everybody reads.
        layers: Layers that are run, beside models without layers: the difference is what a layer
            takes, and whole encoders are computed from it. Forward at the reference length runs
            all layers of a shape.
        implementation: Longbird's implementation of attention.
        peers: Whom it is compared with.
        repeats: Most rounds of a series; slow series have fewer, but never less than three.
        limit: A peer whose call is predicted to take more seconds than this is left out, visibly,
            but not at the reference length.
        budget: Seconds that the rounds of one series may take.
        reference_length: Length of the design's rows.
        ragged: Lengths of the documents of one padded batch, for the first shape.
        long_length: Tokens of one forward pass through all layers of the last shape, by Longbird
            alone; 0 for none.
    """

    shapes: tuple[Shape, ...] = tuple(SHAPES.values())
    lengths: tuple[int, ...] = LENGTHS
    layers: int = 1
    implementation: str = "native"
    peers: tuple[Encoder, ...] = PEERS
    repeats: int = 9
    limit: float = 20.0
    budget: float = 15.0
    reference_length: int = 4096
    ragged: tuple[int, ...] = (4096, 1024, 512, 300)
    long_length: int = 1_000_000

    @property
    def memory_lengths(self) -> list[int]:
        """The longest length and a quarter of it: linear memory is a claim about both."""
        longest = max(self.lengths)
        return [n for n in (longest // 4, longest) if n in self.lengths]

    def quick(self) -> Settings:
        """The same at one short length, which takes a few minutes."""
        return replace(
            self,
            lengths=(1024,),
            repeats=min(self.repeats, 3),
            budget=5.0,
            reference_length=1024,
            ragged=(1024, 512, 300),
            long_length=16384,
        )

    def layers_of(self, shape: Shape, n: int, *, training: bool) -> int:
        """How many layers are run of one document of n tokens."""
        whole = n == self.reference_length and not training
        return shape.layers if whole else min(self.layers, shape.layers)


@dataclass(frozen=True)
class Series:
    """One batch through encoders of one shape: seconds per call, round by round.

    Attributes:
        shape: The whole encoders.
        layers: How many of their layers were run.
        lengths: Tokens of each document.
        training: A training step, rather than forward?
        samples: With these layers.
        empty: Without layers, in the same rounds, unless all layers were run.
        skipped: Why somebody did not take part.
    """

    shape: Shape
    layers: int
    lengths: tuple[int, ...]
    training: bool
    samples: dict[str, list[float]]
    empty: dict[str, list[float]]
    skipped: dict[str, str]

    @property
    def n(self) -> int:
        """Tokens of the longest document."""
        return max(self.lengths)

    @property
    def whole(self) -> dict[str, list[float]]:
        """Seconds of whole encoders: what is done once, and every layer as those that were run."""
        if self.layers == self.shape.layers:
            return self.samples
        times = self.shape.layers / self.layers
        return {
            name: [
                once + times * (some - once)
                for some, once in zip(taken, self.empty[name], strict=True)
            ]
            for name, taken in self.samples.items()
        }


@dataclass(frozen=True)
class Pass:
    """One call in a process of its own; or why there was none.

    Attributes:
        peer: Who ran.
        shape: With the layers that were run.
        n: Tokens.
        training: A training step, rather than forward?
        extra_bytes: How far the peak of resident memory rose above what was resident before.
        peak_bytes: That peak, weights and libraries included.
        seconds: How long the call took, its layouts included.
        skipped: Why it did not run.
    """

    peer: str
    shape: Shape
    n: int
    training: bool
    extra_bytes: int | None = None
    peak_bytes: int | None = None
    seconds: float | None = None
    skipped: str | None = None


@dataclass(frozen=True)
class Result:
    """All that one run measured."""

    settings: Settings
    environment: dict[str, Any]
    command: str
    date: str
    longbird: str
    verified: dict[str, float | str]
    series: list[Series]
    ragged: Series
    memory: list[Pass]
    long: Pass | None

    def at(self, name: str, n: int, *, training: bool) -> Series | None:
        """The series of a shape's name and a length, if it was measured."""
        wanted = (name, n, training)
        found = [x for x in self.series if (x.shape.name, x.n, x.training) == wanted]
        return found[0] if found else None


def stages(settings: Settings) -> int:
    """How many times `run` will tell what it is doing."""
    shapes, peaks = len(settings.shapes), len(settings.memory_lengths)
    return 2 + shapes * (2 * len(settings.lengths) + peaks) + (settings.long_length > 0)


def run(settings: Settings, tell: Tell = lambda text: None) -> Result:
    """Measure everything.

    Args:
        settings: What to measure.
        tell: Called with what is done next, `stages(settings)` times.

    Returns:
        The samples and what was left out, with reasons.
    """
    mine = longbird(settings.implementation)
    where = environment()
    tell("checking that everybody computes what it claims")
    n = min(settings.lengths)
    verified = {peer.name: _verify(peer, settings, n) for peer in (mine, *settings.peers)}
    series: list[Series] = []
    for shape in settings.shapes:
        for training in (False, True):
            for n in sorted(settings.lengths):
                layers = settings.layers_of(shape, n, training=training)
                tell(f"{shape.name}, layers: {layers}, {n:,} tokens, {MODES[training]}")
                blank = Series(shape, layers, (n,), training, {}, {}, {})
                series.append(_measured(blank, settings, mine, verified, series))
    shape = settings.shapes[0]
    layers = min(settings.layers, shape.layers)
    listed = ", ".join(f"{n:,}" for n in settings.ragged)
    tell(f"{shape.name}, layers: {layers}, a padded batch of {listed} tokens, forward")
    blank = Series(shape, layers, settings.ragged, False, {}, {}, {})
    ragged = _measured(blank, settings, mine, verified, [])
    memory: list[Pass] = []
    for shape in settings.shapes:
        for n in settings.memory_lengths:
            tell(f"{shape.name}, peak memory at {n:,} tokens")
            part = replace(shape, layers=min(settings.layers, shape.layers))
            for peer in (mine, *settings.peers):
                memory += _passes(peer, part, n, (False, True))
    long = None
    if settings.long_length:
        n, shape = settings.long_length, settings.shapes[-1]
        tell(f"{shape.name}, layers: {shape.layers}, {n:,} tokens, forward, once")
        [long] = _passes(mine, shape, n, (False,))
    where["load_after"] = load_average()
    return Result(
        settings=settings,
        environment=where,
        command=command_line(),
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        longbird=mine.name,
        verified=verified,
        series=series,
        ragged=ragged,
        memory=memory,
        long=long,
    )


def _verify(peer: Encoder, settings: Settings, n: int) -> float | str:
    if n > 2048:
        return f"not checked: {n:,} tokens are too many for the dense reference"
    try:
        return difference(peer, settings.shapes[0], n)
    except UnavailableError as error:
        return f"not checked: {error}"
    except Exception as error:  # whatever a peer fails with is the reason it is left out
        if peer.name.startswith("longbird"):
            raise
        return f"not checked: {first_line(error)}"


def _measured(
    blank: Series,
    settings: Settings,
    mine: Encoder,
    verified: dict[str, float | str],
    before: Sequence[Series],
) -> Series:
    """A series with its samples."""
    n, training, texts = blank.n, blank.training, documents(blank.lengths)

    def entry(peer: Encoder, layers: int) -> Callable[[], Callable[[], object]]:
        shape = replace(blank.shape, layers=layers)

        def prepare() -> Callable[[], object]:
            deviation = verified[peer.name]
            if not isinstance(deviation, str) and not deviation <= TOLERANCE:
                raise UnavailableError(f"its output is off by {deviation:.2g}")
            peer.refuse_if_impossible(shape, blank.lengths, training=training)
            if peer is not mine and n != settings.reference_length:
                known = [
                    (each.n, min(each.samples[peer.name]) * blank.layers / each.layers)
                    for each in before
                    if (each.shape, each.training) == (blank.shape, training)
                    and peer.name in each.samples
                ]
                refuse_if_too_slow(known, n, peer.growth, settings.limit)
            model = peer.model(shape, n)
            return ready(model, peer.inputs(texts), adamw(model) if training else None)

        return prepare

    everybody = (mine, *settings.peers)
    empty = {f"{peer.name}, no layers": peer for peer in everybody}
    if blank.layers == blank.shape.layers:
        empty = {}
    held = contest(
        {peer.name: entry(peer, blank.layers) for peer in everybody}
        | {name: entry(peer, 0) for name, peer in empty.items()},
        mine.name,
        budget=settings.budget,
        repeats=settings.repeats,
    )
    # Who fails without layers cannot be compared either.
    skipped = {empty[x].name: why for x, why in held.skipped.items() if x in empty}
    skipped |= {name: why for name, why in held.skipped.items() if name not in empty}
    taking_part = [peer.name for peer in everybody if peer.name not in skipped]
    return replace(
        blank,
        samples={name: held.samples[name] for name in taking_part},
        empty={peer.name: held.samples[x] for x, peer in empty.items() if x in held.samples},
        skipped=skipped,
    )


def _passes(peer: Encoder, shape: Shape, n: int, modes: Sequence[bool]) -> list[Pass]:
    """Calls without and with training, in one fresh process, because importing takes so long."""
    refused: dict[bool, str] = {}
    for training in modes:
        try:
            peer.refuse_if_impossible(shape, [n], training=training)
        except UnavailableError as error:
            refused[training] = str(error)
    request = {
        "peer": peer.name,
        "shape": asdict(shape),
        "n": n,
        "modes": [training for training in modes if training not in refused],
        "threads": torch.get_num_threads(),
    }
    answer: dict[str, Any] = {}
    try:
        answer = ask_fresh_process("longbird.bench.model", request) if request["modes"] else {}
    except UnavailableError as error:
        refused = {training: refused.get(training, str(error)) for training in modes}
    return [
        Pass(peer.name, shape, n, training, skipped=refused[training])
        if training in refused
        else Pass(peer.name, shape, n, training, **answer[MODES[training]])
        for training in modes
    ]


def measure_here(peer: Encoder, shape: Shape, n: int, modes: Sequence[bool]) -> dict[str, Any]:
    """Time and memory of one call of each mode in this very process, which should be a fresh one.

    The model runs a short text first, so that libraries, thread pools and AdamW's state are there
    before memory is looked at. What the call takes is then activations and gradients.
    """
    model = peer.model(shape, n)
    answer: dict[str, Any] = {}
    for training in modes:
        optimizer = adamw(model) if training else None
        # Not shorter: Hugging Face's BigBird would switch to full attention, and stay there.
        ready(model, peer.inputs(documents([min(n, 1024)])), optimizer)()
        call = ready(model, peer.inputs(documents([n])), optimizer)
        if optimizer is not None:
            optimizer.zero_grad()
        before, start = reset_peak(), time.perf_counter()
        call()
        seconds, peak = time.perf_counter() - start, peak_bytes()
        answer[MODES[training]] = {
            "extra_bytes": peak - before,
            "peak_bytes": peak,
            "seconds": seconds,
        }
    return answer


def main(arguments: str) -> None:
    """Entry of the child process: a JSON request in, a JSON answer on standard output."""
    request = json.loads(arguments)
    torch.set_num_threads(request["threads"])
    name = request["peer"]
    named = {peer.name: peer for peer in PEERS}
    peer = named.get(name) or longbird(name.removeprefix("longbird "))
    try:
        answer = measure_here(peer, Shape(**request["shape"]), request["n"], request["modes"])
    except UnavailableError as error:
        answer = {"unavailable": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
