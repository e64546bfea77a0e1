"""What attention along a graph will cost on this machine, before it is run.

Work and memory are counted from the layout, exactly. Time comes from a calibration: a second or
two in which a few small calls of sparse and of dense attention are timed here, with the threads
that torch has now. Nothing is assumed about the processor.
"""

from __future__ import annotations

import functools
import statistics
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from longbird.graph.base import Graph
from longbird.graph.presets import bigbird
from longbird.layout import Layout
from longbird.ops.api import attention
from longbird.ops.call import Call
from longbird.ops.dispatch import choose

# Multiplications and additions for one query and one key of one head, per element of the head:
# forward multiplies q with k and the weight with v; backward does the first again and adds four.
FLOPS_FORWARD = 4
FLOPS_FORWARD_BACKWARD = 14


@dataclass(frozen=True)
class Curve:
    """Seconds against the number of query-key pairs, straight between measured points.

    Examples:
        >>> curve = Curve(((100, 2.0), (200, 3.0)))
        >>> curve(150), curve(400), curve.overhead
        (2.5, 5.0, 1.0)
    """

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        pairs = [at for at, _ in self.points]
        if len(pairs) < 2 or pairs != sorted(set(pairs)):
            raise ValueError(
                f"received points at {pairs}, expected two or more with ascending pairs"
            )

    def __call__(self, pairs: float) -> float:
        """Seconds for that many pairs."""
        at = [known for known, _ in self.points]
        right = min(max(bisect_right(at, pairs), 1), len(at) - 1)
        (x0, y0), (x1, y1) = self.points[right - 1], self.points[right]
        straight = y0 + (y1 - y0) * (pairs - x0) / (x1 - x0)
        # Noise may bend a line through small calls below zero, or a long one downwards.
        nearest = (x0, y0) if pairs < x1 else (x1, y1)
        return max(straight, 0.1 * nearest[1] * pairs / nearest[0])

    @property
    def overhead(self) -> float:
        """Seconds of a call that computes nothing."""
        return self(0)

    @property
    def seconds_per_pair(self) -> float:
        """Slope at the long end."""
        (x0, y0), (x1, y1) = self.points[-2:]
        return (y1 - y0) / (x1 - x0)


@dataclass(frozen=True)
class Calibration:
    """How fast this machine is, for heads of one shape and one dtype.

    Attributes:
        sparse: Seconds of `longbird.attention` for a number of computed pairs.
        dense: Seconds of torch's `scaled_dot_product_attention` for a number of pairs.
        implementation: The implementation of `longbird.attention` that was timed.
        threads: Threads that torch had.
        seconds: What the calibration itself took.
    """

    sparse: Curve
    dense: Curve
    implementation: str
    threads: int
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What attention costs: all layers and the whole batch.

    Attributes:
        graph: What attends to what.
        n: Tokens of a sequence.
        batch: Sequences.
        heads: Heads of a layer.
        head_dim: Size of a head.
        layers: Layers that attend, one after the other.
        dtype: Storage of q, k, v and the output.
        backward: Is the backward pass counted too?
        edges: Query-key pairs of the graph, over all heads of one sequence and layer.
        computed: Pairs that are computed for them, because tiles are computed whole.
        flops: Floating-point operations that the edges need.
        flops_computed: Those that are done.
        bytes_inputs: q, k and v of one layer.
        bytes_output: The output of one layer.
        bytes_gradients: Gradients of q, k, v and the output of one layer; 0 without backward.
        bytes_saved: Kept from forward to backward besides q, k, v and outputs, over all layers.
        bytes_layout: The layout, which lives as long as it is cached.
        bytes_scratch: Work space of the native kernels; None for another implementation.
        seconds: Predicted time.
        dense_seconds: Predicted time of dense attention (torch SDPA) for the same tokens.
        crossover: The length from which on sparse is predicted to win, None if it never does up to
            `crossover_searched` tokens.
        crossover_searched: The longest length that was looked at for it.
        calibration: What the times come from.
    """

    graph: Graph
    n: int
    batch: int
    heads: int
    head_dim: int
    layers: int
    dtype: torch.dtype
    backward: bool
    edges: int
    computed: int
    flops: int
    flops_computed: int
    bytes_inputs: int
    bytes_output: int
    bytes_gradients: int
    bytes_saved: int
    bytes_layout: int
    bytes_scratch: int | None
    seconds: float
    dense_seconds: float
    crossover: int | None
    crossover_searched: int
    calibration: Calibration

    @property
    def density(self) -> float:
        """Edges as a share of all pairs."""
        return self.edges / max(1, self.heads * self.n * self.n)

    @property
    def speedup(self) -> float:
        """How many times faster than dense attention."""
        return self.dense_seconds / self.seconds

    @property
    def bytes_extra(self) -> int:
        """Memory of one layer's call beyond q, k, v, the output and the gradients."""
        return self.bytes_saved // self.layers + self.bytes_layout + (self.bytes_scratch or 0)

    def __str__(self) -> str:
        """A short table for people."""
        crossover = (
            f"sparse wins from {self.crossover:,} tokens on"
            if self.crossover is not None
            else f"dense is faster at every length up to {self.crossover_searched:,} tokens"
        )
        memory = [("inputs", self.bytes_inputs), ("output", self.bytes_output)]
        memory += [("gradients", self.bytes_gradients)] if self.backward else []
        memory += [("saved", self.bytes_saved), ("layout", self.bytes_layout)]
        memory += [("scratch", self.bytes_scratch)] if self.bytes_scratch is not None else []
        dtype = str(self.dtype).removeprefix("torch.")
        passes = "forward and backward" if self.backward else "forward"
        more = 100 * (self.computed / max(1, self.edges) - 1)
        known = self.calibration
        rows = {
            "graph": repr(self.graph),
            "call": f"{self.n:,} tokens, batch {self.batch}, {self.heads} heads of "
            f"{self.head_dim}, {_count(self.layers, 'layer')}, {dtype}, {passes}",
            "edges": f"{self.edges:,} a sequence and layer ({100 * self.density:.3g}% of dense); "
            f"computed {self.computed:,} ({more:.1f}% more)",
            "work": f"{_flops(self.flops)}; computed {_flops(self.flops_computed)}",
            "memory": ", ".join(f"{name} {_bytes(count)}" for name, count in memory),
            "time": f"{_seconds(self.seconds)}, dense {_seconds(self.dense_seconds)} "
            f"({self.speedup:.1f} x)",
            "crossover": crossover,
            "calibrated": f"{known.implementation}, {_count(known.threads, 'thread')}, "
            f"in {_seconds(known.seconds)}: {_seconds(known.sparse.overhead)} a call and "
            f"{1e12 * known.sparse.seconds_per_pair:,.0f} ps a computed pair, "
            f"dense {1e12 * known.dense.seconds_per_pair:,.0f} ps a pair",
        }
        return "\n".join(f"{name:<12}{value}" for name, value in rows.items())


def plan(
    graph_or_config: Graph | Mapping[str, Any],
    n: int,
    *,
    heads: int = 12,
    head_dim: int = 64,
    batch: int = 1,
    dtype: torch.dtype = torch.float32,
    backward: bool = False,
    calibration: Calibration | None = None,
) -> Plan:
    """Predict FLOPs, bytes and time of attention, and the length above which sparse wins here.

    Args:
        graph_or_config: A graph, or a mapping with `graph` (a Graph or its JSON) and, as needed,
            `heads`, `head_dim` and `layers`, which then replace the arguments.
        n: Tokens of a sequence.
        heads: Heads.
        head_dim: Size of a head.
        batch: Sequences.
        dtype: Storage of q, k and v.
        backward: Count the backward pass too.
        calibration: How fast the machine is; None measures it (once in a process).

    Returns:
        The plan; printing it gives a short table.

    Examples:
        >>> import longbird as lb
        >>> known = Calibration(
        ...     Curve(((10**6, 1e-3), (10**7, 1e-2))),
        ...     Curve(((10**6, 1e-3), (10**7, 1e-2))),
        ...     implementation="native",
        ...     threads=2,
        ...     seconds=0.0,
        ... )
        >>> plan = lb.plan(lb.bigbird(), 4096, calibration=known)
        >>> plan.crossover <= 1024, plan.speedup > 6
        (True, True)
    """
    layers = 1
    if isinstance(graph_or_config, Mapping):
        graph, heads, head_dim, layers = _config(graph_or_config, heads, head_dim)
    else:
        graph = graph_or_config
    if not isinstance(graph, Graph):
        raise TypeError(
            f"received {type(graph).__name__}, expected a Graph or a mapping with one as 'graph'"
        )
    for name, value in (
        ("n", n),
        ("heads", heads),
        ("head_dim", head_dim),
        ("batch", batch),
        ("layers", layers),
    ):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1")

    layout = graph.layout(n, heads=heads)
    if calibration is None:
        calibration = calibrate(heads, head_dim, dtype, backward, block=layout.queries.size)
    edges, computed = layout.edges() * batch * layers, computed_pairs(layout) * batch * layers
    flops = head_dim * (FLOPS_FORWARD_BACKWARD if backward else FLOPS_FORWARD)
    itemsize = torch.empty((), dtype=dtype).element_size()
    tensor = batch * heads * n * head_dim * itemsize
    log_sum_exp = batch * heads * n * 4
    crossover, searched = _crossover(graph, n, heads, calibration)
    return Plan(
        graph=graph,
        n=n,
        batch=batch,
        heads=heads,
        head_dim=head_dim,
        layers=layers,
        dtype=dtype,
        backward=backward,
        edges=layout.edges(),
        computed=computed_pairs(layout),
        flops=edges * flops,
        flops_computed=computed * flops,
        bytes_inputs=3 * tensor,
        bytes_output=tensor,
        bytes_gradients=4 * tensor if backward else 0,
        bytes_saved=log_sum_exp * layers,
        bytes_layout=layout.nbytes,
        bytes_scratch=(
            _native_scratch(layout, heads, head_dim, calibration.threads, backward)
            if calibration.implementation == "native"
            else None
        ),
        seconds=layers * calibration.sparse(computed // layers),
        dense_seconds=layers * calibration.dense(batch * heads * n * n),
        crossover=crossover,
        crossover_searched=searched,
        calibration=calibration,
    )


def computed_pairs(layout: Layout) -> int:
    """Query-key pairs that are computed for a layout: tiles whole, global rows and columns.

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


def _native_scratch(
    layout: Layout, heads: int, head_dim: int, threads: int, backward: bool
) -> int:
    """Work space of csrc/attention-inl.h: a few tiles a thread, and sums of gradients in backward.

    Backward adds up grad_k and grad_v of a whole head in float32 before it writes them (in place
    if it can; this is the bound). That is one pair of sums for each thread, or where there are
    fewer than eight heads, one for each of the chunks that every head is cut into.
    """
    tile = layout.queries.size
    matrices, squares = (9, 2) if backward else (5, 1)
    scratch = threads * (matrices * tile * head_dim + squares * tile * tile)
    if backward:
        pieces = threads * -(-8 // heads)
        scratch += pieces * 2 * layout.keys.tokens * head_dim
    return 4 * scratch


def calibrate(
    heads: int = 12,
    head_dim: int = 64,
    dtype: torch.dtype = torch.float32,
    backward: bool = False,
    block: int = 64,
) -> Calibration:
    """Measure how fast sparse and dense attention are here; cached for the life of the process.

    Args:
        heads: Heads of the calls that are timed.
        head_dim: Their size.
        dtype: Their dtype.
        backward: Time forward and backward together.
        block: Tile of the sparse calls.

    Returns:
        The calibration, taken with the number of threads that torch has now.
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

    # The shortest length says what a call costs whatever it computes, which decides where sparse
    # begins to win. Dense attention changes its own tiling at 192 and 768 tokens: it gets a point
    # in each range, and two in the last, along which longer calls are predicted.
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
    """Lower quartile of a few calls after a warm one, within about the budget.

    The lower quartile, because whatever else the machine does can only slow a call down.
    """
    call()
    samples: list[float] = []
    end = time.perf_counter() + budget
    while len(samples) < 2 or (len(samples) < 40 and time.perf_counter() < end):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return statistics.quantiles(samples, n=4, method="inclusive")[0]


def _crossover(
    graph: Graph, n: int, heads: int, calibration: Calibration
) -> tuple[int | None, int]:
    """The length from which on sparse wins for good, and how far was looked."""

    def wins(length: int) -> bool:
        try:
            layout = graph.layout(length, heads=heads)
        except ValueError:
            return False  # a graph that names positions has none at this length
        sparse = calibration.sparse(computed_pairs(layout))
        return sparse < calibration.dense(heads * length * length)

    lengths = [2**power for power in range(4, 14)]
    lengths += [n] if n > lengths[-1] else []
    losing = [length for length in lengths if not wins(length)]
    if not losing:
        return lengths[0], lengths[-1]
    low = losing[-1]
    if low == lengths[-1]:
        return None, low
    high = lengths[lengths.index(low) + 1]
    while high - low > 16:  # nobody asks for the crossover more precisely
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return high, lengths[-1]


def _config(config: Mapping[str, Any], heads: int, head_dim: int) -> tuple[Graph, int, int, int]:
    known = {"graph", "heads", "head_dim", "layers"}
    if "graph" not in config or set(config) - known:
        raise ValueError(
            f"received a mapping with the keys {sorted(config)}, expected 'graph' and none but "
            f"{sorted(known)}"
        )
    graph = config["graph"]
    return (
        Graph.from_json(graph) if isinstance(graph, str) else graph,
        config.get("heads", heads),
        config.get("head_dim", head_dim),
        config.get("layers", 1),
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _seconds(seconds: float) -> str:
    return _in_units(1e6 * seconds, ("µs", "ms", "s"))


def _bytes(count: float) -> str:
    return _in_units(count, ("B", "kB", "MB", "GB", "TB"))


def _flops(count: float) -> str:
    return _in_units(count, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"))


def _in_units(value: float, units: Sequence[str]) -> str:
    """Three digits in the unit that suits, each unit a thousand times the one before."""
    number = 0
    while value >= 999.5 and number < len(units) - 1:
        value, number = value / 1000, number + 1
    return f"{value:.3g} {units[number]}"
