"""The kernel demonstration: draw the BigBird graph, check the kernels, and time them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import typer

from longbird.cli.check import print_report
from longbird.cli.graph import draw_in_terminal
from longbird.cli.processor import processor_name
from longbird.cli.terminal import say, stdout, working

if TYPE_CHECKING:
    from longbird.core.graph import Graph

HEADS, HEAD_DIM = 12, 64
CHECKED_TOKENS = 1000
"""Length of the check: not a multiple of the block, so that the last block is ragged."""
SECONDS = 15.0
"""Time budget of each comparison."""
ROUNDS = 9
"""Maximum number of rounds of each comparison; at least three are run."""


def show_kernel(out: Path, n: int) -> None:
    """Draw the BigBird graph over `n` tokens, check it, and time it against dense attention."""
    with working("Loading torch"):
        import torch

        from longbird.analysis.check import check
        from longbird.analysis.drawing import picture
        from longbird.core.graph.presets import bigbird
        from longbird.core.operator.dispatch import implementations

    graph = bigbird()
    start = time.perf_counter()
    layout = graph.layout(n, heads=HEADS)
    seconds = time.perf_counter() - start

    stdout.rule("The graph")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "bigbird.png"
    with working(f"Drawing {n:,} tokens into {path}"):
        picture(graph, n, heads=HEADS, name="bigbird()").save(path)
    draw_in_terminal(graph, n, heads=HEADS, name="bigbird()")
    say(f"Computed the layout for {HEADS} heads in {1e3 * seconds:.1f} ms.")
    say(f"Wrote the picture to {path}")

    stdout.rule("Is it exact?")
    states = implementations()
    # FlexAttention is left out: on a CPU it compiles for half a minute and has no backward pass.
    available = [name for name in ("native", "gather") if states[name] == "available"]
    with working("Comparing with dense attention in float64"):
        report = check(graph, CHECKED_TOKENS, heads=2, head_dim=HEAD_DIM, impls=available)
    print_report(report)

    stdout.rule("Is it fast?")
    forward, both = _speedups(graph, n, available[0])
    stdout.rule("In plain words")
    exact = (
        "The result is exact: outputs and gradients agree with dense attention under the same "
        "mask."
        if report.ok
        else "But it does not agree with dense attention under the same mask: see above."
    )
    stdout.print(
        f"Over {n:,} tokens with {HEADS} heads of {HEAD_DIM}, the BigBird graph keeps "
        f"{100 * layout.density:.0f}% of the pairs of tokens. On this machine "
        f"({processor_name()}, {torch.get_num_threads()} threads), compared with dense attention "
        f"over all pairs, it is {_speedup_text(forward)} forward, and {_speedup_text(both)} "
        f"forward and backward. {exact}",
        highlight=False,
    )
    if "native" not in available:
        stdout.print(f"This ran without the native kernels: {states['native']}", style="yellow")
    if not report.ok:
        raise typer.Exit(1)


def _speedups(graph: Graph, n: int, implementation: str) -> list[float]:
    """Time dense and sparse attention in turns, and return how much faster sparse is by mode."""
    import torch
    from rich.table import Table
    from torch.nn.functional import scaled_dot_product_attention

    from longbird.core.operator.api import attention

    def sparse(q: Any, k: Any, v: Any) -> Any:
        return attention(q, k, v, graph, impl=implementation)

    generator = torch.Generator().manual_seed(0)
    shape = (1, HEADS, n, HEAD_DIM)
    q, k, v, gradient = (torch.randn(shape, generator=generator) for _ in range(4))
    leaves = [x.requires_grad_() for x in (q, k, v)]

    def forward(function: Callable[..., Any]) -> None:
        with torch.no_grad():
            function(*leaves)

    def forward_backward(function: Callable[..., Any]) -> None:
        torch.autograd.grad(function(*leaves), leaves, gradient)

    table = Table("milliseconds, median", "dense SDPA", f"longbird {implementation}", "ratio")
    ratios: list[float] = []
    for mode, run in (("forward", forward), ("forward and backward", forward_backward)):
        with working(f"Timing {mode}, dense and sparse in turns"):
            times = _interleaved(
                [lambda run=run: run(scaled_dot_product_attention), lambda run=run: run(sparse)]
            )
        dense_time, sparse_time = (1e3 * median(each) for each in times)
        ratios.append(dense_time / sparse_time)
        table.add_row(mode, f"{dense_time:.4g}", f"{sparse_time:.4g}", f"{ratios[-1]:.3g} x")
    stdout.print(table)
    return ratios


def _interleaved(calls: list[Callable[[], None]]) -> list[list[float]]:
    """Run calls in turns after a warm-up, and return the seconds of each."""
    for call in calls:
        call()
    samples: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + SECONDS
    while len(samples[0]) < 3 or (len(samples[0]) < ROUNDS and time.perf_counter() < end):
        for call, taken in zip(calls, samples, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return samples


def _speedup_text(ratio: float) -> str:
    if 0.95 < ratio < 1.05:
        return "as fast"
    return f"{ratio:.1f} times faster" if ratio > 1 else f"{1 / ratio:.1f} times slower"
