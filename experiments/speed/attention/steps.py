"""The steps of the experiment `attention`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from experiments.speed.attention.case import Case
from experiments.speed.attention.peers import (
    DENSE,
    FLEX,
    HUGGING_FACE_LONGFORMER,
    PEERS,
    longbird,
    named,
)
from experiments.speed.contest import Call, Peer, UnavailableError, refuse_without_memory
from experiments.speed.memory import peak
from experiments.speed.run import Result, Settings, Step
from longbird.analysis.plan import plan
from longbird.core.graph.presets import bigbird

SHORT = (64, 128, 256)  # for the crossover: here only dense attention takes part
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 65536)
QUICK = (512, 4096, 16384, 65536)  # the rows of the README
REFERENCE, BIG, LONG = 4096, 16384, 65536  # targets; memory; time per token
DENSE_LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)  # of the graphs that are dense
CHECKED = (512, 1024)  # tokens, which the dense reference can hold
SGEMM = "sgemm"
SGEMM_SIZE = 2048
CREATE_BLOCK_MASK = "create_block_mask, one head"


@dataclass(frozen=True, kw_only=True)
class AttentionSettings(Settings):
    """What to measure; the length of `case` is ignored.

    No step exceeds the longest length.
    """

    mine: Peer = field(default_factory=longbird)
    peers: tuple[Peer, ...] = PEERS
    lengths: tuple[int, ...] = LENGTHS
    case: Case = field(default_factory=lambda: Case(REFERENCE))

    @classmethod
    def quickly(cls, **given: Any) -> AttentionSettings:
        """Return what the README quotes: backward at one length, and no Longformer."""
        peers = tuple(peer for peer in PEERS if peer is not HUGGING_FACE_LONGFORMER)
        chosen: dict[str, Any] = {"lengths": QUICK, "peers": peers, "budget": 20.0, **given}
        return cls(**chosen, quick=True)

    def at(self, n: int, **changes: Any) -> Case:
        """Return the case of a length, or of the longest length if that is shorter."""
        return replace(self.case, n=min(n, max(self.lengths)), **changes)

    @property
    def bigbird_cases(self) -> list[Case]:
        """The comparisons along BigBird's graph."""
        forward = [replace(self.case, n=n) for n in sorted({*SHORT, *self.lengths})]
        kept = [self.at(REFERENCE)] if self.quick else forward
        return forward + [replace(case, backward=True) for case in kept]

    @property
    def dense_cases(self) -> list[Case]:
        """The comparisons along dense graphs."""
        return [
            replace(self.case, n=n, pattern=pattern, backward=backward)
            for pattern in ("full", "causal")
            for backward in ((False,) if self.quick else (False, True))
            for n in DENSE_LENGTHS
            if n <= max(self.lengths)
        ]

    @property
    def memory_cases(self) -> list[Case]:
        """The cases whose memory is measured; linear growth needs two lengths."""
        big = self.at(BIG)
        cases = [big, replace(big, n=big.n // 4)]
        return [big] if self.quick else cases + [replace(case, backward=True) for case in cases]


def steps(settings: AttentionSettings) -> list[Step]:
    """Return all steps in order."""
    small = [replace(settings.case, n=n) for n in CHECKED]
    long, big = settings.at(LONG, task="time per token"), settings.at(BIG, task="layout")
    return [
        Step(
            "checking that everybody computes what it claims (this compiles FlexAttention)",
            lambda result: result.verify(*small),
        ),
        *(
            Step(f"{case.n:,} tokens, {case.mode}", partial(_along_bigbird, case))
            for case in settings.bigbird_cases
        ),
        *(
            Step(f"{case.graph!r}, {case.n:,} tokens, {case.mode}", partial(_along_dense, case))
            for case in settings.dense_cases
        ),
        Step(f"time per token at {long.n:,} tokens", partial(_per_token, long)),
        Step(f"layouts for {big.n:,} tokens", partial(_layouts, big)),
        *(
            Step(f"peak memory at {case.n:,} tokens, {case.mode}", partial(_peaks, case))
            for case in settings.memory_cases
        ),
    ]


def _along_bigbird(case: Case, result: Result) -> None:
    settings = result.settings
    taking_part = settings.everybody if case.n in settings.lengths else (settings.mine, DENSE)
    sizes: dict[str, Any] = {"heads": case.heads, "head_dim": case.head_dim, "batch": case.batch}
    planned = plan(case.graph, case.n, **sizes, backward=case.backward)
    result.compare(
        case,
        [peer for peer in taking_part if peer in settings.everybody],
        {SGEMM: _sgemm},
        edges=planned.edges * case.batch,
        planned={result.mine: planned.seconds, DENSE.name: planned.dense_seconds},
        planned_crossover=planned.crossover,
        planned_bytes=planned.bytes_extra,
    )


def _sgemm() -> Call:
    shape = (2, SGEMM_SIZE, SGEMM_SIZE)
    a, b = torch.randn(shape, generator=torch.Generator().manual_seed(0)).unbind()
    return lambda: torch.matmul(a, b)


def _along_dense(case: Case, result: Result) -> None:
    result.compare(case, (result.settings.mine, DENSE))


def _per_token(long: Case, result: Result) -> None:
    """Time the forward pass at the reference length and at the long one, in turns."""
    settings = result.settings
    cases = [replace(long, n=n, task="attention") for n in (settings.at(REFERENCE).n, long.n)]
    entries = {str(case.n): partial(settings.mine.call, case) for case in cases}
    result.compare(long, (), entries)


def _layouts(case: Case, result: Result) -> None:
    """Compare Longbird's layout for all heads with Flex's block mask for one head.

    Every sample has a graph with another seed, so that no layout is in the cache.
    """
    seeds = iter(range(1, 1_000_000))

    def ours() -> object:
        sizes = {"block": case.block, "window": case.window, "random": case.random}
        return bigbird(**sizes, seed=next(seeds)).layout(case.n, heads=case.heads)

    theirs = partial(_create_block_mask, case)
    result.compare(case, (), {result.mine: lambda: ours, CREATE_BLOCK_MASK: theirs})


def _create_block_mask(case: Case) -> Call:
    n, size = case.n, case.block
    refuse_without_memory(16 * n * n)  # it holds a few arrays n x n while it builds
    try:
        from torch.nn.attention.flex_attention import create_block_mask
    except ImportError as error:
        raise UnavailableError(f"this torch has no FlexAttention: {error}") from error

    layout = case.graph.layout(n, heads=1, block=size)
    seen = np.zeros((layout.queries.count, layout.keys.count), dtype=bool)
    seen[layout.rows, layout.columns] = True
    table = torch.from_numpy(seen)

    def mask_mod(batch: Any, head: Any, query: Any, key: Any) -> torch.Tensor:
        return table[query // size, key // size]

    return lambda: create_block_mask(mask_mod, None, None, n, n, device="cpu", BLOCK_SIZE=size)


def _peaks(case: Case, result: Result) -> None:
    small = replace(case, n=max(64, min(case.n, 1024)))
    # Not of Flex: its compiler would be what is measured.
    asked = [peer.name for peer in result.settings.everybody if peer is not FLEX]
    result.peaks.extend(peak(named, name, case, small) for name in asked)
