"""Measurement of how fast sparse and dense attention are on this machine."""

from __future__ import annotations

import functools
import statistics
import time
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from longbird.core.graph import bigbird
from longbird.core.layout import Layout
from longbird.core.operator.api import attention
from longbird.core.operator.call import Call
from longbird.core.operator.dispatch import choose
from longbird.errors import InvalidValueError


@dataclass(frozen=True)
class Curve:
    """Time as a function of the number of query-key pairs, linear between measured points.

    Examples:
        >>> curve = Curve(((100, 2.0), (200, 3.0)))
        >>> curve(150), curve(400), curve.overhead
        (2.5, 5.0, 1.0)
    """

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        pairs = [at for at, _ in self.points]
        if len(pairs) < 2 or pairs != sorted(set(pairs)):
            raise InvalidValueError(
                f"received points at {pairs}, expected two or more with ascending pairs"
            )

    def __call__(self, pairs: float) -> float:
        """Return the seconds for a number of pairs."""
        at = [known for known, _ in self.points]
        right = min(max(bisect_right(at, pairs), 1), len(at) - 1)
        (x0, y0), (x1, y1) = self.points[right - 1], self.points[right]
        straight = y0 + (y1 - y0) * (pairs - x0) / (x1 - x0)
        # Because of noise, a line through small calls may be negative, or a long one decreasing.
        nearest = (x0, y0) if pairs < x1 else (x1, y1)
        return max(straight, 0.1 * nearest[1] * pairs / nearest[0])

    @property
    def overhead(self) -> float:
        """Seconds of a call without pairs."""
        return self(0)

    @property
    def seconds_per_pair(self) -> float:
        """Slope at the largest numbers of pairs."""
        (x0, y0), (x1, y1) = self.points[-2:]
        return (y1 - y0) / (x1 - x0)


@dataclass(frozen=True)
class Calibration:
    """The speed of this machine for heads of one shape and one dtype.

    Attributes:
        sparse: Seconds of `longbird.attention` by the number of computed pairs.
        dense: Seconds of torch's `scaled_dot_product_attention` by the number of pairs.
        implementation: Implementation of `longbird.attention` that was timed.
        threads: Number of threads of torch.
        seconds: Duration of the calibration.
    """

    sparse: Curve
    dense: Curve
    implementation: str
    threads: int
    seconds: float


def computed_pairs(layout: Layout) -> int:
    """Return the query-key pairs that are computed for a layout: whole tiles, and global tokens.

    Examples:
        >>> import longbird as lb
        >>> layout = lb.Window(3).layout(256, heads=2, block=64)
        >>> layout.edges(), computed_pairs(layout)
        (3560, 81920)
    """
    rows, columns = np.diff(layout.queries.starts), np.diff(layout.keys.starts)
    widths = np.concatenate([[0], np.cumsum(columns[layout.columns], dtype=np.int64)])
    keys_of_row = widths[layout.row_ptr[:, 1:]] - widths[layout.row_ptr[:, :-1]]
    listed = int((keys_of_row * rows).sum()) * (layout.heads // layout.row_ptr.shape[0])
    around = layout.queries.tokens + layout.keys.tokens
    return listed + layout.heads * len(layout.global_tokens) * around


def calibrate(
    heads: int = 12,
    head_dim: int = 64,
    dtype: torch.dtype = torch.float32,
    backward: bool = False,
    block: int = 64,
) -> Calibration:
    """Measure how fast sparse and dense attention are; cached until the process ends.

    Args:
        heads: Number of heads in the timed calls.
        head_dim: Size of a head.
        dtype: Dtype of q, k and v.
        backward: Whether to time forward and backward together.
        block: Size of tiles in the sparse calls.

    Returns:
        Calibration with the current number of threads of torch.
    """
    return _calibrate(heads, head_dim, dtype, backward, block, torch.get_num_threads())


@functools.lru_cache(maxsize=64)
def _calibrate(
    heads: int, head_dim: int, dtype: torch.dtype, backward: bool, block: int, threads: int
) -> Calibration:
    start = time.perf_counter()
    graph = bigbird(block=block)
    probe = torch.empty(1, heads, 1, head_dim, dtype=dtype)
    implementation = choose(Call.checked(probe, probe, probe, graph), "auto").NAME

    def sparse(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention(q, k, v, graph, impl=implementation)

    def timed(n: int, function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> float:
        generator = torch.Generator().manual_seed(n)
        shape = (1, heads, n, head_dim)
        q, k, v, gradient = (
            torch.randn(shape, generator=generator).to(dtype).requires_grad_(backward)
            for _ in range(4)
        )

        def call() -> None:
            with torch.set_grad_enabled(backward):
                out = function(q, k, v)
                if backward:
                    torch.autograd.grad(out, (q, k, v), gradient.detach())

        return _typical_seconds(call)

    # The shortest length measures the fixed cost of a call, which determines from which length on
    # sparse is faster. Dense attention changes its tiling at 192 and 768 tokens: it gets a point
    # in each range, and two in the last, from which longer calls are extrapolated.
    return Calibration(
        sparse=Curve(
            tuple(
                (computed_pairs(graph.layout(n, heads=heads)), timed(n, sparse))
                for n in (32, 256, 2048)
            )
        ),
        dense=Curve(
            tuple(
                (heads * n * n, timed(n, scaled_dot_product_attention))
                for n in (32, 128, 512, 896, 1408)
            )
        ),
        implementation=implementation,
        threads=threads,
        seconds=time.perf_counter() - start,
    )


def _typical_seconds(call: Callable[[], None], budget: float = 0.15) -> float:
    """Return the lower quartile of the seconds of a few calls, within about the budget.

    The lower quartile is used because other load can only slow calls down.
    """
    call()
    samples: list[float] = []
    end = time.perf_counter() + budget
    while len(samples) < 2 or (len(samples) < 40 and time.perf_counter() < end):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return statistics.quantiles(samples, n=4, method="inclusive")[0]
