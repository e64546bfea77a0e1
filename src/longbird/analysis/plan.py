"""Prediction of the cost of attention on this machine.

Work is counted exactly in the layout, and the native kernels report their own work space. Time is
predicted by a calibration, which times a few small calls of sparse and dense attention in a second
or two. No assumptions are made about the processor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from longbird.analysis.calibration import Calibration, calibrate, computed_pairs
from longbird.core.graph import Graph, as_graph
from longbird.core.graph.arguments import integer
from longbird.core.graph.edges import EdgeList
from longbird.core.layout.compile import pieces
from longbird.core.layout.layout import estimate
from longbird.core.machine import in_units, in_words, many
from longbird.core.operator import native
from longbird.core.operator.call import DTYPES, Call
from longbird.errors import InvalidTypeError, InvalidValueError

# Operations for one query and one key of one head, per element of the head: the forward pass
# multiplies q with k and the weight with v; the backward pass repeats the first and adds four.
FLOPS_FORWARD = 4
FLOPS_FORWARD_BACKWARD = 14

# Number of tiles, or of edges in edge lists, of layouts that take a few seconds to build.
MOST_LISTED = 2**22


@dataclass(frozen=True)
class Plan:
    """The predicted cost of attention, for all layers and the whole batch.

    Attributes:
        graph: Graph of the first layer.
        n: Number of tokens of a sequence.
        batch: Number of sequences.
        heads: Number of heads of a layer.
        head_dim: Size of a head.
        layers: Number of attention layers.
        dtype: Dtype of q, k, v and the output.
        backward: Whether the backward pass is included.
        edges: Edges of the graph over all heads of one sequence and layer, averaged over layers.
        computed: Query-key pairs that are computed for them, because tiles are computed whole.
        flops: Floating-point operations that the edges require.
        flops_computed: Floating-point operations that are executed.
        bytes_inputs: Size of q, k and v of one layer.
        bytes_output: Size of the output of one layer.
        bytes_gradients: Size of the gradients of q, k, v and the output of one layer; 0 without
            backward.
        bytes_saved: Size of what is kept for the backward pass besides q, k, v and outputs, over
            all layers.
        bytes_layout: Size of the layouts of all layers while they are cached.
        bytes_scratch: Peak work space of the native kernels, as they count it themselves (an upper
            bound with several threads); None for another implementation.
        seconds: Predicted time.
        dense_seconds: Predicted time of dense attention (torch SDPA) for the same tokens.
        crossover: Length from which on sparse attention is predicted to be faster; None if it is
            not up to `crossover_searched` tokens.
        crossover_searched: Longest length that was considered for it.
        calibration: Calibration on which the times are based.
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
        """Share of all pairs that are edges."""
        return self.edges / max(1, self.heads * self.n * self.n)

    @property
    def speedup(self) -> float:
        """Predicted speed relative to dense attention."""
        return self.dense_seconds / self.seconds

    @property
    def bytes_extra(self) -> int:
        """Memory of the call of one layer besides q, k, v, the output and the gradients."""
        return self.bytes_saved // self.layers + self.bytes_layout + (self.bytes_scratch or 0)

    def __repr__(self) -> str:
        """Return a short table."""
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
            "memory": ", ".join(f"{name} {in_words(count)}" for name, count in memory),
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
    graph_or_config: Graph | str | Mapping[str, Any] | Any,
    n: int,
    *,
    heads: int = 12,
    head_dim: int = 64,
    batch: int = 1,
    dtype: torch.dtype = torch.float32,
    backward: bool = False,
    calibration: Calibration | None = None,
) -> Plan:
    """Predict FLOPs, bytes and time of attention, and the length above which sparse is faster.

    Args:
        graph_or_config: One of

            - a graph, its expression, or its JSON;
            - a mapping with such a `graph` and optionally `heads`, `head_dim` and `layers`;
            - the configuration of a model, such as a `LongbirdConfig`: all its layers, each with
              its own graph (of an encoder-decoder, those of the encoder). Layers that differ only
              by their seeds are counted as the first of them.

            A mapping or a configuration replaces the arguments below. Tensors are assumed to be
            contiguous as [batch, heads, n, head_dim]; those of a configuration have the heads of
            a token side by side, as in its model, which takes the native kernels more work space.
        n: Number of tokens of a sequence.
        heads: Number of heads.
        head_dim: Size of a head.
        batch: Number of sequences.
        dtype: Dtype of q, k and v.
        backward: Whether to include the backward pass.
        calibration: Speed of the machine; by default it is measured, once in a process.

    Returns:
        Plan, which prints as a short table.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range, or counting the edges would take more than a few
            seconds; the message states how large the layout would be.

    Examples:
        >>> import longbird as lb
        >>> from longbird.analysis.calibration import Curve
        >>> known = Calibration(
        ...     Curve(((10**6, 1e-3), (10**7, 1e-2))),
        ...     Curve(((10**6, 1e-3), (10**7, 1e-2))),
        ...     implementation="native",
        ...     threads=2,
        ...     seconds=0.0,
        ... )
        >>> plan = lb.plan("bigbird", 4096, calibration=known)
        >>> plan.crossover <= 1024, plan.speedup > 6
        (True, True)
        >>> lb.plan(lb.LongbirdConfig(num_hidden_layers=6), 4096, calibration=known).layers
        6
    """
    asked = _Layers.of(graph_or_config, heads, head_dim)
    n, batch = integer(n, "n", least=1), integer(batch, "batch", least=1)
    if dtype not in DTYPES:
        raise InvalidTypeError(
            f"dtype must be one of {', '.join(map(str, DTYPES))}, received {dtype!r}"
        )
    if not isinstance(calibration, Calibration | None):
        raise InvalidTypeError(
            f"calibration must be a Calibration, or None to measure one, received {calibration!r}"
        )
    heads, head_dim, layers = asked.heads, asked.head_dim, len(asked.graphs)
    different = list(dict.fromkeys(asked.counted))
    _check_size(different, n, heads)
    layouts = {graph: graph.layout(n, heads=heads) for graph in different}
    first = asked.counted[0]
    if calibration is None:
        calibration = calibrate(heads, head_dim, dtype, backward, block=layouts[first].size)

    edges = {graph: layout.edges() for graph, layout in layouts.items()}
    computed = {graph: computed_pairs(layout) for graph, layout in layouts.items()}
    all_edges, all_computed = (sum(pairs[g] for g in asked.counted) for pairs in (edges, computed))
    cached = dict(zip(asked.graphs, asked.counted, strict=True)).values()
    flops = batch * head_dim * (FLOPS_FORWARD_BACKWARD if backward else FLOPS_FORWARD)
    tensor = batch * heads * n * head_dim * dtype.itemsize
    scratch = None
    if calibration.implementation == native.NAME and native.missing() is None:
        calls = (asked.call(graph, n, batch, dtype) for graph in different)
        scratch = max(native.work_space(call, calibration.threads, backward) for call in calls)
    crossover, searched = _crossover(first, n, heads, calibration)
    return Plan(
        graph=first,
        n=n,
        batch=batch,
        heads=heads,
        head_dim=head_dim,
        layers=layers,
        dtype=dtype,
        backward=backward,
        edges=all_edges // layers,
        computed=all_computed // layers,
        flops=all_edges * flops,
        flops_computed=all_computed * flops,
        bytes_inputs=3 * tensor,
        bytes_output=tensor,
        bytes_gradients=4 * tensor if backward else 0,
        bytes_saved=batch * heads * n * 4 * layers,  # log-sum-exp of every query
        bytes_layout=sum(layouts[graph].nbytes for graph in cached),
        bytes_scratch=scratch,
        seconds=sum(calibration.sparse(batch * computed[graph]) for graph in asked.counted),
        dense_seconds=layers * calibration.dense(batch * heads * n * n),
        crossover=crossover,
        crossover_searched=searched,
        calibration=calibration,
    )


@dataclass(frozen=True)
class _Layers:
    """The attention layers of which a plan is made."""

    graphs: tuple[Graph, ...]
    """Graph of each layer."""
    counted: tuple[Graph, ...]
    """Graph whose edges are counted for each layer: another seed gives about as many."""
    heads: int
    head_dim: int
    packed: bool = False
    """Whether tensors are [tokens, heads, head_dim], as in models."""

    @staticmethod
    def of(source: Any, heads: int, head_dim: int) -> _Layers:
        """Return the layers of the first argument of `plan`."""
        if hasattr(source, "num_attention_heads"):
            return _Layers._of_config(source)
        layers = 1
        if isinstance(source, Mapping) and "type" not in source:
            known = {"graph", "heads", "head_dim", "layers"}
            if "graph" not in source or set(source) - known:
                raise InvalidValueError(
                    f"received a mapping with the keys {sorted(map(str, source))}, expected "
                    "'graph' and, as needed, 'heads', 'head_dim' and 'layers'"
                )
            heads, head_dim = source.get("heads", heads), source.get("head_dim", head_dim)
            layers, source = source.get("layers", 1), source["graph"]
        graphs = (as_graph(source),) * integer(layers, "layers", least=1)
        heads, head_dim = integer(heads, "heads", least=1), integer(head_dim, "head_dim", least=1)
        return _Layers(graphs, graphs, heads, head_dim)

    @staticmethod
    def _of_config(config: Any) -> _Layers:
        needed = ("graph", "hidden_size", "num_hidden_layers")
        missing = [name for name in needed if not hasattr(config, name)]
        if missing:
            raise InvalidTypeError(
                f"received a {type(config).__name__} without {' and '.join(missing)}; expected a "
                "graph, or a configuration with a graph, such as longbird.LongbirdConfig"
            )
        layers = integer(config.num_hidden_layers, "num_hidden_layers", least=1)
        heads = integer(config.num_attention_heads, "num_attention_heads", least=1)
        one_for_all = not isinstance(config.graph, list | tuple)
        found = getattr(config, "layer_graphs", None) or config.graph
        found = [found] * layers if not isinstance(found, list | tuple) else found
        if len(found) != layers:
            raise InvalidValueError(
                f"received {len(found)} graphs for {layers} layers, expected {layers}"
            )
        graphs = tuple(as_graph(graph) for graph in found)
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        head_dim = integer(head_dim, "head_dim", least=1)
        counted = graphs[:1] * layers if one_for_all else graphs
        return _Layers(graphs, counted, heads, head_dim, packed=True)

    def call(self, graph: Graph, n: int, batch: int, dtype: torch.dtype) -> Call:
        """Return the call of one layer, on tensors without memory."""
        shape, starts = (batch, self.heads, n, self.head_dim), None
        if self.packed:
            shape, starts = (batch * n, self.heads, self.head_dim), torch.arange(batch + 1) * n
        q = torch.empty(shape, dtype=dtype, device="meta")
        return Call.checked(q, q, q, graph, cu_seqlens=starts)


def _check_size(graphs: Sequence[Graph], n: int, heads: int) -> None:
    """Raise a ValueError if layouts would take long to build."""
    if sum(_listed(graph, n, heads) for graph in graphs) <= MOST_LISTED:
        return
    largest = max(graphs, key=lambda graph: _listed(graph, n, heads))
    tiles, size, memory = estimate(largest, n, heads)
    raise InvalidValueError(
        f"plan counts edges in the layout, which it builds only where that takes a few seconds; "
        f"that of {largest!r:.200} over {n:,} tokens and {_count(heads, 'head')} would have about "
        f"{many(tiles)} tiles of {size} x {size} tokens and take {in_words(memory)} to build. "
        "Plan fewer tokens (the cost of a sparse graph grows in proportion to them)"
    )


def _listed(graph: Graph, n: int, heads: int) -> float:
    """Estimate how many tiles or listed edges a layout is built from; at least n / 8."""
    edges = sum(p.tile_count(n, 1) for p in pieces(graph.at(n)) if isinstance(p, EdgeList))
    return max(estimate(graph, n, heads)[0], edges, n / 8)


def _crossover(
    graph: Graph, n: int, heads: int, calibration: Calibration
) -> tuple[int | None, int]:
    """Return the length from which on sparse is always faster, and the longest one considered.

    Lengths are considered while layouts are quick to build, up to 8,192 tokens or n.
    """

    def wins(length: int) -> bool:
        try:
            layout = graph.layout(length, heads=heads)
        except ValueError:
            return False  # a graph with fixed positions does not exist at this length
        sparse = calibration.sparse(computed_pairs(layout))
        return sparse < calibration.dense(heads * length * length)

    lengths = [2**power for power in range(4, 14)]
    lengths += [n] if n > lengths[-1] else []
    lengths = [m for m in lengths if m <= n or _listed(graph, m, heads) <= MOST_LISTED]
    losing = [length for length in lengths if not wins(length)]
    if not losing:
        return lengths[0], lengths[-1]
    low = losing[-1]
    if low == lengths[-1]:
        return None, low
    high = lengths[lengths.index(low) + 1]
    while high - low > 16:  # precise enough for its purpose
        middle = (low + high) // 2
        low, high = (low, middle) if wins(middle) else (middle, high)
    return high, lengths[-1]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _seconds(seconds: float) -> str:
    return in_units(1e6 * seconds, ("µs", "ms", "s"))


def _flops(count: float) -> str:
    return in_units(count, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"))
