"""`longbird demo`: the BigBird graph drawn, checked and timed on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longbird.cli.check import print_report
from longbird.cli.graph import draw_in_terminal
from longbird.cli.options import Tokens
from longbird.cli.terminal import say, stdout, working

if TYPE_CHECKING:
    from longbird.bench.attention.case import Case

# Not a multiple of the block, so that the check sees a ragged tail.
CHECKED_TOKENS = 1000
# Seconds for the rounds of either measurement.
BUDGET = 15.0


def demo(
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for the picture.", file_okay=False)
    ] = Path(),
    n: Tokens = 4096,
) -> None:
    """Build the BigBird graph, draw it, check it, and time it against dense attention here."""
    with working("Loading torch"):
        import torch

        from longbird.bench.attention.case import Case
        from longbird.bench.environment import cpu_model
        from longbird.draw import picture
        from longbird.ops.dispatch import implementations
        from longbird.oracle import check

    case = Case(n)
    graph, heads = case.graph, case.heads
    start = time.perf_counter()
    layout = graph.layout(n, heads=heads)
    seconds = time.perf_counter() - start

    stdout.rule("The graph")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "bigbird.png"
    with working(f"Drawing {n:,} tokens into {path}"):
        picture(graph, n, heads=heads, name="bigbird()").save(path)
    draw_in_terminal(graph, n, heads=heads, name="bigbird()")
    say(f"Laid out for {heads} heads in {1e3 * seconds:.1f} ms.")
    say(f"Wrote the picture to {path}")

    stdout.rule("Is it exact?")
    states = implementations()
    # Not flex: on a CPU it compiles for half a minute first, and has no backward to check.
    here = [name for name in ("native", "gather") if states[name] == "available"]
    with working("Comparing with dense attention in float64"):
        report = check(graph, CHECKED_TOKENS, heads=2, head_dim=case.head_dim, impls=here)
    print_report(report)

    stdout.rule("Is it fast?")
    forward, both = _faster(case, here[0])
    stdout.rule("In plain words")
    exact = (
        "What it computes is exact: outputs and gradients agree with dense attention under the "
        "same mask."
        if report.ok
        else "But it does not agree with dense attention under the same mask: see above."
    )
    stdout.print(
        f"Over {n:,} tokens with {heads} heads of {case.head_dim}, the BigBird graph keeps "
        f"{100 * layout.density:.0f}% of the pairs of tokens. On this machine ({cpu_model()}, "
        f"threads: {torch.get_num_threads()}), compared with dense attention over all pairs, "
        f"it is {_words(forward)} forward, and {_words(both)} forward and backward. {exact}",
        highlight=False,
    )
    if "native" not in here:
        stdout.print(f"This ran without the native kernels: {states['native']}", style="yellow")
    if not report.ok:
        raise typer.Exit(1)


def _faster(case: Case, implementation: str) -> list[float]:
    """Times dense and sparse attention in turns: how many times faster sparse is, by mode."""
    from dataclasses import replace
    from functools import partial

    from rich.table import Table

    from longbird.bench.attention.peers import DENSE, longbird
    from longbird.bench.contest import contest
    from longbird.bench.report import digits, quotient

    mine = longbird(implementation)
    table = Table("milliseconds, median", DENSE.name, mine.name, "ratio")
    factors: list[float] = []
    for each in (case, replace(case, backward=True)):
        entries = {peer.name: partial(peer.call, each) for peer in (DENSE, mine)}
        with working(f"Timing {each.mode}, dense and sparse in turns"):
            held = contest(each, entries, mine.name, BUDGET, repeats=9)
        dense, sparse = (1e3 * held.median(peer.name) for peer in (DENSE, mine))
        factors.append(quotient(dense, sparse))
        table.add_row(each.mode, digits(dense), digits(sparse), f"{factors[-1]:.3g} x")
    stdout.print(table)
    return factors


def _words(ratio: float) -> str:
    if 0.95 < ratio < 1.05:
        return "as fast"
    return f"{ratio:.1f} times faster" if ratio > 1 else f"{1 / ratio:.1f} times slower"
