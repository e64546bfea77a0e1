"""The comparison behind `longbird bench attention`: everything in one run, side by side."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from longbird.bench.contest import UnavailableError, contest, first_line, refuse_if_too_slow
from longbird.bench.environment import command_line, environment, load_average, memory_bytes
from longbird.bench.memory import extra_bytes
from longbird.bench.peers import (
    DENSE,
    FLEX,
    HUGGING_FACE_BIGBIRD,
    HUGGING_FACE_LONGFORMER,
    AttentionFunction,
    Peer,
    difference,
    longbird,
)
from longbird.bench.timing import interleave, ratio, rounds_within, warm_up
from longbird.bench.work import Work
from longbird.cost import FLOPS_FORWARD, FLOPS_FORWARD_BACKWARD, Plan, plan
from longbird.graph.presets import bigbird

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 65536)
SHORT_LENGTHS = (64, 128, 256)  # for the crossover: here only dense attention takes part
SGEMM = "sgemm"
SGEMM_SIZE = 2048
CREATE_BLOCK_MASK = "create_block_mask, one head"
TOLERANCE = 1e-4  # of a peer's output in float32, for inputs of variance 1

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What to measure, and how long it may take.

    Attributes:
        work: Graph and heads.
        lengths: Lengths at which everybody takes part.
        implementation: Longbird's implementation that runs.
        peers: Whom it is compared with.
        repeats: Most rounds of a series; slow series have fewer, but never less than three.
        limit: A peer whose call is predicted to take more seconds than this is left out, visibly.
        budget: Seconds that the rounds of one series may take.
        reference_length: Length of most rows of the design's table.
        long_length: Length whose time per token is held against the reference length's.
        big_length: Length at which layouts are built and peak memory is taken.
    """

    work: Work = field(default_factory=Work)
    lengths: tuple[int, ...] = LENGTHS
    implementation: str = "native"
    peers: tuple[Peer, ...] = (DENSE, FLEX, HUGGING_FACE_BIGBIRD, HUGGING_FACE_LONGFORMER)
    repeats: int = 9
    limit: float = 20.0
    budget: float = 60.0
    reference_length: int = 4096
    long_length: int = 65536
    big_length: int = 16384

    def quick(self) -> Settings:
        """The same work at lengths that take a minute instead of ten."""
        return replace(
            self,
            lengths=(512, 1024),
            repeats=min(self.repeats, 3),
            budget=5.0,
            reference_length=1024,
            long_length=4096,
            big_length=2048,
        )


@dataclass(frozen=True)
class Series:
    """One length, forward or forward and backward: seconds per call, round by round."""

    n: int
    backward: bool
    edges: int
    samples: dict[str, list[float]]
    first_call: dict[str, float]
    skipped: dict[str, str]
    planned: dict[str, float]

    def share_of_sgemm(self, name: str, head_dim: int) -> list[float]:
        """Useful flops per second, as a share of a matrix multiplication's in the same round."""
        flops = (
            self.edges * head_dim * (FLOPS_FORWARD_BACKWARD if self.backward else FLOPS_FORWARD)
        )
        multiplication = 2 * SGEMM_SIZE**3
        return [
            (flops / mine) / (multiplication / theirs)
            for mine, theirs in zip(self.samples[name], self.samples[SGEMM], strict=True)
        ]


@dataclass(frozen=True)
class PeakMemory:
    """Peak memory of one call beyond inputs and results; or why it was not taken."""

    peer: str
    n: int
    backward: bool
    extra_bytes: int | None
    skipped: str | None = None
    planned: int | None = None


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
    linearity: dict[int, list[float]]
    layout: dict[str, list[float]]
    layout_skipped: dict[str, str]
    memory: list[PeakMemory]
    plans: list[Plan]

    def at(self, n: int, *, backward: bool) -> Series | None:
        """The series of a length, if it was measured."""
        found = [each for each in self.series if each.n == n and each.backward == backward]
        return found[0] if found else None

    def crossover(self, *, backward: bool) -> int | None:
        """Shortest measured length from which on Longbird beats dense attention; None: nowhere."""
        shortest = None
        for each in sorted(self.series, key=lambda series: series.n):
            if each.backward != backward or DENSE.name not in each.samples:
                continue
            wins = ratio(each.samples[DENSE.name], each.samples[self.longbird]).median > 1
            shortest = (shortest or each.n) if wins else None
        return shortest


def stages(settings: Settings) -> int:
    """How many times `run` will tell what it is doing."""
    return 2 * len(_all_lengths(settings)) + 5


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
    tell("calibrating the planner")
    plans = [
        plan(
            settings.work.graph,
            n,
            heads=settings.work.heads,
            head_dim=settings.work.head_dim,
            batch=settings.work.batch,
            backward=backward,
        )
        for n in _all_lengths(settings)
        for backward in (False, True)
    ]
    tell("checking that everybody computes what it claims (this compiles FlexAttention)")
    verified = {
        peer.name: _verify(peer, settings.work, settings.lengths)
        for peer in (mine, *settings.peers)
    }
    honest = [peer for peer in settings.peers if not _deviates(verified[peer.name])]
    series: list[Series] = []
    for planned in plans:
        mode = "forward and backward" if planned.backward else "forward"
        tell(f"{planned.n:,} tokens, {mode}")
        short = planned.n not in settings.lengths
        taking_part = [peer for peer in honest if not short or peer is DENSE]
        measured = _series(settings, mine, taking_part, planned, series)
        for peer in settings.peers:
            if peer not in honest:
                measured.skipped[peer.name] = f"its output is off by {verified[peer.name]:.2g}"
        series.append(measured)
    tell(f"time per token at {settings.long_length:,} tokens")
    linearity = _linearity(settings, mine)
    tell(f"layouts for {settings.big_length:,} tokens")
    layout, layout_skipped = _layouts(settings)
    tell(f"peak memory at {settings.big_length:,} tokens")
    memory = _memory(settings, mine)
    where["load_after"] = load_average()
    return Result(
        settings=settings,
        environment=where,
        command=command_line(),
        date=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        longbird=mine.name,
        verified=verified,
        series=series,
        linearity=linearity,
        layout=layout,
        layout_skipped=layout_skipped,
        memory=memory,
        plans=plans,
    )


def _all_lengths(settings: Settings) -> list[int]:
    return sorted({*SHORT_LENGTHS, *settings.lengths})


def _verify(peer: Peer, work: Work, lengths: Sequence[int]) -> float | str:
    """The peer's deviation at the first length that it runs and the dense reference can hold."""
    reason = "no length was short enough to check it"
    for n in sorted(lengths):
        if work.batch * work.heads * n * n > 12 * 2048**2:
            break
        try:
            return difference(peer, work, n)
        except UnavailableError as error:
            reason = str(error)
        except Exception as error:  # whatever a peer fails with is the reason it is left out
            if peer.name.startswith("longbird"):
                raise
            reason = first_line(error)
    return f"not checked: {reason}"


def _deviates(verified: float | str) -> bool:
    return not isinstance(verified, str) and not verified <= TOLERANCE


def _series(
    settings: Settings, mine: Peer, peers: Sequence[Peer], planned: Plan, before: Sequence[Series]
) -> Series:
    work, n, backward = settings.work, planned.n, planned.backward
    inputs = work.inputs(n)

    def entry(peer: Peer) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            peer.refuse_if_impossible(work, n, backward=backward)
            if peer is not mine:
                known = [
                    (series.n, min(series.samples[peer.name]))
                    for series in before
                    if series.backward == backward and peer.name in series.samples
                ]
                refuse_if_too_slow(known, n, peer.growth, settings.limit)
            return _contestant(peer.build(work, n), *inputs, backward=backward)

        return prepare

    a, b = torch.randn(
        2, SGEMM_SIZE, SGEMM_SIZE, generator=torch.Generator().manual_seed(0)
    ).unbind()
    entries = {peer.name: entry(peer) for peer in (mine, *peers)}
    entries[SGEMM] = lambda: lambda: torch.matmul(a, b)
    held = contest(entries, mine.name, budget=settings.budget, repeats=settings.repeats)
    return Series(
        n=n,
        backward=backward,
        edges=planned.edges * work.batch,
        samples=held.samples,
        first_call=held.first_call,
        skipped=held.skipped,
        planned={mine.name: planned.seconds, DENSE.name: planned.dense_seconds},
    )


def _contestant(
    function: AttentionFunction,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    backward: bool,
) -> Callable[[], object]:
    if not backward:

        def forward() -> object:
            with torch.no_grad():
                return function(q, k, v)

        return forward

    leaves = tuple(x.detach().requires_grad_() for x in (q, k, v))
    gradient = torch.randn(q.shape, generator=torch.Generator().manual_seed(1))

    def forward_backward() -> object:
        return torch.autograd.grad(function(*leaves), leaves, gradient)

    return forward_backward


def _linearity(settings: Settings, mine: Peer) -> dict[int, list[float]]:
    """Seconds per token of forward calls at the reference length and the long one, in turns."""
    lengths = (settings.reference_length, settings.long_length)
    contestants = {
        str(n): _contestant(mine.build(settings.work, n), *settings.work.inputs(n), backward=False)
        for n in lengths
    }
    expected = {name: warm_up(call).later for name, call in contestants.items()}
    rounds = rounds_within(expected, settings.budget, settings.repeats)
    samples = interleave(contestants, expected, rounds)
    return {n: [seconds / n for seconds in samples[str(n)]] for n in lengths}


def _layouts(settings: Settings) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Seconds to build Longbird's layout for all heads, and Flex's block mask for one.

    Every sample of ours is of a graph with another seed, so that none of them is in the cache.
    """
    work, n = settings.work, settings.big_length
    seeds = iter(range(1, 1_000_000))

    def ours() -> object:
        graph = bigbird(block=work.block, window=work.window, random=work.random, seed=next(seeds))
        return graph.layout(n, heads=work.heads)

    contestants: dict[str, Callable[[], object]] = {"longbird": ours}
    skipped: dict[str, str] = {}
    free = memory_bytes("MemAvailable")
    if free is not None and 16 * n * n > free:  # it holds a few arrays n x n while it builds
        skipped[CREATE_BLOCK_MASK] = (
            f"needs about {16 * n * n / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free"
        )
    else:
        try:
            contestants[CREATE_BLOCK_MASK] = _create_block_mask(work, n)
        except ImportError as error:
            skipped[CREATE_BLOCK_MASK] = f"this torch has no FlexAttention: {error}"
    expected = {name: warm_up(call).later for name, call in contestants.items()}
    rounds = rounds_within(expected, settings.budget / 2, settings.repeats)
    return interleave(contestants, expected, rounds), skipped


def _create_block_mask(work: Work, n: int) -> Callable[[], object]:
    from torch.nn.attention.flex_attention import create_block_mask

    size = work.block
    layout = work.graph.layout(n, heads=1, block=size)
    seen = np.zeros((layout.queries.count, layout.keys.count), dtype=bool)
    seen[layout.rows, layout.columns] = True
    table = torch.from_numpy(seen)

    def mask_mod(
        batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor
    ) -> torch.Tensor:
        return table[query // size, key // size]

    return lambda: create_block_mask(mask_mod, None, None, n, n, device="cpu", BLOCK_SIZE=size)


def _memory(settings: Settings, mine: Peer) -> list[PeakMemory]:
    """Peaks at the big length and a quarter of it: linear memory is a claim about both."""
    work = settings.work
    taken: list[PeakMemory] = []
    for n in (settings.big_length // 4, settings.big_length):
        for peer in (mine, *(each for each in settings.peers if each is not FLEX)):
            for backward in (False, True):
                predicted = plan(
                    work.graph, n, heads=work.heads, head_dim=work.head_dim, backward=backward
                ).bytes_extra
                try:
                    extra = extra_bytes(peer, work, n, backward=backward)
                    taken.append(
                        PeakMemory(
                            peer.name,
                            n,
                            backward,
                            extra,
                            planned=predicted if peer is mine else None,
                        )
                    )
                except UnavailableError as error:
                    taken.append(PeakMemory(peer.name, n, backward, None, str(error)))
    return taken
