"""`longbird demo`: the BigBird graph drawn, checked and timed on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from longbird.bench.environment import cpu_model
from longbird.bench.timing import Spread, interleave, ratio, rounds_within, warm_up
from longbird.bench.work import Work
from longbird.cli.check import print_report
from longbird.cli.graph import draw_in_terminal
from longbird.draw import picture
from longbird.ops.api import attention
from longbird.ops.dispatch import implementations
from longbird.oracle import check

# Not a multiple of the block, so that the check sees a ragged tail.
CHECKED_TOKENS = 1000
# Seconds for the rounds of either measurement.
BUDGET = 15.0

console = Console()


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the picture.", file_okay=False)
    ] = Path(),
    n: Annotated[int, typer.Option("-n", "--tokens", help="Tokens to time.", min=1)] = 4096,
) -> None:
    """Build the BigBird graph, draw it, check it, and time it against dense attention here."""
    work = Work()
    graph = work.graph
    start = time.perf_counter()
    layout = graph.layout(n, heads=work.heads)
    seconds = time.perf_counter() - start

    console.rule("The graph")
    draw_in_terminal(console, graph, n, heads=work.heads, name="bigbird()")
    console.print(f"Laid out for {work.heads} heads in {1e3 * seconds:.1f} ms.")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "bigbird.png"
    picture(graph, n, heads=work.heads, name="bigbird()").save(path)
    console.print(f"Wrote the picture to {path}", highlight=False, markup=False)

    console.rule("Is it exact?")
    states = implementations()
    # Not flex: on a CPU it compiles for half a minute first, and has no backward to check.
    here = [name for name in ("native", "gather") if states[name] == "available"]
    with console.status("Comparing with dense attention in float64"):
        report = check(graph, CHECKED_TOKENS, heads=2, head_dim=work.head_dim, impls=here)
    print_report(console, report)

    console.rule("Is it fast?")
    forward = _measure("forward", n, work, backward=False)
    both = _measure("forward and backward", n, work, backward=True)
    table = Table("", "dense SDPA", "longbird", "ratio (quartiles)")
    for what, (dense, sparse, faster) in (("forward", forward), ("forward and backward", both)):
        table.add_row(
            what,
            f"{1e3 * dense.median:.1f} ms",
            f"{1e3 * sparse.median:.1f} ms",
            f"{faster.median:.1f} x ({faster.quarter:.1f} to {faster.three_quarters:.1f})",
        )
    console.print(table)

    console.rule("In plain words")
    console.print(
        f"Over {n:,} tokens with {work.heads} heads of {work.head_dim}, the BigBird graph keeps "
        f"{100 * layout.density:.0f}% of the pairs of tokens. On this machine ({cpu_model()}, "
        f"threads: {torch.get_num_threads()}), held against dense attention over all pairs, it is "
        f"{_words(forward[2].median)} forward, and {_words(both[2].median)} forward and backward. "
        + (
            "What it computes is exact: outputs and gradients agree with dense attention under "
            "the same mask."
            if report.ok
            else "But it does not agree with dense attention under the same mask: see above."
        ),
        highlight=False,
    )
    if "native" not in here:
        console.print(f"This ran without the native kernels: {states['native']}", style="yellow")
    if not report.ok:
        raise typer.Exit(1)


def _measure(what: str, n: int, work: Work, backward: bool) -> tuple[Spread, Spread, Spread]:
    """Seconds of dense and of sparse attention, and how many times faster sparse is."""
    q, k, v = (x.requires_grad_(backward) for x in work.inputs(n))
    gradient = torch.ones_like(q)
    graph = work.graph

    def contestant(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[], object]:
        def call() -> None:
            with torch.set_grad_enabled(backward):
                output = function(q, k, v)
                if backward:
                    torch.autograd.grad(output, (q, k, v), gradient)

        return call

    contestants = {
        "dense": contestant(scaled_dot_product_attention),
        "sparse": contestant(lambda q, k, v: attention(q, k, v, graph)),
    }
    console.print(f"Timing {what}, dense and sparse in turns")
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("Warming up", total=None)
        expected = {name: warm_up(call).later for name, call in contestants.items()}
        rounds = rounds_within(expected, BUDGET, most=9)
        progress.update(task, description="Timing", total=rounds)
        samples = interleave(contestants, expected, rounds, lambda: progress.advance(task))
    return (
        Spread.of(samples["dense"]),
        Spread.of(samples["sparse"]),
        ratio(samples["dense"], samples["sparse"]),
    )


def _words(ratio: float) -> str:
    if 0.95 < ratio < 1.05:
        return "as fast"
    return f"{ratio:.1f} times faster" if ratio > 1 else f"{1 / ratio:.1f} times slower"
